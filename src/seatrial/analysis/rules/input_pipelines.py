"""Rules about what limits a training: its network, or the pipeline that reads and decodes its data."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.analysis.grouped import grouped
from seatrial.analysis.roles import Source, figures_with
from seatrial.analysis.rules.finding import Case, Names, Subject, again, note, rule, warning
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.benchmark.parameter import whole
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import count, show_percent

_APART = 0.05
"""Rates that are closer say nothing."""
_WAITING = 0.1
"""Below this share of the time, waiting is not reported."""
_RESIDENT, _FROM_MEMORY = "device", "host"


class _Need(Frozen):
    """What a network takes, in images per second: as the user stated, or as measured with data on the device."""

    low: float
    rate: float
    high: float
    words: str
    evidence: str
    device: str = ""


@rule(Subject.INPUT)
def steps_wait_for_data(case: Case) -> Iterator[Finding]:
    """Fires for each training whose steps surely wait for data for more than `_WAITING` of the time."""
    names = Names(case.results)
    for result, figure in figures_with(case.results, Role.DATA_WAIT):
        low, high = _interval(figure)
        if low <= _WAITING or result.no_cpu is not None:
            continue
        data = result.experiment.parameters.get("data")
        is_made_up = data in (_RESIDENT, _FROM_MEMORY)
        workers = _by_workers(result) if not is_made_up else ""
        source = "made-up data in memory" if is_made_up else f"{data}{workers}"
        yield warning(
            "steps-wait-for-data",
            observation=f"{names.experiment(result)} waits for data for {show_percent(figure.median)} of its steps' "
            f"time ({source}).",
            diagnosis="The network takes batches faster than they come: computing and exchange take the "
            f"other {show_percent(1 - figure.median)}.",
            remedy="Measure the copy of batches alone: compare with data=device"
            if is_made_up
            else "Measure with more `workers`, `decode_threads` or `prefetch`, another format or `folder`: "
            f"`{again(case.machine, result)}`",
            evidence=f"{names.figure(result, figure)}: {show_percent(figure.median)}, from {show_percent(low)} to "
            f"{show_percent(high)} in {count(figure.n_repeats, 'repeat')}",
            loss=min(1.0, figure.median),
        )


@rule(Subject.INPUT)
def slower_part_of_training(case: Case) -> Iterator[Finding]:
    """Fires for the best input pipeline of each network, cold or warm, if what the network takes is known: a warning if
    the pipeline delivers less, a note if it delivers more."""
    names = Names(case.results)
    pipelines = grouped(
        (tuple(source[0].experiment.parameters.get(name) for name in ("model", "cache", "needed")), source)
        for source in figures_with(case.results, Role.INPUT_RATE)
        if source[0].no_cpu is None
    )
    for sources in pipelines.values():
        result, figure = max(sources, key=lambda source: source[1].median)
        need = _stated(result) or _measured(case, result, names)
        if need is None:
            continue
        low, high = _interval(figure)
        if high < (1 - _APART) * need.low:
            yield _pipeline_limits(case, (result, figure), need, names)
        elif low > (1 + _APART) * need.high:
            yield _network_limits(case, (result, figure), need, names)


def _pipeline_limits(case: Case, source: Source, need: _Need, names: Names) -> Finding:
    result, figure = source
    decoding = _decoding(result)
    share = "" if decoding is None else f" Decoding takes {show_percent(decoding)} of its time."
    beside = (
        " Both were measured alone: a network that computes on the same CPUs leaves the pipeline less."
        if need.device == "cpu"
        else ""
    )
    if decoding is None:
        first = "Measure with other settings"
    elif decoding > 0.5:
        first = "Measure with more workers, or store smaller images"
    else:
        first = "Measure with `folder` on faster storage, or another format (`data`)"
    return warning(
        "input-pipeline-limits",
        observation=f"{_pipeline(result)} delivers {_per_second(figure.median)}, {need.words}: the pipeline limits.",
        diagnosis=f"A training that reads these data waits for {show_percent(1 - figure.median / need.rate)} of its "
        f"time, or longer.{share}{beside}",
        remedy=f"{first}: `{again(case.machine, result)}`",
        evidence=_evidence(case, source, need, names),
        loss=1 - figure.median / need.rate,
    )


def _network_limits(case: Case, source: Source, need: _Need, names: Names) -> Finding:
    result, figure = source
    shared = (
        "Both were measured alone: on the same CPUs each gets less."
        if need.device == "cpu"
        else "Faster reading or decoding gains nothing."
    )
    return note(
        "network-limits",
        observation=f"{_pipeline(result)} delivers {_per_second(figure.median)}, {need.words}: the network limits.",
        diagnosis=f"The pipeline delivers {figure.median / need.rate:.3g} times what the network takes. {shared}",
        remedy=f"Nothing to do for these data. To measure again: `{again(case.machine, result)}`",
        evidence=_evidence(case, source, need, names),
    )


def _stated(result: ExperimentResult) -> _Need | None:
    needed = result.experiment.parameters.get("needed")
    if not isinstance(needed, int | float) or needed <= 0:
        return None
    rate = float(needed)
    return _Need(rate, rate, rate, f"{_per_second(rate)} are needed", f"needed = {needed:g}, as given")


def _measured(case: Case, of: ExperimentResult, names: Names) -> _Need | None:
    """The best training of that network on this machine with data on the device, for each node."""
    trainings = [
        (result, figure)
        for result, figure in _trainings(case, of)
        if result.experiment.parameters.get("data") == _RESIDENT
    ]
    if not trainings:
        return None
    result, figure = max(trainings, key=lambda source: source[1].median / _nodes(source[0]))
    low, rate, high = (value / _nodes(result) for value in (_interval(figure)[0], figure.median, _interval(figure)[1]))
    model = result.experiment.parameters["model"]
    each = " on each node" if _nodes(result) > 1 else ""
    evidence = f"{names.figure(result, figure)}, data on the device: {_per_second(rate)}{each}"
    device = str(result.experiment.parameters.get("device", ""))
    return _Need(low, rate, high, f"{model} takes {_per_second(rate)}{each}", evidence, device)


def _trainings(case: Case, of: ExperimentResult) -> Iterator[Source]:
    for result, figure in figures_with(case.results, Role.TRAINING_RATE):
        same = result.experiment.machine == of.experiment.machine
        model = result.experiment.parameters.get("model")
        if same and model == of.experiment.parameters.get("model") and result.no_cpu is None:
            yield result, figure


def _nodes(result: ExperimentResult) -> int:
    return max(1, whole(result.experiment.parameters.get("nodes", 1)))


def _interval(figure: FigureResult) -> tuple[float, float]:
    return (figure.median, figure.median) if figure.ci95 is None else figure.ci95


def _decoding(result: ExperimentResult) -> float | None:
    return next((figure.median for _, figure in figures_with([result], Role.INPUT_DECODING)), None)


def _pipeline(result: ExperimentResult) -> str:
    given = result.experiment.parameters
    return f"The input pipeline ({given.get('data')}, {given.get('cache')}){_by_workers(result)}"


def _by_workers(result: ExperimentResult) -> str:
    workers = result.experiment.parameters.get("workers")
    return f" with {count(whole(workers), 'worker')}" if isinstance(workers, int) else ""


def _evidence(case: Case, source: Source, need: _Need, names: Names) -> str:
    result, figure = source
    read = [
        f"{names.figure(training, rate)}, data={data}: {_per_second(rate.median)}"
        for training, rate in _trainings(case, result)
        if (data := training.experiment.parameters.get("data")) not in (_RESIDENT, _FROM_MEMORY)
    ]
    return "; ".join([f"{names.figure(result, figure)}: {_per_second(figure.median)}", need.evidence, *read[:2]])


def _per_second(rate: float) -> str:
    return f"{rate:,.0f} images/s" if rate >= 100 else f"{rate:.3g} images/s"
