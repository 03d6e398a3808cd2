"""Time to read and draw a fabric: complete `seatrial discover` commands, on made-up dumps of ibnetdiscover.

python bench/fabric_scale.py [--rounds 3] [--nodes 40 400 4000 40000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from fabric.made_up_fabrics import FatTree  # part of the tests, not installed

LEAF = 20
"""Nodes of a leaf switch; pods have 20 leaves."""


def main() -> None:
    """Print the time of each size and format."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--nodes", type=int, nargs="+", default=[40, 400, 4_000, 40_000])
    options = parser.parse_args()
    print("nodes  switches  dump_B  format  fastest_s")
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "net.txt"
        for nodes in options.nodes:
            leaves = max(2, nodes // LEAF)
            tree = FatTree(pods=-(-leaves // 20), leaves=min(20, leaves), nodes=LEAF, spines=10, cores=20)
            dump.write_text(tree.ibnetdiscover())
            for form in ("text", "json", "svg"):
                command = [sys.executable, "-m", "seatrial", "discover", "--from", f"ibnetdiscover={dump}"]
                command += ["--format", form, "-o", str(Path(folder) / "out")]
                fastest_s = min(_seconds(command) for _ in range(options.rounds))
                size_B = dump.stat().st_size
                print(f"{len(tree.hosts)}  {len(tree.switches)}  {size_B}  {form}  {fastest_s:.2f}", flush=True)


def _seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, check=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
