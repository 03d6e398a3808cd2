"""Progress on stderr: a bar that is redrawn on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from seatrial.cli.chosen import choice_text
from seatrial.cli.output import message
from seatrial.engine.events import Progress
from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point
from seatrial.report.text.results import parameters_text

if TYPE_CHECKING:
    from seatrial.cli.progress_bar import ProgressBar

_PLAIN_EVERY_S = 10.0


class TerminalProgress:
    """An engine listener that shows what runs, how much is done, and how long the rest will take."""

    def __init__(self) -> None:
        self._bar = _bar()
        self._last_plain = 0.0

    def building(self, point: Point) -> None:
        """Say what is built."""
        text = f"building the program of {point.benchmark.name}"
        if self._bar is not None:
            self._bar.show(text)
        else:
            self._now_and_then(text)

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Say what runs and how long the rest may take."""
        decided = progress.experiments - progress.open_experiments
        done = f"{decided}/{progress.experiments} done, about {_time(progress.remaining_s)} left at most"
        what = f"{_named(point)} repeat {repeat + 1}"
        if self._bar is not None:
            self._bar.show(what, decided, progress.experiments, done)
        else:
            self._now_and_then(f"[{done}] {what}")

    def waits_for(self, pid: int | None) -> None:
        """Say why nothing happens."""
        who = f"process {pid}" if pid else "another process"
        self._always(f"waiting: {who} measures on this machine, and two at once would measure each other")

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """Say at once what did not succeed."""
        if not outcome.is_ok:
            self._always(f"{_named(point)}: {outcome.state}: {outcome.reason}")

    def close(self) -> None:
        """Leave a clean line behind."""
        if self._bar is not None:
            self._bar.close()

    def _always(self, text: str) -> None:
        self._last_plain = time.monotonic()
        self.close()
        message(text)

    def _now_and_then(self, text: str) -> None:
        if time.monotonic() - self._last_plain >= _PLAIN_EVERY_S:
            self._last_plain = time.monotonic()
            message(text)


def _bar() -> ProgressBar | None:
    """None where stderr is no terminal that can redraw a line."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from seatrial.cli.progress_bar import ProgressBar, can_redraw

    return ProgressBar(sys.stderr) if can_redraw(sys.stderr) else None


def _named(point: Point) -> str:
    words = (point.benchmark.name, parameters_text(point.parameters), choice_text(point.environment))
    return " ".join(word for word in words if word)


def _time(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"
