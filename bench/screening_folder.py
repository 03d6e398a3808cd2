"""Time and memory of complete `seatrial screen --from DIR -o PAGE` commands on a results folder of many nodes.

python bench/screening_folder.py [--nodes 1000 10000] [--rounds 2] [-o FILE.json]

One repeat of each benchmark of the trial is measured here. Each node then has six repeats of each with the same
samples, but for its level (1 %) and noise (0.3 %), in a file of its own records: eight figures in all. One node is
20 % slower. `cpu_s` is the processor time of the fastest round.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from common import live_machine, machine_provenance, write
from msgspec.structs import replace

import seatrial
from seatrial.model.results.record import RepeatRecord, encode
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

TRIAL = ("cpu.peak", "memory.stream", "memory.latency", "io.file")
REPEATS = 6
SLOW = 0.8


def measured(folder: Path) -> list[RepeatRecord]:
    """One repeat of each experiment of the trial, measured into this folder."""
    for name in TRIAL:
        seatrial.run(name, repeats=1, results=folder)
    contents = read_contents(ResultsFolder.existing(folder))
    firsts = (records[0] for records in contents.records.values())
    return [replace(one, samples=tuple(one.samples)) for one in firsts if one.outcome.is_ok]  # its file is replaced


def many_nodes(folder: Path, records: Sequence[RepeatRecord], nodes: int) -> str:
    """Records of so many nodes in the place of the measured ones; the slow node."""
    source = np.random.default_rng(1)
    slow = nodes // 3
    for file in (folder / "records").iterdir():
        file.unlink()
    for node in range(nodes):
        lines = []
        for record in records:
            level = np.exp(source.normal(0.0, 0.01)) / (SLOW if node == slow else 1.0)
            for n in range(REPEATS):
                factor = float(level * np.exp(source.normal(0.0, 0.003)))
                samples = tuple(replace(one, elapsed_s=one.elapsed_s * factor) for one in record.samples)
                seen = {**record.seen, "host": _name(node)}
                moved = replace(record, repeat=node * REPEATS + n, order=n, samples=samples, seen=seen)
                lines.append(encode(moved))
        (folder / "records" / f"{_name(node)}-1-{node}.jsonl").write_bytes(b"".join(lines))
    return _name(slow)


def _name(node: int) -> str:
    return f"tera{node:05d}"


def one_round(folder: Path) -> dict[str, Any]:
    """The time of a screen with its page, and what it named."""
    start, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    words = ["screen", "--from", str(folder), "--format", "json", "-o", str(folder.parent / "page.html")]
    done = subprocess.run([sys.executable, "-m", "seatrial", *words], capture_output=True, check=True)
    after, found = resource.getrusage(resource.RUSAGE_CHILDREN), json.loads(done.stdout)
    return {
        "wall_s": round(time.perf_counter() - start, 1),
        "cpu_s": round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1),
        "most_MiB": after.ru_maxrss // 1024,
        "figures": len({(one["benchmark"], one["figure"]) for one in found["figures"]}),
        "named": list(dict.fromkeys(one["what"] for one in found["odd"])),
    }


def main() -> None:
    """Print and write a row for each number of nodes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    origin = {**machine_provenance(live_machine()), "load_before": os.getloadavg()[0]}
    rows = []
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above) / "results"
        records = measured(folder)
        for nodes in options.nodes:
            planted = many_nodes(folder, records, nodes)
            size_B = sum(file.stat().st_size for file in (folder / "records").iterdir())
            best = min((one_round(folder) for _ in range(options.rounds)), key=lambda row: float(row["wall_s"]))
            rows.append({"nodes": nodes, "records": nodes * len(records) * REPEATS, "records_MB": round(size_B / 1e6),
                         "planted": planted, **best})  # fmt: skip
    write("screening_folder", {**origin, "rows": rows}, options.output)


if __name__ == "__main__":
    main()
