"""Seconds of the tests by file, before and after a change, from what pytest prints with --durations.

Each output comes from `pytest --numprocesses 3 --durations 0 --durations-min 0.005`. The seconds are those of the
workers, with waiting; the last line of pytest has those of the whole run.

python bench/suite_seconds.py BEFORE.txt AFTER.txt [-o docs/results/suite_seconds.json]
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from common import live_machine, machine_provenance

_LINE = re.compile(r"^\s*([\d.]+)s (?:setup|call|teardown)\s+(tests/[^:\s]+)::", re.MULTILINE)
_END = re.compile(r"^(?:=+ )?(\d+ (?:passed|failed).*) in ([\d.]+)s", re.MULTILINE)
_SHOWN = 40


def main() -> None:
    """Sum, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    runs = {name: read(getattr(options, name).read_text(encoding="utf-8")) for name in ("before", "after")}
    before, after = (runs[name]["files"] for name in ("before", "after"))
    for name, run in runs.items():
        print(f"{name}: {run['ended']}, {run['seconds']:.0f} s")
    print(f"ratio: {runs['after']['seconds'] / runs['before']['seconds']:.3f}")
    for file in sorted({*before, *after}, key=lambda file: -max(before.get(file, 0.0), after.get(file, 0.0)))[:_SHOWN]:
        print(f"{before.get(file, 0.0):8.1f} {after.get(file, 0.0):8.1f}  {file}")
    if options.output is not None:
        document = {"benchmark": "suite_seconds", **machine_provenance(live_machine()), "runs": runs}
        options.output.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read(text: str) -> dict[str, Any]:
    """The end of a run and the seconds of each file; ends the script if the run has not ended."""
    ends = _END.findall(text)
    if not ends:
        raise SystemExit("the output has no last line of pytest")
    seconds: Counter[str] = Counter()
    for of_test, file in _LINE.findall(text):
        seconds[file] += float(of_test)
    files = {file: round(value, 2) for file, value in sorted(seconds.items(), key=lambda item: -item[1])}
    return {"ended": ends[-1][0], "seconds": float(ends[-1][1]), "files": files}


if __name__ == "__main__":
    main()
