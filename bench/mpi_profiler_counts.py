"""Compares the MPI profiler's counts with mpiP's for the same command: calls of each function, over all ranks.

The command runs once with both preloaded, ours first, because the number of calls in programs such as hpcc depends on
time. mpiP's counts are from "Callsite Time statistics" in its report (the row of each call site for all ranks). Only
functions that it lists are compared: it does not report MPI_Init, MPI_Comm_rank and others, nor large-count functions.

    python bench/mpi_profiler_counts.py --mpip LIB [-o FILE] -- mpirun -n 2 lmp -in in.lj

LIB is libmpiP.so, built with the MPI of the command. The exit status is 1 if a count differs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from common import live_machine, provenance, ready, rival_provenance, write

from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import profiler, profiler_variables
from seatrial.profiler.tables.process_table import read_table

_LONGEST_S = 600.0
_ALL_RANKS = re.compile(r"^(\w+)\s+\d+\s+\*\s+(\d+)\s", re.MULTILINE)


def counts(command: Sequence[str], library: Path) -> tuple[Counter[str], Counter[str]]:
    """Calls by function: mpiP's and ours. Raises SystemExit if mpiP wrote no report."""
    with tempfile.TemporaryDirectory() as folder:
        ours = profiler_variables(profiler().library, Path(folder), {"LD_PRELOAD": str(library)})
        around = {**os.environ, **ours, "MPIP": f"-f {folder}"}
        done = subprocess.run(command, env=around, check=False, stdout=subprocess.DEVNULL, timeout=_LONGEST_S)
        if done.returncode:
            raise SystemExit(f"the command ended with {done.returncode}, with mpiP and our profiler preloaded")
        return _mpip(Path(folder)), _ours(Path(folder))


def _ours(folder: Path) -> Counter[str]:
    names = function_names()
    found: Counter[str] = Counter()
    for path in folder.glob("*.mpi"):
        for thread in read_table(path, len(names)).threads:
            for row in thread.slots:
                found[names[int(row["call"]) - 1]] += int(row["count"])
    return found


def _mpip(folder: Path) -> Counter[str]:
    reports = list(folder.glob("*.mpiP"))
    if not reports:
        raise SystemExit("mpiP wrote no report: check that it was built with the MPI of this command")
    found: Counter[str] = Counter()
    for report in reports:
        part = report.read_text(errors="replace").split("@--- Callsite Time statistics", 1)[-1].split("@---", 1)[0]
        for name, count in _ALL_RANKS.findall(part):
            found[f"MPI_{name}"] += int(count)
    return found


def main() -> None:
    """Print both counts and whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpip", type=Path, required=True, metavar="LIB")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args()
    theirs, own = counts(options.command, options.mpip.absolute())
    rows = [{"call": name, "mpip": theirs[name], "seatrial": own[name]} for name in sorted(theirs)]
    differ = [row for row in rows if row["mpip"] != row["seatrial"]]
    for row in rows:
        mark = "same" if row["mpip"] == row["seatrial"] else "DIFFERS"
        print(f"{row['call']:28} {row['mpip']:>12} {row['seatrial']:>12}  {mark}")
    only = {name: count for name, count in sorted(own.items()) if name not in theirs}
    print("only ours:", ", ".join(f"{name} {count}" for name, count in only.items()))
    print(f"counts of {len(rows)} functions: {len(differ)} differ")
    if options.output is not None:
        machine = live_machine()
        document = {
            "provenance": {
                **provenance(machine, ready(machine, "cpu.peak", cores="one")),
                "mpip": rival_provenance(options.mpip),
            },
            "command": [Path(word).name for word in options.command],
            "functions": rows,
            "only_ours": only,
        }
        write("mpi_profiler_counts", document, options.output)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
