"""The history of a figure over sessions, joined by host: a new kernel or compiler is another machine or environment,
but the same host (docs/adr/0003).

A session is what one process recorded. Its median is one value, because repeats of one session resemble each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from msgspec import Struct

from seatrial.analysis.fairness.differences import differences
from seatrial.analysis.fairness.side import SideFacts
from seatrial.analysis.results import all_results
from seatrial.diagnosis.disturbance.missing import missing_cpu
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import several_figures
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.results.history import Change, FigureHistory, Session
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import point_key
from seatrial.model.spelling import count, day
from seatrial.stats.max_t import ALPHA, FEWEST, change_points
from seatrial.store.contents import Contents, files_of

FALSE_ALARM_RATE = ALPHA
"""Of each history that has no change."""
_ALWAYS = "time of measurement"
"""A difference between any two sides of a history."""


class _Session(Struct):
    """The repeats of one session, with what they refer to."""

    values: list[float] = []
    records: list[RepeatRecord] = []
    contents: list[Contents] = []

    @property
    def at(self) -> float:
        return min(record.t0 for record in self.records)


class _Series(Struct):
    result: ExperimentResult
    figure: FigureResult
    host: str
    sessions: dict[str, _Session] = {}
    known: set[tuple[str, float]] = set()
    """Experiment and start of the repeats."""


def histories(folders: Sequence[Contents], name: str) -> tuple[FigureHistory, ...]:
    """The histories of a figure (`FIGURE`, `BENCHMARK:FIGURE`, or the name of a benchmark with one main figure) over
    these folders, by benchmark, setting and host.

    Raises UnknownNameError if no folder has it, UsageError if only emulated processors have, or if the benchmark has
    several figures.
    """
    found = [(contents, result) for contents in folders for result in all_results(contents)]
    benchmark, _, figure = name.rpartition(":")
    if not benchmark and (own := _main_figures(name, [result for _, result in found])):
        if len(own) > 1:
            raise several_figures(name, own)
        benchmark, figure = name, own[0]
    known: set[str] = set()
    gathered = _Gathered()
    emulated = ""
    for contents, result in found:
        if result.emulated is not None and any(one.name == figure for one in result.emulated.figures):
            emulated = result.emulated.why
        for one in result.figures:
            known |= {one.name, f"{result.experiment.benchmark}:{one.name}"}
            if one.name == figure and benchmark in ("", result.experiment.benchmark):
                gathered.add(contents, result, one)
    if not len(gathered) and emulated:
        raise UsageError(f"{name} has no history: {emulated}", "name folders with results of a machine")
    if not len(gathered):
        raise UnknownNameError("figure", name, known)
    return gathered.histories()


def _main_figures(benchmark: str, results: Iterable[ExperimentResult]) -> list[str]:
    """The figures of a benchmark that are not secondary, also those of emulated processors."""
    own = [result for result in results if result.experiment.benchmark == benchmark]
    figures = [figure for one in own for figure in (*one.figures, *(one.emulated.figures if one.emulated else ()))]
    main = dict.fromkeys(figure.name for figure in figures if not figure.is_secondary)
    return list(main or dict.fromkeys(figure.name for figure in figures))


def long_histories(folders: Sequence[tuple[Contents, Sequence[ExperimentResult]]]) -> tuple[FigureHistory, ...]:
    """The histories of all figures that have enough sessions to find a change; the folders with their results."""
    if not _have_sessions([contents for contents, _ in folders], FEWEST):
        return ()
    gathered = _Gathered()
    for contents, results in folders:
        for result in results:
            for figure in result.figures:
                gathered.add(contents, result, figure)
    return gathered.histories(fewest=FEWEST)


def _have_sessions(folders: Sequence[Contents], fewest: int) -> bool:
    """Whether the folders have that many files of records."""
    found: set[tuple[int, str]] = set()
    for number, contents in enumerate(folders):
        for own in contents.places.by_experiment.values():
            found |= {(number, path) for path in files_of(own)}
            if len(found) >= fewest:
                return True
    return False


class _Gathered:
    """Figures by benchmark, setting and point, from experiments of several folders. The records of one figure at a time
    are read."""

    def __init__(self) -> None:
        self._figures: dict[tuple[object, ...], list[tuple[Contents, ExperimentResult, FigureResult]]] = {}

    def __len__(self) -> int:
        return len(self._figures)

    def add(self, contents: Contents, result: ExperimentResult, figure: FigureResult) -> None:
        """Add a figure of an experiment."""
        experiment = result.experiment
        own = (experiment.benchmark, point_key(experiment.parameters), figure.name, point_key(figure.point))
        self._figures.setdefault(own, []).append((contents, result, figure))

    def histories(self, fewest: int = 1) -> tuple[FigureHistory, ...]:
        """The histories of at least so many sessions on a host, by benchmark, setting, point and host."""
        found = [
            ((*key, host), _history(series))
            for key, figures in self._figures.items()
            for host, series in _by_host(figures).items()
            if len(series.sessions) >= fewest
        ]
        return tuple(history for _, history in sorted(found, key=lambda one: repr(one[0])))


def _by_host(figures: Iterable[tuple[Contents, ExperimentResult, FigureResult]]) -> dict[str, _Series]:
    """The repeats of a figure on each host. One that is there already is a copy, from a merge or a copied folder."""
    by_host: dict[str, _Series] = {}
    for contents, result, figure in figures:
        records = {record.repeat: record for record in contents.records[result.id]}
        places = contents.places.of(result.id)
        for repeat in figure.repeats:
            record = records[repeat.repeat]
            host = _host(record, contents.machines, result.experiment.machine)
            found = by_host.setdefault(host, _Series(result, figure, host))
            if (record.experiment, record.t0) in found.known:
                continue
            found.known.add((record.experiment, record.t0))
            where = places.get(repeat.repeat)
            session = found.sessions.setdefault(where.path if where else str(repeat.t0), _Session())
            session.values.append(repeat.value)
            session.records.append(record)
            session.contents.append(contents)
    return by_host


def _host(record: RepeatRecord, machines: Mapping[str, Mapping[str, Any]], machine: str) -> str:
    hosts = record.seen.get("hosts") or [record.seen.get("host") or machines[machine].get("name") or "unknown"]
    return " ".join(dict.fromkeys(hosts))


def _history(series: _Series) -> FigureHistory:
    sessions = sorted(series.sessions.values(), key=lambda session: session.at)
    values = [median(session.values) for session in sessions]
    found = change_points(values)
    edges = [0, *(change.index for change in found), len(values)]
    changes = []
    for n, change in enumerate(found, start=1):
        before, after = sessions[edges[n - 1] : edges[n]], sessions[edges[n] : edges[n + 1]]
        changes.append(
            Change(
                index=change.index,
                last_before=sessions[change.index - 1].at,
                first_after=sessions[change.index].at,
                before=median(values[edges[n - 1] : edges[n]]),
                after=median(values[edges[n] : edges[n + 1]]),
                sureness=1.0 - change.p_value,
                differences=tuple(one for one in differences(_side(before), _side(after), None) if one.what != _ALWAYS),
            )
        )
    few = f"with {count(len(values), 'session')}, no change can be found: at least {FEWEST} are needed"
    figure = series.figure
    return FigureHistory(
        benchmark=series.result.experiment.benchmark,
        figure=figure.name,
        parameters={**series.result.experiment.parameters, **figure.point},
        host=series.host,
        unit=figure.unit,
        better=figure.better,
        sessions=tuple(
            Session(session.at, value, len(session.values), _no_cpu(session))
            for session, value in zip(sessions, values, strict=True)
        ),
        changes=tuple(changes),
        why_not=few if len(values) < FEWEST else "",
    )


def _no_cpu(session: _Session) -> NoCpu | None:
    return missing_cpu([record.seen for record in session.records], f"the session of {day(session.at)}")


def _side(sessions: Sequence[_Session]) -> SideFacts:
    """The facts behind sessions, which may be of several folders."""
    records: dict[str, list[RepeatRecord]] = {}
    experiments: dict[str, Experiment] = {}
    environments: dict[str, Mapping[str, Any]] = {}
    machines: dict[str, Mapping[str, Any]] = {}
    for session in sessions:
        for record, contents in zip(session.records, session.contents, strict=True):
            experiment = experiments[record.experiment] = contents.experiments[record.experiment]
            records.setdefault(record.experiment, []).append(record)
            machines[experiment.machine] = contents.machines[experiment.machine]
            if experiment.environment:
                environments[experiment.environment] = contents.environments[experiment.environment]
    return SideFacts(experiments, {key: tuple(own) for key, own in records.items()}, environments, machines)
