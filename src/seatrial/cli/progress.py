"""Progress on stderr: one line that is rewritten on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import shutil
import sys
import time

from seatrial.cli.chosen import choice_text
from seatrial.cli.output import message
from seatrial.engine.events import Progress
from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point
from seatrial.report.text.results import parameters_text

_PLAIN_EVERY_S = 10.0


class TerminalProgress:
    """An engine listener that shows what runs, how much is done, and how long the rest will take."""

    def __init__(self) -> None:
        self._rewrites = sys.stderr is not None and sys.stderr.isatty()
        self._last_plain = 0.0

    def building(self, point: Point) -> None:
        """Say what is built."""
        self._show(f"building the program of {point.benchmark.name}", always=False)

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Say what runs and how long the rest may take."""
        decided = progress.experiments - progress.open_experiments
        self._show(
            f"[{decided}/{progress.experiments} done, about {_time(progress.remaining_s)} left at most] "
            f"{_named(point)} repeat {repeat + 1}",
            always=False,
        )

    def waits_for(self, pid: int | None) -> None:
        """Say why nothing happens."""
        who = f"process {pid}" if pid else "another process"
        self._show(f"waiting: {who} measures on this machine, and two at once would measure each other", always=True)

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """Say at once what did not succeed."""
        if not outcome.is_ok:
            self._show(f"{_named(point)}: {outcome.state}: {outcome.reason}", always=True)

    def close(self) -> None:
        """Leave a clean line behind."""
        if self._rewrites:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)

    def _show(self, text: str, *, always: bool) -> None:
        if self._rewrites:
            self.close()
            if always:
                message(text)
            else:
                width = shutil.get_terminal_size().columns - 1
                print(text[:width], end="", file=sys.stderr, flush=True)
        elif always or time.monotonic() - self._last_plain >= _PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            message(text)


def _named(point: Point) -> str:
    words = (point.benchmark.name, parameters_text(point.parameters), choice_text(point.environment))
    return " ".join(word for word in words if word)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
