"""The MPI profiler's counts beside mpiP's, for the same command: how often each function was called, over all ranks.

The command runs once with both preloaded, ours before mpiP's, since programs such as hpcc call as often as time allows.
mpiP's counts are those of its report's "Callsite Time statistics" (the row of each place for all ranks); only functions
that it names are compared: it tells nothing of MPI_Init, MPI_Comm_rank and others, nor of large counts.

    python bench/mpi_profiler_counts.py --mpip LIB [-o FILE] -- mpirun -n 2 lmp -in in.lj

LIB is a libmpiP.so, built with the MPI of the command. Ends with 1 where a count differs.
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
from seatrial.profiler.capture.library import profiler_variables
from seatrial.profiler.capture.run import profiler
from seatrial.profiler.tables.process_table import read_table

_LONGEST_S = 600.0
_ALL_RANKS = re.compile(r"^(\w+)\s+\d+\s+\*\s+(\d+)\s", re.MULTILINE)


def counts(command: Sequence[str], library: Path) -> tuple[Counter[str], Counter[str]]:
    """Function -> calls: mpiP's and ours. Raises SystemExit where one left nothing."""
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
        raise SystemExit("mpiP wrote no report: was it built with the MPI of this command?")
    found: Counter[str] = Counter()
    for report in reports:
        part = report.read_text(errors="replace").split("@--- Callsite Time statistics", 1)[-1].split("@---", 1)[0]
        for name, count in _ALL_RANKS.findall(part):
            found[f"MPI_{name}"] += int(count)
    return found


def main() -> None:
    """Both counts, and whether they agree."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpip", type=Path, required=True, metavar="LIB")
    parser.add_argument("-o", dest="output", type=Path, metavar="FILE")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args()
    theirs, own = counts(asked.command, asked.mpip.absolute())
    rows = [{"call": name, "mpip": theirs[name], "seatrial": own[name]} for name in sorted(theirs)]
    differ = [row for row in rows if row["mpip"] != row["seatrial"]]
    for row in rows:
        mark = "same" if row["mpip"] == row["seatrial"] else "DIFFERS"
        print(f"{row['call']:28} {row['mpip']:>12} {row['seatrial']:>12}  {mark}")
    only = {name: count for name, count in sorted(own.items()) if name not in theirs}
    print("only ours:", ", ".join(f"{name} {count}" for name, count in only.items()))
    print(f"counts of {len(rows)} functions: {len(differ)} differ")
    if asked.output is not None:
        machine = live_machine()
        document = {
            "provenance": {
                **provenance(machine, ready(machine, "cpu.peak", cores="one")),
                "mpip": rival_provenance(asked.mpip),
            },
            "command": [Path(word).name for word in asked.command],
            "functions": rows,
            "only_ours": only,
        }
        write("mpi_profiler_counts", document, asked.output)
    sys.exit(1 if differ else 0)


if __name__ == "__main__":
    main()
