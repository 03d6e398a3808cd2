"""The rule about the BLAS of matrix products: kernels for an older processor, or a library that is not tuned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from seatrial.analysis.roles import Source, figures_with
from seatrial.analysis.rules.case import Case
from seatrial.analysis.rules.finding import Subject, rule, warning
from seatrial.analysis.rules.words import Names, again
from seatrial.environments.blas import HOW_TO_GET_ONE, Vectors, vectors_of_cpu, vectors_of_kernels
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.finding import Finding
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.spelling import show, show_percent

_NOT_TUNED = {
    "reference": "the reference BLAS of Netlib, which is not tuned",
    "atlas": "ATLAS, tuned when it was built",
}
_CHOICES = ("blas", "kernels")


@rule(Subject.LIBRARIES)
def blas_kernels_older(case: Case) -> Iterator[Finding]:
    """Fires if a matrix product ran with kernels for narrower vectors than the CPU has, or with a library that is not
    tuned; once for each experiment, its best figure. Only the best of several libraries is judged."""
    names = Names(case.results)
    for result, figure in _best(case):
        notes = notes_of(case, result)
        core, family = _text(notes, "blas_core"), _text(notes, "blas_family")
        used, own = vectors_of_kernels(core), vectors_of_cpu_of(case.machine)
        is_older = used is not None and own is not None and used.rank < own.rank
        if not is_older and family not in _NOT_TUNED:
            continue
        means = _of_vectors(used, own) if is_older and used and own else ""
        which = f"kernels for {core} ({used.name})" if is_older and used else _NOT_TUNED[family]
        has = f"; this CPU has {own.name}" if is_older and own else ""
        limit, share = figure.limit, figure.fraction_of_limit
        sure = "" if limit is None or limit.confirmed else "unconfirmed "
        reached = "" if share is None else f", {show_percent(share)} of its {sure}limit"
        yield warning(
            "blas-kernels-older",
            observation=f"{names.figure(result, figure)} ran with {which}{has}: {show(figure.median, figure.unit)}"
            f"{reached}.",
            diagnosis=means
            or "Its loops are compiled for any processor, or for the one that built it: tuned libraries "
            "reach several times its rate.",
            remedy=_remedy(case.machine, result, notes, core),
            evidence="; ".join(
                f"{name} = {_text(notes, name)}"
                for name in ("blas_path", "blas_version", "blas_core", "blas_own_core", "blas_better")
                if _text(notes, name)
            )
            or f"blas_family = {family}",
        )


def has_older_kernels(case: Case) -> frozenset[str]:
    """The ids of the experiments that `blas_kernels_older` names."""
    found = []
    for result, _ in _best(case):
        notes = notes_of(case, result)
        used, own = vectors_of_kernels(_text(notes, "blas_core")), vectors_of_cpu_of(case.machine)
        if (used is not None and own is not None and used.rank < own.rank) or _text(notes, "blas_family") in _NOT_TUNED:
            found.append(result.id)
    return frozenset(found)


def notes_of(case: Case, result: ExperimentResult) -> Mapping[str, Any]:
    """The notes of the first repeat with a figure."""
    for figure in result.figures:
        for repeat in figure.repeats:
            notes = case.seen.get((result.id, repeat.repeat), {}).get("notes")
            if isinstance(notes, Mapping):
                return notes
    return {}


def vectors_of_cpu_of(machine: Machine) -> Vectors | None:
    """The widest vectors that all packages have; None if a package does not state them."""
    features = [(package.facts.text("isa") or "").split() for package in machine.of_kind(DeviceKind.PACKAGE)]
    found = [vectors_of_cpu(one) for one in features]
    known = [vectors for vectors in found if vectors is not None]
    return min(known, key=lambda vectors: vectors.rank) if known and len(known) == len(found) else None


def _best(case: Case) -> Iterator[Source]:
    """The best figure of each setting but the choice of library and kernels: a study of libraries has slow ones."""
    best: dict[object, Source] = {}
    for result, figure in figures_with(case.results, Role.MATRIX_PRODUCT):
        settings = {**result.experiment.parameters, **figure.point}
        key = (result.experiment.benchmark, figure.name, *(i for i in settings.items() if i[0] not in _CHOICES))
        if key not in best or figure.median > best[key][1].median:
            best[key] = (result, figure)
    yield from best.values()


def _of_vectors(used: Vectors, own: Vectors) -> str:
    return (
        f"A library selects its kernels by a list of the processors that it knew when it was made, or by a variable. "
        f"Those with {used.name} leave the wider vectors of this CPU ({own.name}) unused, so no code of this library "
        "comes near the peak of the cores."
    )


def _remedy(machine: Machine, result: ExperimentResult, notes: Mapping[str, Any], core: str) -> str:
    own_core, better = _text(notes, "blas_own_core"), _text(notes, "blas_better")
    own, cpu = vectors_of_kernels(own_core), vectors_of_cpu_of(machine)
    if own_core and own_core != core and own is not None and cpu is not None and own.rank >= cpu.rank:
        first = (
            f"The library itself would select {own_core} here: remove the variable that selects {core} "
            "(such as OPENBLAS_CORETYPE), or leave kernels=own"
        )
    elif better:
        first = f"Use the library that is here and suits this CPU: `--set blas={better.partition(' (')[0]}` ({better})"
    else:
        first = f"No library with kernels for this CPU was found: {HOW_TO_GET_ONE}"
    return f"{first}. Then measure again: `{again(machine, result)}`"


def _text(notes: Mapping[str, Any], name: str) -> str:
    """A note as text; "" if it is missing or of another type."""
    value = notes.get(name)
    return value if isinstance(value, str) else ""
