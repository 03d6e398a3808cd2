"""What a script reports: JSON lines, version 1 of the protocol of measuring programs (docs/methodology.md).

Plain Python 3.10, without packages: it runs in the interpreter of the site.
"""

from __future__ import annotations

import json
import math
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


class Record:
    """Lines that are written at the end, so that nothing is written while steps are measured."""

    def __init__(self, program: str, cpus: Sequence[int], processes: int) -> None:
        self._counts: Counter = Counter()
        self._lines = [
            {
                "ev": "hello",
                "v": 1,
                "program": program,
                "build": "",
                "rank": 0,
                "ranks": processes,
                "host": platform.node(),
                "cpus": [[cpu] for cpu in cpus],
            }
        ]

    def sample(
        self,
        series: str,
        elapsed_s: float,
        work: Mapping[str, float] | None = None,
        point: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> None:
        """One reading; its number counts those of the same series."""
        line = {"ev": "sample", "series": series, "i": self._counts[series], "elapsed_s": _finite(elapsed_s), **more}
        self._counts[series] += 1
        if work:
            line["work"] = {name: _finite(value) for name, value in work.items()}
        if point:
            line["point"] = dict(point)
        self._lines.append(line)

    def check(self, name: str, value: float) -> None:
        """A value that is judged elsewhere."""
        self._lines.append({"ev": "check", "name": name, "value": _finite(value)})

    def note(self, key: str, value: Any) -> None:
        """What was seen, beside the figures."""
        self._lines.append({"ev": "note", "key": key, "value": value})

    def skip(self, reason: str, need: str = "") -> None:
        """Why nothing can be measured; `need`: what is missing on this machine."""
        self._lines.append({"ev": "skip", "reason": reason, **({"need": need} if need else {})})

    def write(self, path: str, *, ended: bool = True) -> None:
        """Write all lines; a reader sees all or none."""
        lines = [*self._lines, *([{"ev": "end"}] if ended and self._lines[-1]["ev"] != "skip" else [])]
        part = Path(path + ".part")
        part.write_text("".join(json.dumps(line, allow_nan=False) + "\n" for line in lines), encoding="utf-8")
        part.replace(path)


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
