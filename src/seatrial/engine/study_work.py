"""From a study's points to groups: experiments to be compared are measured side by side, on one budget."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.engine.engine import Work
from seatrial.engine.policy import Compared, Pooled
from seatrial.engine.pool import Pool
from seatrial.engine.ready import Ready, Refused
from seatrial.model.study.study import SYSTEM, Compare, Study
from seatrial.stats.interval import MINIMUM_REPEATS, least_repeats
from seatrial.stats.sequential import ALPHA, least_blocks


def study_work(study: Study, prepared: Sequence[Ready | Refused], pool: Pool | None = None) -> list[Work]:
    """The groups of a study, with one policy per benchmark, since each has its own family of comparisons. `pool` is
    their time (default: the budget of the study, for repeats only).

    With `compare`, points that differ only along that axis form a group, the baseline first. Without, each experiment
    is a separate group: their numbers of repeats then differ by at most one. So they are where systems are compared:
    those cannot be measured side by side.
    """
    pool = pool or Pool(study.repeat.budget_s)
    if study.compare is None or study.compare.along == SYSTEM:
        alone = _unique(prepared)
        least = least_alone(study, len(alone))
        policy = Pooled(pool, study.repeat.precision, study.repeat.maximum, minimum=least)
        return [Work(tuple((ready,) for ready in alone), policy, study.name)]
    by_benchmark: dict[str, dict[tuple[object, ...], list[Ready]]] = {}
    for item in prepared:
        groups = by_benchmark.setdefault(item.point.benchmark.name, {})
        if isinstance(item, Ready):
            groups.setdefault(study.place(item.point.given, study.compare.along), []).append(item)
    work = []
    for groups in by_benchmark.values():
        compared = [_baseline_first(_unique(group), study.compare) for group in groups.values()]
        family = family_of(compared)
        policy = Compared(
            pool,
            study.repeat.precision,
            study.repeat.maximum,
            study.compare.margin,
            family,
            frozenset(study.compare.figures),
            study.compare.asks_equivalence,
            minimum=least_blocks(family),
        )
        work.append(Work(tuple(compared), policy, study.name))
    return work


def family_of(groups: Iterable[Sequence[object]]) -> int:
    """The comparisons of one figure in these groups, each with its baseline; at least 1."""
    return max(1, sum(len(group) - 1 for group in groups))


def least_alone(study: Study, experiments: int) -> int:
    """The repeats that each experiment needs before it may stop: enough to test the contenders of a sweep against the
    winner. The sweep of one point of the other axes has at most all experiments."""
    if study.best_of is None or experiments < 2:
        return MINIMUM_REPEATS
    return least_repeats(ALPHA / (experiments - 1), is_paired=True)


def _unique(items: Iterable[Ready | Refused]) -> tuple[Ready, ...]:
    """Each experiment that can run, once: two points may resolve to the same one."""
    found: dict[str, Ready] = {}
    for item in items:
        if isinstance(item, Ready):
            found.setdefault(item.experiment.id, item)
    return tuple(found.values())


def _baseline_first(group: tuple[Ready, ...], compare: Compare) -> tuple[Ready, ...]:
    return tuple(sorted(group, key=lambda item: item.point.given.get(compare.along) != compare.baseline))
