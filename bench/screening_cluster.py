"""Plants faults in a cluster of this machine, screens it with real jobs, and counts what was named.

python bench/screening_cluster.py [--nodes 4] [--clean 20] [--planted 3] [--each 5] [--keep FOLDER] [-o FILE.json]
    [TARGET ...]

Needs root and what `seatrial cluster` needs. The cluster has two nodes on each leaf switch, and uplinks as fast as
their nodes together. It is brought up for each fault, and again after `--each` screens. Each screen measures TARGET
(cpu.peak) on every node and the messages between nodes, into its own folder. The faults: none, a link at half
rate, a CPU quota of 80 %, less memory, an uplink at a quarter of its nodes' rates. A screen is right if it names what
was planted and nothing else; with two switches, every way between them passes both uplinks, so it is to say "one or
the other". Rows that are in FILE.json already stay, and the rest is added. `--keep`: the results of screens that were
wrong, or left something out, stay in FOLDER.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready, today, write

LINK, UPLINK = "400mbit", "200mbit"
FAULTS: dict[str, tuple[str, ...]] = {
    "none": (),
    "link of n2 at half rate": ("--node", "2:link=200mbit"),
    "CPU quota of n2 80 %": ("--node", "2:quota=80%"),
    "n2 with 2 GiB": ("--node", "2:memory=2GiB"),
    "uplink of leaf1 shared 4:1": ("--switch", f"1:uplink={UPLINK}"),
}
BUDGET = "4s"
_VARIABLES = {"SEATRIAL_CLUSTER": "/run/seatrial-bench"}


def expected(fault: str, nodes: int) -> set[str]:
    """What is to be named."""
    return {
        "none": set(),
        "link of n2 at half rate": {"link n2 - leaf1"},
        "CPU quota of n2 80 %": {"node n2"},
        "n2 with 2 GiB": {"node n2"},
        "uplink of leaf1 shared 4:1": {"switch leaf1 or leaf2" if nodes == 4 else "switch leaf1"},
    }[fault]


def seatrial(*arguments: str) -> subprocess.CompletedProcess[str]:
    """A command of seatrial."""
    command = [sys.executable, "-m", "seatrial", *arguments]
    return subprocess.run(command, env={**os.environ, **_VARIABLES}, capture_output=True, text=True, check=False)


def screened(fault: str, nodes: int, targets: list[str], folder: Path) -> dict[str, Any]:
    """One screen: what was named, what was not screened, and the time that it took."""
    start = time.perf_counter()
    command = ("screen", *targets, "--budget", BUDGET, "--results", str(folder), "--format", "json")
    done = seatrial("cluster", "exec", "--", sys.executable, "-m", "seatrial", *command)
    if done.returncode:
        raise SystemExit(f"the screen failed: {done.stderr.strip()}")
    found = json.loads(done.stdout)
    named = {f"{one['kind']} {one['what']}" for one in found["odd"]}
    return {
        "nodes": nodes,
        "fault": fault,
        "is_right": named == expected(fault, nodes),
        "named": [
            f"{one['kind']} {one['what']}: {one['benchmark']} {one['figure']} {one['ratio']:.3g} x"
            for one in found["odd"]
        ],
        "figures": len(found["figures"]),
        "not_screened": found["not_screened"],
        "wall_s": round(time.perf_counter() - start, 1),
        "date": today(),
        "load": os.getloadavg()[0],
    }


def screens(
    fault: str, nodes: int, targets: list[str], number: int, above: Path, keep: Path | None
) -> Iterator[dict[str, Any]]:
    """So many screens of one cluster. Results that tell why a screen was not as it should be stay in `keep`."""
    shape = ("--tree", f"{nodes // 2}x2,1:1", "--link", LINK, *FAULTS[fault])
    up = seatrial("cluster", "up", *shape)
    if up.returncode:
        raise SystemExit(f"the cluster does not come up: {up.stderr.strip()}")
    try:
        for _ in range(number):
            with tempfile.TemporaryDirectory(dir=above) as folder:
                results = Path(folder) / "results"
                row = screened(fault, nodes, targets, results)
                if keep is not None and (not row["is_right"] or row["not_screened"]):
                    shutil.copytree(results, keep / Path(folder).name, symlinks=True)
                yield row
    finally:
        seatrial("cluster", "down")


def main() -> None:
    """Print and write a row for each screen, and how many were right."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", default=["cpu.peak"])
    parser.add_argument("--nodes", type=int, default=4)
    parser.add_argument("--clean", type=int, default=20)
    parser.add_argument("--planted", type=int, default=3)
    parser.add_argument("--each", type=int, default=5)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one", precision="fp64"))
    rows: list[dict[str, Any]] = []
    if options.output is not None and options.output.exists():
        rows = json.loads(options.output.read_text())["rows"]
    wanted = {fault: options.planted if FAULTS[fault] else options.clean for fault in FAULTS}
    with tempfile.TemporaryDirectory() as above:
        for fault, number in turns(wanted, options.each):
            for row in screens(fault, options.nodes, options.targets, number, Path(above), options.keep):
                rows.append(row)
                print(json.dumps(row), file=sys.stderr, flush=True)
                document = {**origin, "link": LINK, "budget": BUDGET, "counts": counted(rows), "rows": rows}
                if options.output is not None:  # what was found so far, in case the rest is interrupted
                    options.output.write_text(json.dumps({"benchmark": "screening_cluster", **document}, indent=1))
    write("screening_cluster", document, options.output)


def turns(wanted: dict[str, int], each: int) -> Iterator[tuple[str, int]]:
    """The faults in turn, with the number of screens of each turn."""
    for first in range(0, max(wanted.values()), each):
        for fault, number in wanted.items():
            if first < number:
                yield fault, min(each, number - first)


def counted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many screens were made of each fault, and how many were right."""
    kinds: dict[tuple[int, str], list[bool]] = {}
    for row in rows:
        kinds.setdefault((row["nodes"], row["fault"]), []).append(row["is_right"])
    return [
        {"nodes": nodes, "fault": fault, "screens": len(own), "right": sum(own)}
        for (nodes, fault), own in kinds.items()
    ]


if __name__ == "__main__":
    main()
