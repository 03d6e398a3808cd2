"""What costs in a container: causes of figures that are clearly slower, by facts that differ between the same sides.

A cause is named only for a figure that it can reach: single copies matter from the size on at which libraries stop
copying through shared memory, a file system only while files are read. Several causes may fit one figure; records do
not tell which of them it is, so all are named. A figure that none fits is named as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from seatrial.analysis.containers.facts import container_facts
from seatrial.analysis.containers.message_paths import MessagePaths, bare, paths_of
from seatrial.analysis.fairness.side import SideFacts
from seatrial.benchmarks import declared_figure
from seatrial.model.benchmark.role import Role
from seatrial.model.results.record import RepeatRecord
from seatrial.model.study.comparison import (
    Breakdown,
    Change,
    Comparison,
    ContainerContrast,
    ContainerCost,
    Cost,
    SideName,
    Verdict,
)

_EAGER_B = 4096
"""Messages below are copied through shared memory by every library: the smallest limit is that of Open MPI 4's vader
(btl_vader_eager_limit)."""
_OF_CALLS = (Change.TRANSFER, Change.LATENCY)
_CLEAR = (Verdict.SLOWER, Verdict.FASTER)
Records = Mapping[str, Sequence[RepeatRecord]]
"""Experiment -> its repeats."""
_Seen = tuple[Cost, str, str]


def container_costs(
    comparisons: Sequence[Comparison], breakdowns: Sequence[Breakdown], records: tuple[Records, Records]
) -> tuple[ContainerCost, ...]:
    """The causes of all comparisons that are clearly slower on one side, those that are known first. `records`: of the
    baseline and of the candidate."""
    found: dict[tuple[_Seen, SideName], list[Comparison]] = {}
    for one in comparisons:
        if one.verdict not in _CLEAR or one.is_secondary:
            continue
        on: SideName = "candidate" if one.verdict is Verdict.SLOWER else "baseline"
        for seen in list(_costs(one, on, records)) or [(Cost.NOT_KNOWN, "", "")]:
            found.setdefault((seen, on), []).append(one)
    made = [
        ContainerCost(
            cost,
            on,
            baseline,
            candidate,
            tuple(figures),
            _spared(figures, comparisons) if cost is Cost.CROSS_MEMORY else (),
            _share(figures, breakdowns) if cost in (Cost.CROSS_MEMORY, Cost.TRANSPORT) else None,
        )
        for ((cost, baseline, candidate), on), figures in found.items()
    ]
    return tuple(sorted(made, key=lambda one: one.cost is Cost.NOT_KNOWN))


def _costs(one: Comparison, on: SideName, records: tuple[Records, Records]) -> Iterator[_Seen]:
    sides = [_paths(side.experiments, own) for side, own in zip((one.baseline, one.candidate), records, strict=True)]
    slow, fast = sides[::-1] if on == "candidate" else sides
    first, second = sides
    if _is_large(one) and fast.copies_once and slow.copies_once is False:
        yield Cost.CROSS_MEMORY, _copying(first), _copying(second)
    if first.modules and second.modules and first.modules != second.modules:
        yield Cost.TRANSPORT, _only(first, second), _only(second, first)
    if first.library and second.library and first.library != second.library:
        yield Cost.MPI_LIBRARY, first.library, second.library
    if slow.is_user_space and not fast.is_user_space and _reads_files(one):
        yield Cost.USER_FILES, first.root or "", second.root or ""


def _reads_files(one: Comparison) -> bool:
    """Whether programs of the image are read within what the figure times."""
    figure = declared_figure(one.benchmark, one.figure)
    return figure is not None and figure.role is Role.PROGRAM_START


def _paths(experiments: Sequence[str], records: Records) -> MessagePaths:
    return paths_of(record for key in experiments for record in records.get(key, ()))


def _is_large(one: Comparison) -> bool:
    """Whether messages may be large enough to be copied once; an application's may."""
    size = one.parameters.get("size_B")
    return not isinstance(size, int | float) or size >= _EAGER_B


def _copying(paths: MessagePaths) -> str:
    return f"yes ({bare(paths.single_copy)})" if paths.copies_once and paths.single_copy else paths.copying


def _only(own: MessagePaths, other: MessagePaths) -> str:
    """The modules that only one side has."""
    rest = [module for module in own.modules if module not in other.modules]
    return ", ".join(rest) if rest else "none of these"


def _spared(figures: Sequence[Comparison], comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The small messages of the same figures that are not clearly slower."""
    names = {(one.benchmark, one.figure) for one in figures}
    return tuple(
        one
        for one in comparisons
        if (one.benchmark, one.figure) in names
        and not _is_large(one)
        and one.verdict in (Verdict.SAME, Verdict.EQUIVALENT)
    )


def _share(figures: Sequence[Comparison], breakdowns: Sequence[Breakdown]) -> float | None:
    """What the cost of calls explains of the difference, by the profiles of the same benchmarks."""
    names = {one.benchmark for one in figures}
    shares = [
        sum(cause.share for cause in one.diagnoses if cause.change in _OF_CALLS)
        for one in breakdowns
        if one.benchmark in names and one.diagnoses
    ]
    return min(shares) if shares else None


def container_contrast(
    baseline: SideFacts,
    candidate: SideFacts,
    comparisons: Sequence[Comparison],
    breakdowns: Sequence[Breakdown],
) -> ContainerContrast | None:
    """The contrast of two sides; None if both run outside of containers, or in equal ones."""
    facts = container_facts(baseline, candidate)
    if not any(fact.is_unlike for fact in facts):
        return None
    costs = container_costs(comparisons, breakdowns, (baseline.records, candidate.records))
    return ContainerContrast(facts, costs)
