"""What fits into the budget of a run, in words."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.engine.ready import Fit, Item
from seatrial.model.spelling import count
from seatrial.model.units import budget_for, duration

_MOST_NAMED = 8


def fit_lines(found: Fit) -> list[str]:
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


def _building(found: Fit) -> list[str]:
    """That the missing programs alone take longer than the budget."""
    if found.builds_s <= found.budget_s:
        return []
    return [
        f"building alone takes about {duration(found.builds_s)}, longer than the budget; `seatrial build` builds ahead"
    ]


def _all(items: Sequence[Item]) -> str:
    number = sum(len(item.points) for item in items)
    return "it" if number == 1 else f"all {count(number, 'experiment')}"


def _names(items: Sequence[Item], *, with_times: bool = False) -> str:
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
