"""The parts of a study that were measured on different systems, joined to the study again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from msgspec.structs import replace

from seatrial.model.benchmark.parameter import Value
from seatrial.model.study.study import SYSTEM, Axis, KeptStudy, RepeatPolicy, Study


def asked_by(kept: KeptStudy) -> Hashable:
    """What parts of one study have in common, and runs of one study with another budget; a study on another machine is
    another one, unless it has systems."""
    study = replace(kept.study, question="", repeat=RepeatPolicy(), references=())
    if not study.systems:
        return study.name, kept.machine, repr(study)
    moving = study.moves_with(SYSTEM)
    axes = tuple(Axis(axis.name, ()) if axis.name in moving else axis for axis in study.axes)
    return study.name, "", repr(replace(study, axes=axes, include=()))


def joined(parts: Sequence[KeptStudy]) -> KeptStudy:
    """One study from runs of it, the latest last: of each system its latest part, that of the baseline first. Without
    systems, the latest run."""
    latest = {kept.study.systems: kept for kept in parts}
    if () in latest or len(latest) == 1:
        return parts[-1]
    compare = parts[-1].study.compare
    baseline = compare.baseline if compare is not None and compare.along == SYSTEM else None
    own = sorted(latest.values(), key=lambda kept: baseline not in kept.study.systems)
    study = own[0].study
    moving = study.moves_with(SYSTEM)
    whole = replace(
        study,
        axes=tuple(_axis(axis, own) if axis.name in moving else axis for axis in study.axes),
        include=tuple(entry for kept in own for entry in kept.study.include),
        repeat=replace(study.repeat, budget_s=sum(kept.study.repeat.budget_s for kept in own)),
    )
    return KeptStudy(whole, own[0].machine, tuple(point for kept in own for point in kept.points))


def _axis(axis: Axis, parts: Sequence[KeptStudy]) -> Axis:
    """An axis with the values of all parts."""
    values: list[Value | None] = []
    for kept in parts:
        values += _own(kept.study, axis.name)
    return Axis(axis.name, tuple(values))


def _own(study: Study, name: str) -> tuple[Value | None, ...]:
    axis = study.axis(name)
    return () if axis is None else axis.values
