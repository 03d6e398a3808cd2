"""Time to read and draw a fabric: complete `seatrial discover` commands, on made-up dumps of ibnetdiscover.

python bench/fabric_scale.py [--rounds 3] [--nodes 40 400 4000 40000] [-o FILE.json]

`fastest_s` is elapsed time, `cpu_s` the processor time of the fastest round: other work on the machine changes the
first only.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import live_machine, machine_provenance, write

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fabric.made_up_fabrics import FatTree  # part of the tests, not installed

LEAF = 20
"""Nodes of a leaf switch; pods have 20 leaves."""


def main() -> None:
    """Print and write the time of each size and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=[40, 400, 4_000, 40_000])
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    origin = {**machine_provenance(live_machine()), "load_before": os.getloadavg()[0]}
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "net.txt"
        for nodes in options.nodes:
            leaves = max(2, nodes // LEAF)
            tree = FatTree(pods=-(-leaves // 20), leaves=min(20, leaves), nodes=LEAF, spines=10, cores=20)
            dump.write_text(tree.ibnetdiscover())
            for form in ("text", "json", "svg"):
                command = [sys.executable, "-m", "seatrial", "discover", "--from", f"ibnetdiscover={dump}"]
                command += ["--format", form, "-o", str(Path(folder) / "out")]
                fastest_s, cpu_s = min(_seconds(command) for _ in range(options.rounds))
                size = {"nodes": len(tree.hosts), "switches": len(tree.switches), "dump_B": dump.stat().st_size}
                rows.append({**size, "format": form, "fastest_s": round(fastest_s, 2), "cpu_s": round(cpu_s, 2)})
    write("fabric_scale", {**origin, "rows": rows}, options.output)


def _seconds(command: list[str]) -> tuple[float, float]:
    """Elapsed and processor time of a command."""
    start, before = time.perf_counter(), _cpu_s()
    subprocess.run(command, check=True)
    return time.perf_counter() - start, _cpu_s() - before


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main()
