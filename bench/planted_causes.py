"""Plants causes of lost performance, runs the command that a user would, and counts which causes are named, not named,
or named wrongly.

The cases are in bench/causes/, by subject, each as a planted cause or as a control without one, on a quiet machine and
with a spinner on each CPU. A case is named if the planted cause comes first; on the loaded machine, other processes
count as well, because they are true. A control is clean if no cause is named.

python bench/planted_causes.py [--seconds 2] [--load quiet loaded] [--subject NAME ...] [--quick] [--only TEXT]
    [--skip TEXT] [-o FILE.json]
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from causes import comparisons, machines, nodes, places, profiles, profiles_kinds, repeats
from causes.case import Bench, Case, Load, Said, Skip, Verdict
from causes.loads import spinners
from common import live_machine, provenance, ready, write

CASES = (
    *profiles.CASES,
    *profiles_kinds.CASES,
    *places.CASES,
    *nodes.CASES,
    *repeats.CASES,
    *comparisons.CASES,
    *machines.CASES,
)
SUBJECTS = tuple(dict.fromkeys(case.subject for case in CASES))


def main() -> None:
    """Run all cases, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="how long the planted programs run")
    parser.add_argument("--load", nargs="+", type=Load, choices=tuple(Load), default=list(Load))
    parser.add_argument("--subject", nargs="+", choices=SUBJECTS, default=list(SUBJECTS))
    parser.add_argument("--quick", action="store_true", help="only the cases that the tests run")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--skip", help="leave out cases whose library or options contain this, such as '--wait'")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # what was planted is removed first

    machine = live_machine()
    rows = []
    for load in options.load:
        for case in CASES:
            is_chosen = case.subject in options.subject and options.only in case.name and load in case.loads
            is_skipped = options.skip is not None and options.skip in case.variant
            if is_chosen and not is_skipped and (case.is_quick or not options.quick):
                rows.append(run(case, load, options.seconds))
                row = rows[-1]
                label = f"{row['load']:6} {row['verdict']:7} {row['variant']:8} {row['subject']}"
                print(f"{label}: {row['case']}: {row['said'][:400]}", flush=True)
    counts = {load: counted([row for row in rows if row["load"] == load]) for load in options.load}
    item = ready(machine, "cpu.peak", cores="one")
    write("diagnosis", {"provenance": provenance(machine, item), "counts": counts, "cases": rows}, options.output)
    for load, of_load in counts.items():
        print(f"counts: {load}: {of_load}")


def run(case: Case, load: Load, seconds: float) -> dict[str, Any]:
    """One case, as a row of the table."""
    row: dict[str, Any] = {
        "subject": case.subject,
        "case": case.name,
        "variant": case.variant,
        "load": load,
        "control": case.is_control,
        "right": sorted(case.right | case.together),
    }
    cpus = tuple(sorted(os.sched_getaffinity(0)))
    try:
        if len(cpus) < case.needs_cpus:
            raise Skip(f"needs {case.needs_cpus} CPUs")
        with tempfile.TemporaryDirectory(prefix="seatrial-diagnosis-") as folder:
            bench = Bench(Path(folder), case.seconds or seconds, load, cpus)
            with spinners(cpus if load is Load.LOADED else ()):
                said = case.say(bench)
    except Skip as reason:
        return row | {"verdict": Verdict.SKIPPED, "said": str(reason), "causes": []}
    return row | {"verdict": case.judge(said, load), "said": said.text, "causes": causes(said)}


def causes(said: Said) -> list[dict[str, Any]]:
    """The causes with rounded shares."""
    return [{"cause": cause, "share": None if share is None else round(share, 3)} for cause, share in said.causes]


def counted(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """Verdicts on planted causes and controls."""
    return {
        kind: {
            verdict: number
            for verdict in Verdict
            if (number := sum(row["verdict"] == verdict and row["control"] == is_control for row in rows))
        }
        for kind, is_control in (("planted", False), ("controls", True))
    }


if __name__ == "__main__":
    main()
