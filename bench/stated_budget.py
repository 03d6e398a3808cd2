"""Whether the budget that an undecided comparison states decides it: two programs of fixed work, the second with some
percent more, are compared by `--versus` with a short budget, and then, if that stated another, with that one.

    python bench/stated_budget.py [--percent 0 0.5 3 ...] [--budget 3] [--most 60] [-o docs/results/stated_budget.json]

Those whose stated budget is above --most seconds are not followed, but listed.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from common import live_machine, provenance, ready, write

import seatrial
from seatrial.analysis.answer import answer_of_study
from seatrial.model.study.answer import Answer
from seatrial.report.studies.answer_words import answer_sentence

WORK = 10_000_000
"""Steps of the first program, about 20 ms."""
SOURCE = """
#include <stdlib.h>
int main(int count, char** words) {
  long steps = count > 1 ? atol(words[1]) : 0;
  unsigned value = 1;
  volatile unsigned sum = 0;
  for (long i = 0; i < steps; i++) {
    value = value * 1664525u + 1013904223u;
    sum += value;
  }
  return 0;
}"""
PERCENT = (0.0, 0.2, 0.4, 0.5, 0.6, 0.8, 3.0, 4.0, 4.5, 4.7, 5.0, 5.5, 6.0)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--percent", type=float, nargs="+", default=list(PERCENT))
    parser.add_argument("--budget", type=float, default=3.0, help="seconds of the first comparison")
    parser.add_argument("--most", type=float, default=60.0, help="seconds of the longest second comparison")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()

    machine = live_machine()
    origin = provenance(machine, ready(machine, "command"))
    rows = []
    with tempfile.TemporaryDirectory() as where:
        program = Path(where) / "steps"
        program.with_suffix(".c").write_text(SOURCE, encoding="utf-8")
        subprocess.run(["cc", "-O2", "-static", f"{program}.c", "-o", str(program)], check=True)
        for percent in options.percent:
            rows.append(followed(str(program), percent, options.budget, options.most))
            print(rows[-1], flush=True)
    tried = [row["decided"] for row in rows if "decided" in row]
    print(f"counts: {sum(tried)} of {len(tried)} stated budgets decided")
    write("stated_budget", {"provenance": origin, "first_budget_s": options.budget, "pairs": rows}, options.output)


def followed(program: str, percent: float, budget_s: float, most_s: float) -> dict[str, Any]:
    """A comparison, and the one with the budget that it states."""
    first = compared(program, percent, budget_s)
    row: dict[str, Any] = {"percent": percent, "first": answer_sentence(first)}
    if not first.undecided or first.budget_s is None:
        return row
    row["stated_s"] = first.budget_s
    if first.budget_s > most_s:
        return row
    second = compared(program, percent, first.budget_s)
    return row | {"second": answer_sentence(second), "decided": not second.undecided}


def compared(program: str, percent: float, budget_s: float) -> Answer:
    """The answer of one comparison in an empty folder."""
    more = round(WORK * (1 + percent / 100))
    with tempfile.TemporaryDirectory() as where:
        done = seatrial.versus((program, str(WORK)), (program, str(more)), results=where, budget_s=budget_s)
    if done.study is None:
        raise SystemExit(f"nothing was compared: {[one.outcome for one in done.experiments]}")
    return answer_of_study(done.study)


if __name__ == "__main__":
    main()
