"""Progress on stderr: a bar on a terminal, otherwise a line every ten seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seatrial.cli.output import message
from seatrial.engine.listener import BudgetFit, Listener, PreparedItem, Progress
from seatrial.engine.lock_file import Holder, holders_text
from seatrial.model.results.sample import Outcome, State
from seatrial.model.secrets import masked_parameters
from seatrial.model.spelling import count, settings
from seatrial.model.units import budget_for, duration
from seatrial.plan.points import Point
from seatrial.probes.quiet import Quiet

if TYPE_CHECKING:
    from seatrial.cli.progress_bar import ProgressBar

_MOST_NAMED = 8


def fit_lines(found: BudgetFit) -> list[str]:
    """One line if everything fits; else what fits, what does not, the budget that would do, and whether building alone
    is too long for it."""
    budget = duration(found.budget_s)
    if not found.holds:
        line = (
            f"the budget of {budget} is too short for the fewest repeats of {_all(found.fitting)}: these take about "
            f"{duration(found.all_s)} in all (--budget {budget_for(found.all_s)})"
        )
        return [line, *_building(found)]
    measured = [item for item in found.fitting if item.least_s]
    if not found.left_out:
        if not measured:
            return []
        return [f"the budget of {budget} suffices: the fewest repeats take about {duration(found.needed_s)} in all"]
    fits = f"{_names(measured)} (about {duration(found.needed_s)} in all)" if measured else "nothing"
    return [
        f"fits into {budget}: {fits}",
        f"does not fit: {_names(found.left_out, with_times=True)}; everything needs about {duration(found.all_s)}: "
        f"--budget {budget_for(found.all_s)}",
        *_building(found),
    ]


def _building(found: BudgetFit) -> list[str]:
    """That the missing programs alone take longer than the budget."""
    if found.builds_s <= found.budget_s:
        return []
    return [
        f"building alone takes about {duration(found.builds_s)}, longer than the budget; `seatrial build` builds ahead"
    ]


def _all(items: Sequence[PreparedItem]) -> str:
    number = sum(len(item.points) for item in items)
    return "it" if number == 1 else f"all {count(number, 'experiment')}"


def _names(items: Sequence[PreparedItem], *, with_times: bool = False) -> str:
    """The benchmarks, each once, with the number of its experiments and the time that they need."""
    by_name: dict[str, tuple[int, float]] = {}
    for item in items:
        name = item.points[0].benchmark.name
        number, seconds = by_name.get(name, (0, 0.0))
        by_name[name] = number + len(item.points), seconds + item.least_s
    shown = [
        f"{name}{f' x {number}' if number > 1 else ''}{f' (about {duration(seconds)})' if with_times else ''}"
        for name, (number, seconds) in by_name.items()
    ]
    more = len(shown) - _MOST_NAMED
    return ", ".join(shown[:_MOST_NAMED]) + (f" and {count(more, 'more benchmark')}" if more > 0 else "")


_PLAIN_EVERY_S = 10.0


class TerminalProgress(Listener):
    """An engine listener that shows what runs, how much is done, and the time left.

    `quiet`: only what a user must know, such as a wait or a failed repeat; `verbose`: a line for every repeat;
    `waits_quiet`: the run will wait until nothing else uses the CPUs.
    """

    def __init__(self, *, quiet: bool = False, verbose: bool = False, waits_quiet: bool = False) -> None:
        self._quiet = quiet
        self._advice = "" if waits_quiet else "; --wait-quiet TIME waits until it is not"
        self._every_s = 0.0 if verbose else _PLAIN_EVERY_S
        self._bar = None if quiet or verbose else _bar()
        self._last_plain = 0.0
        self._reasons: set[str] = set()

    def fitted(self, found: BudgetFit) -> None:
        """Report what fits into the budget; without progress, only if something does not."""
        if not self._quiet or found.left_out or not found.holds:
            for line in fit_lines(found):
                self._always(line)

    def building(self, point: Point) -> None:
        """Show which program is being built."""
        text = f"building the program of {point.benchmark.name}"
        if self._bar is not None:
            self._bar.show(text)
        else:
            self._now_and_then(text)

    def repeat_starts(self, point: Point, repeat: int, progress: Progress) -> None:
        """Show what runs and the time left."""
        decided = progress.experiments - progress.open_experiments
        done = f"{decided}/{progress.experiments} done, at most about {duration(progress.remaining_s)} left"
        what = f"{_named(point)} repeat {repeat + 1}"
        if self._bar is not None:
            self._bar.show(what, decided, progress.experiments, done)
        else:
            self._now_and_then(f"[{done}] {what}")

    def looked(self, seen: Quiet) -> None:
        """Report what else uses this machine."""
        if not self._quiet:
            busy = "" if seen.is_quiet else "this machine is not quiet, which can slow what is measured: "
            self._always(f"{busy}{seen}{self._advice if busy else ''}")

    def waits_for(self, holders: Sequence[Holder]) -> None:
        """Report what the run is waiting for."""
        users = " ".join(f"--ignore-lock-of {user}" for user in sorted({holder.user for holder in holders}))
        self._always(
            "waiting: another seatrial measures on this host, and two at once would disturb each other "
            f"({holders_text(holders)}); --wait TIME limits the wait, {users} measures beside it"
        )

    def waits_for_claims(self, hosts: Sequence[str]) -> None:
        """Report whose repeats the run is waiting for."""
        self._always(f"waiting for repeats that are being made into the same results folder on {', '.join(hosts)}")

    def repeat_done(self, point: Point, outcome: Outcome) -> None:
        """Report a repeat that did not succeed; what several experiments need, once."""
        if outcome.state in (State.UNSUPPORTED, State.SKIPPED):
            if outcome.reason in self._reasons:
                return
            self._reasons.add(outcome.reason)
        if not outcome.is_ok:
            self._always(f"{_named(point)}: {outcome.state}: {outcome.reason}")

    def close(self) -> None:
        """Remove the bar."""
        if self._bar is not None:
            self._bar.close()

    def _always(self, text: str) -> None:
        self._last_plain = time.monotonic()
        self.close()
        message(text)

    def _now_and_then(self, text: str) -> None:
        if not self._quiet and time.monotonic() - self._last_plain >= self._every_s:
            self._last_plain = time.monotonic()
            message(text)


def _bar() -> ProgressBar | None:
    """None unless stderr is a terminal that can redraw a line."""
    if sys.stderr is None or not sys.stderr.isatty():
        return None
    from seatrial.cli.progress_bar import ProgressBar, can_redraw

    return ProgressBar(sys.stderr) if can_redraw(sys.stderr) else None


def _named(point: Point) -> str:
    """The benchmark with what is not at its default."""
    defaults = {parameter.name: parameter.default for parameter in point.benchmark.parameters}
    set_ones = {name: value for name, value in point.parameters.items() if defaults.get(name) != value}
    words = (point.benchmark.name, settings(masked_parameters(set_ones)), point.environment.text)
    return " ".join(word for word in words if word)
