"""Overhead of the harness per repeat, and the time of `seatrial --help`.

python bench/harness_cost.py [-o docs/results/harness_cost.json]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from common import live_machine, provenance, ready, write
from one_point import keep_point

from seatrial.engine.engine import StudyWork, run_work
from seatrial.engine.listener import Listener
from seatrial.engine.policy import Alone
from seatrial.stats.interval import StoppingRule
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    item = ready(machine, "cpu.peak", cores="one")
    with tempfile.TemporaryDirectory() as where:
        folder = ResultsFolder.create(Path(where) / "results")
        keep_point(item, machine, folder)
        start = time.perf_counter()
        rule = StoppingRule(precision=0.0, budget_s=30.0)
        run_work([StudyWork(((item,),), Alone(rule))], machine, folder, Listener())
        elapsed_s = time.perf_counter() - start
        records = read_contents(folder).records[item.experiment.id]
    program_s = sum(record.seen["program_s"] for record in records)
    helps = [help_s() for _ in range(11)]
    write(
        "harness_cost",
        {
            "provenance": provenance(machine, item),
            "repeats": len(records),
            "cost_per_repeat_s": (elapsed_s - program_s) / len(records),
            "help_s": {"median": median(helps), "max": max(helps)},
        },
        options.output,
    )


def help_s() -> float:
    """The time of one `seatrial --help`."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-m", "seatrial", "--help"], check=True, capture_output=True)
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
