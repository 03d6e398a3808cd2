"""Rules about experiments that should have produced figures but did not, about figures and their limits, and about the
BLAS of matrix products: kernels for an older processor, or a library that is not tuned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.analysis.roles import Source, figures_with, is_of_devices
from seatrial.analysis.rules.expectation import (
    ABOVE_CEILING,
    FAR_BELOW,
    LOW_SHARE,
    Judge,
    settings_of_limit,
    under,
    unsteady_words,
)
from seatrial.analysis.rules.finding import Case, Names, Subject, again, error, listed, note, rule, warning
from seatrial.environments.blas import HOW_TO_GET_ONE, Vectors, vectors_of_cpu, vectors_of_kernels
from seatrial.model.benchmark.benchmark import Better, Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.model.spelling import count, show, show_percent
from seatrial.model.units import Unit

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
    for result, figure, notes, vectors in _with_older_kernels(case):
        core, family = _text(notes, "blas_core"), _text(notes, "blas_family")
        if vectors is not None:
            used, own = vectors
            means, which, has = _of_vectors(*vectors), f"kernels for {core} ({used.name})", f"; this CPU has {own.name}"
        else:
            means, which, has = "", _NOT_TUNED[family], ""
        limit, share = figure.limit, figure.fraction_of_limit
        sure = "" if limit is None or limit.confirmed else "unconfirmed "
        reached = "" if share is None or result.no_cpu is not None else f", {show_percent(share)} of its {sure}limit"
        yield warning(
            "blas-kernels-older",
            observation=f"{names.figure(result, figure)} ran with {which}{has}: {show(figure.median, figure.unit)}"
            f"{reached}.",
            diagnosis=means
            or "Its loops are compiled for any processor, or for the one that built it: tuned libraries "
            "reach several times its rate.",
            remedy=_other_library(case.machine, result, notes, core),
            evidence="; ".join(
                f"{name} = {_text(notes, name)}"
                for name in ("blas_path", "blas_version", "blas_core", "blas_own_core", "blas_better")
                if _text(notes, name)
            )
            or f"blas_family = {family}",
        )


def has_older_kernels(case: Case) -> frozenset[str]:
    """The ids of the experiments that `blas_kernels_older` names."""
    return frozenset(result.id for result, *_ in _with_older_kernels(case))


def _with_older_kernels(
    case: Case,
) -> Iterator[tuple[ExperimentResult, FigureResult, Mapping[str, Any], tuple[Vectors, Vectors] | None]]:
    """What the rule names, with its notes, and the vectors of kernels and CPU if the former are narrower."""
    own = vectors_of_cpu_of(case.machine)
    for result, figure in _best(case):
        notes = notes_of(case, result)
        used = vectors_of_kernels(_text(notes, "blas_core"))
        if used is not None and own is not None and used.rank < own.rank:
            yield result, figure, notes, (used, own)
        elif _text(notes, "blas_family") in _NOT_TUNED:
            yield result, figure, notes, None


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

    def setting(result: ExperimentResult, figure: FigureResult) -> tuple[object, ...]:
        settings = {**result.experiment.parameters, **figure.point}.items()
        return result.experiment.benchmark, figure.name, *(item for item in settings if item[0] not in _CHOICES)

    sources = grouped((setting(*source), source) for source in figures_with(case.results, Role.MATRIX_PRODUCT))
    for own in sources.values():
        yield max(own, key=lambda source: source[1].median)


def _of_vectors(used: Vectors, own: Vectors) -> str:
    return (
        f"A library selects its kernels by a list of the processors that it knew when it was made, or by a variable. "
        f"Those with {used.name} leave the wider vectors of this CPU ({own.name}) unused, so no code of this library "
        "comes near the peak of the cores."
    )


def _other_library(machine: Machine, result: ExperimentResult, notes: Mapping[str, Any], core: str) -> str:
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


class LimitReach(Frozen):
    """A figure with a known limit; `ceiling` is the limit's value, `of_attainable` is compared with thresholds."""

    share: float
    of_attainable: float
    result: ExperimentResult
    figure: FigureResult
    limit: Limit
    ceiling: float


@rule(Subject.LIMITS)
def below_limit(case: Case) -> Iterator[Finding]:
    """Fires if even the best figure of a benchmark is far below a physical limit; see `expectation`.

    Figures of one benchmark under one limit (copy, scale, add and triad under that of DRAM) are one finding.
    """
    judge, names = Judge(case.results), Names(case.results)
    groups = grouped(
        ((one, reach.ceiling), reach)
        for reach in _reaches(case)
        if (one := under(reach.result, reach.figure)) is not None and judge.is_low(reach.result, reach.figure)
    )
    for group in groups.values():
        yield _below(case.machine, sorted(group, key=lambda reach: reach.of_attainable), names)


@rule(Subject.LIMITS)
def far_below_limit(case: Case) -> Iterator[Finding]:
    """Fires if even the best figure under an unconfirmed limit is below `FAR_BELOW` of it: no doubt about the limit is
    that large. What `blas_kernels_older` explains is left to it."""
    names, explained = Names(case.results), has_older_kernels(case)
    groups = grouped(
        ((settings_of_limit(reach.result, reach.figure), reach.figure.name), reach)
        for reach in _reaches(case)
        if reach.limit.basis is Basis.PHYSICAL and not reach.limit.confirmed
    )
    for group in groups.values():
        reach = max(group, key=lambda one: one.of_attainable)
        if reach.of_attainable >= FAR_BELOW or reach.result.id in explained:
            continue
        yield warning(
            "far-below-limit",
            observation=f"{names.figure(reach.result, reach.figure)} reaches "
            f"{show(reach.figure.median, reach.figure.unit)}, {show_percent(reach.share)} of its unconfirmed limit of "
            f"{show(reach.ceiling, reach.figure.unit)}{unsteady_words(reach.figure)}.",
            diagnosis="The limit rests on a value that was not confirmed for this machine, but it would have to be "
            f"wrong by more than a factor of {1 / FAR_BELOW:.0f}"
            f"{_possible_causes(reach.result, reach.figure.unit).replace(', protocol and refresh included', '')}.",
            remedy=f"Fix the other findings, then measure again: `{again(case.machine, reach.result)}`",
            evidence=f"{_interval(reach.figure)}; limit: {reach.limit.derivation}",
        )


def _below(machine: Machine, reaches: Sequence[LimitReach], names: Names) -> Finding:
    worst, others = reaches[0], reaches[1:]
    figure = worst.figure
    least = LOW_SHARE * figure.attainable.share
    expected = worst.ceiling * least if figure.better is Better.HIGHER else worst.ceiling / least
    also = listed(f"{reach.figure.name} ({show_percent(reach.share)})" for reach in others)
    why = f" ({figure.attainable.why})" if figure.attainable.why else ""
    healthy = show_percent(LOW_SHARE) + (" of the attainable share" if why else "")
    return warning(
        "below-physical-limit",
        observation=f"{names.figure(worst.result, figure)} reaches {show(figure.median, figure.unit)}, "
        f"{show_percent(worst.share)} of its physical limit of {show(worst.ceiling, figure.unit)}{why}"
        f"{unsteady_words(figure)}." + (f" Also far below this limit: {also}." if others else ""),
        diagnosis=f"Expected: {show(expected, figure.unit)} or better. A healthy machine reaches {healthy}"
        f"{_possible_causes(worst.result, figure.unit)}, or the limit does not apply to this machine.",
        remedy=f"Fix the other findings, then measure again: `{again(machine, worst.result)}`",
        evidence=f"{_interval(figure)}; limit: {worst.limit.derivation}",
        loss=1 - worst.of_attainable,
    )


def _possible_causes(result: ExperimentResult, unit: Unit) -> str:
    if is_of_devices(result):
        return (
            ". Possible causes: a lowered clock (power, heat), other work on the device; for copies to and from the "
            "host also unpinned memory, memory on the far socket, or a link that slows down under load"
        )
    if unit == "flop/s":
        return (
            ". Possible causes: a library or compiler without code for this processor, other work on the machine, "
            "threads that share a core"
        )
    return (
        ", protocol and refresh included. Possible causes: a setting, missing memory channels, other work on the "
        "machine, too few threads for the limit"
    )


@rule(Subject.LIMITS)
def above_ceiling(case: Case) -> Iterator[Finding]:
    """Fires if figures exceed a ceiling that another benchmark measured, or a limit that rests on an unconfirmed value:
    unusual, but possible."""
    names = Names(case.results)
    above = sorted(
        (reach for reach in _reaches(case) if not reach.limit.is_physical and reach.share > ABOVE_CEILING),
        key=lambda reach: -reach.share,
    )
    if not above:
        return
    result, figure = above[0].result, above[0].figure
    is_measured = above[0].limit.basis is Basis.MEASURED
    what = "a measured ceiling" if is_measured else "an unconfirmed limit"
    others = f" So are {len(above) - 1} more." if len(above) > 1 else ""
    yield note(
        "above-expected",
        observation=f"{names.figure(result, figure)} is above expected: {show(figure.median, figure.unit)} is "
        f"{show_percent(above[0].share)} of {what}.{others}",
        diagnosis="A measured ceiling is what another program reached, not the maximum of the hardware. This program "
        "reached more: its instructions or data suit the machine better, or the ceiling was measured under load."
        if is_measured
        else "The limit rests on a value that was not confirmed for this machine: the figure may be right and the "
        "limit too low.",
        remedy=f"Measure both again side by side: `{again(case.machine, result)}`",
        evidence=f"ceiling: {above[0].limit.derivation}; "
        + listed(f"{names.figure(reach.result, reach.figure)}: {show_percent(reach.share)}" for reach in above),
    )


def _reaches(case: Case) -> Iterator[LimitReach]:
    """Every figure with a known limit, of programs that had the CPUs they asked for."""
    for result in (one for one in case.results if one.no_cpu is None):
        for figure in result.figures:
            share, of_attainable, limit = figure.fraction_of_limit, figure.share_of_attainable, figure.limit
            if share is not None and of_attainable is not None and limit is not None and limit.value is not None:
                yield LimitReach(share, of_attainable, result, figure, limit, limit.value)


def _interval(figure: FigureResult) -> str:
    repeats = f"{count(figure.n_repeats, 'repeat')}, {count(figure.n_samples, 'sample')}"
    if figure.ci95 is None:
        return f"median of {repeats}"
    low, high = (show(end, figure.unit) for end in figure.ci95)
    return f"median of {repeats}, 95 % interval {low} to {high}"


_ENDED = {State.INVALID: "is invalid", State.FAILED: "failed", State.TIMED_OUT: "timed out"}
_MEANS = {
    State.INVALID: "It ran, but a check of its results failed, so its figures cannot be trusted and are not shown. "
    "The raw samples are kept.",
    State.FAILED: "It produced no result.",
    State.TIMED_OUT: "It took much longer than planned and was killed with all its child processes: it hangs, or the "
    "machine is far slower than expected.",
}
_WHAT_TO_DO = {
    Stage.BUILD: "Read the compiler's message below and check the compilers found with `seatrial list`, then",
    Stage.LAUNCH: "Check that the program can be started here (memory, CPU mask, a folder mounted noexec), then",
    Stage.RUN: "Read the end of its output below and look for killed processes with `sudo dmesg | tail`, then",
    Stage.RECORD: "Check that the results folder is writable and has free space (`df -h .`), then",
}


@rule(Subject.OUTCOMES)
def no_figures(case: Case) -> Iterator[Finding]:
    """Fires if experiments are invalid, failed or timed out; those with the same reason are one finding."""
    names = Names(case.results)
    ended = (result for result in case.results if result.outcome.state in _ENDED)
    groups = grouped(((result.outcome.state, result.outcome.reason), result) for result in ended)
    for (state, reason), results in groups.items():
        first = results[0]
        others = f" The same happened to {count(len(results) - 1, 'other experiment')}." if len(results) > 1 else ""
        yield error(
            f"experiment-{state.value.replace('_', '-')}",
            observation=f"{names.experiment(first)} {_ENDED[state]}: {reason or 'no reason was recorded'}.{others}",
            diagnosis=_MEANS[state],
            remedy=f"{_remedy(first.outcome)} `{again(case.machine, first)}`",
            evidence="\n".join(
                filter(None, [listed(names.experiment(result) for result in results), first.outcome.evidence.strip()])
            ),
            loss=1.0,
        )


def _remedy(outcome: Outcome) -> str:
    if outcome.state is State.INVALID:
        return "Run it again alone; if it stays invalid, suspect the machine rather than the program:"
    if outcome.state is State.TIMED_OUT:
        return "Check what else is running (`top`), then run it alone:"
    return "Run it again alone:" if outcome.stage is None else _WHAT_TO_DO[outcome.stage]
