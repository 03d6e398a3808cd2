"""A trial prepared for the page: results grouped by benchmark, rows with their settings, links to raw records.

Everything is derived from what the figures declare (name, unit, direction, limit, points), never from the name of a
benchmark, so a new benchmark needs no change to the page. Panels and charts only read a `TrialView`.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from heapq import nsmallest
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from markupsafe import Markup, escape

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.expectation import Judge, Judgement
from seatrial.model.frozen import Frozen
from seatrial.model.lazy import Lazy
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, RepeatValues
from seatrial.model.spelling import label, show_percent, show_range
from seatrial.model.study.result import PerRepeat, Trial, of_experiment
from seatrial.printable import SPACES, printable
from seatrial.report.blocks import Cell, right
from seatrial.report.intervals import no_interval_of

if TYPE_CHECKING:
    from jinja2 import Environment

_TEMPLATES = Path(__file__).parent / "templates"
_PIECE = 1 << 16
"""Characters of a piece of a page; the parts that a template yields have a few."""
_CODE = re.compile(r"`([^`\n]+)`")


@cache
def templates() -> Environment:
    """The environment of all templates, cached: everything is escaped unless marked as safe."""
    import jinja2  # loaded only when a page is written

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_printable,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["code"] = _with_code
    environment.filters["percent"] = show_percent
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


class Rendered:
    """A template, by its path in the folder of templates, with its context. It is rendered when it is used, a piece at
    a time: the page of a large folder has tens of MB, and its parts would be in memory beside the whole."""

    def __init__(self, template: str, **context: Any) -> None:
        self._template, self._context = template, context

    def __iter__(self) -> Iterator[Markup]:
        """The pieces of the text, which are escaped."""
        held, size = list[str](), 0
        for part in templates().get_template(self._template).generate(**self._context):
            held.append(part)
            size += len(part)
            if size >= _PIECE:
                yield Markup("".join(held))  # noqa: S704 - templates escape
                held, size = [], 0
        yield Markup("".join(held))  # noqa: S704

    def __html__(self) -> str:
        """The whole text."""
        return "".join(self)


def _printable(value: object) -> object:
    """Text from outside without unprintable characters: a name must not change the direction of a page's text."""
    return printable(value, f"\n\t{SPACES}") if type(value) is str else value


def style_sheet() -> Markup:
    """The style sheet of every page."""
    return Markup((_TEMPLATES / "style.css").read_text(encoding="utf-8"))  # noqa: S704 - our own text


def _with_code(text: str) -> Markup:
    """Text in which `backticks` become code; everything else is escaped."""
    pieces = _CODE.split(str(_printable(text)))
    return Markup("").join(_code(piece) if n % 2 else escape(piece) for n, piece in enumerate(pieces))


def _code(text: str) -> Markup:
    """A command, whose options are not broken behind a hyphen."""
    words = (
        Markup('<span class="part">{}</span>').format(w) if w.startswith("-") else escape(w) for w in text.split(" ")
    )
    return Markup("<code>{}</code>").format(Markup(" ").join(words))


MEDIAN_COLUMNS = right("Median", "95 % interval")
"""The headings of `median_cells`."""


def median_cells(figure: FigureResult) -> tuple[Cell, str]:
    """The cells of a figure's median and its interval, or why there is none."""
    return Cell.amount(figure.median, figure.unit, 4), interval_text(figure)


def interval_text(figure: FigureResult) -> str:
    """The interval of a figure, or why there is none."""
    if figure.ci95 is None:
        return no_interval_of(figure)
    return show_range(*figure.ci95, figure.unit, beside=figure.median)


_MOST_TRIED = 50
"""Repeats that are tried for a link."""


class RecordLink(Frozen):
    """Where a raw record is, and its address if the page may link to it."""

    path: str
    line: int
    href: str | None


class Row(Frozen):
    """One figure of one experiment at one sweep coordinate, or an experiment without figures (`figure` None).

    `settings` are those that distinguish its experiment, `point` the sweep coordinates inside the program.
    """

    result: ExperimentResult
    figure: FigureResult | None
    settings: str
    point: str
    judgement: Judgement
    record: RecordLink | None

    @property
    def name(self) -> str:
        """Figure and settings in one line, for labels."""
        parts = (self.figure.name if self.figure else "", self.settings, self.point)
        return " · ".join(part for part in parts if part) or self.result.experiment.benchmark


class BenchmarkView(Frozen):
    """All results of one benchmark. `shared` are the settings common to all of them, as text."""

    name: str
    question: str
    shared: str
    varying: tuple[str, ...]
    results: tuple[ExperimentResult, ...]
    rows: tuple[Row, ...]
    labels: Mapping[str, str]
    """Experiment id -> the benchmark's name with the settings that distinguish its experiments."""

    @property
    def measured(self) -> tuple[tuple[Row, FigureResult], ...]:
        """The rows that have a figure, with it."""
        return tuple((row, row.figure) for row in self.rows if row.figure is not None)


class TrialView(Frozen):
    """One trial with the data shared by all panels. `number` counts the trials of the page from 1."""

    trial: Trial
    number: int
    results_link: str | None
    judge: Judge
    benchmarks: tuple[BenchmarkView, ...]
    order: Mapping[tuple[str, int], int]
    """(experiment id, repeat) -> its position in time among all repeats of the trial, from 1."""

    def anchor(self, name: str) -> str:
        """An id that is unique on the page."""
        return f"m{self.number}-{re.sub(r'[^a-z0-9]+', '-', name.lower()).strip('-')}"

    def repeats(self, experiment: str) -> Sequence[int]:
        """The repeats of an experiment with observations, in order of time."""
        return list(of_experiment(self.trial.seen, experiment))

    def seen(self, experiment: str, repeats: Sequence[int] | None = None) -> Iterator[Mapping[str, Any]]:
        """What was observed around these repeats of an experiment; None: all, in order of time."""
        own = of_experiment(self.trial.seen, experiment)
        return (own[repeat] for repeat in (own if repeats is None else repeats))

    def record(self, experiment: str, repeat: int) -> RecordLink | None:
        """The raw record of a repeat, or None if it is unknown where it is."""
        return _record(self.trial, self.results_link, experiment, repeat)


def trial_view(trial: Trial, number: int, results_link: str | None) -> TrialView:
    """The view of one trial."""
    judge = Judge(trial.results)
    by_name = grouped((result.experiment.benchmark, result) for result in trial.results)
    benchmarks = tuple(_benchmark(trial, judge, results_link, name, results) for name, results in by_name.items())
    return TrialView(trial, number, results_link, judge, benchmarks, _order(trial))


def _benchmark(
    trial: Trial,
    judge: Judge,
    results_link: str | None,
    name: str,
    results: Sequence[ExperimentResult],
) -> BenchmarkView:
    every = [result.experiment.parameters for result in results]
    first = every[0]
    names = list(dict.fromkeys(key for parameters in every for key in parameters))
    varying = tuple(key for key in names if any(key not in each or each[key] != first.get(key) for each in every))
    shared = " · ".join(label(key, first[key]) for key in names if key not in varying)
    environments = {result.experiment.environment for result in results} - {""}
    rows: list[Row] = []
    labels: dict[str, str] = {}
    for result in results:
        parameters, environment = result.experiment.parameters, result.experiment.environment
        parts = [label(key, parameters[key]) for key in varying if key in parameters]
        if len(environments) > 1 and environment:
            parts.append(f"environment {trial.environments.get(environment, {}).get('name', environment)}")
        settings = " · ".join(parts)
        labels[result.id] = f"{name} ({settings})" if settings else name
        if not result.shown:
            repeats = list(of_experiment(trial.places, result.id))  # in order of time
            last = _record(trial, results_link, result.id, repeats[-1]) if repeats else None
            rows.append(Row(result, None, settings, "", judge.experiment(result), last))
        for figure in result.shown:
            point = " · ".join(label(key, value) for key, value in figure.point.items())
            record = _middle_record(trial, results_link, result, figure)
            rows.append(Row(result, figure, settings, point, judge.figure(result, figure), record))
    question = next((result.question for result in results if result.question), "")
    return BenchmarkView(name, question, shared, varying, tuple(results), tuple(rows), labels)


def _order(trial: Trial) -> Mapping[tuple[str, int], int]:
    """By column: 300,000 repeats would take 80 MB as keys and values of dictionaries."""
    repeats, orders, starts = array("q"), array("q"), array("d")
    bounds: dict[str, tuple[int, int]] = {}
    for result in trial.results:
        own = _starts(result)
        bounds[result.id] = (len(repeats), len(repeats) + len(own))
        repeats.extend(own)
        orders.extend(order for _, order in own.values())
        starts.extend(t0 for t0, _ in own.values())
    in_time = sorted(range(len(repeats)), key=orders.__getitem__)
    in_time.sort(key=starts.__getitem__)
    positions = array("q", bytes(8 * len(repeats)))
    for number, at in enumerate(in_time, start=1):
        positions[at] = number

    def of(experiment: str) -> dict[int, int]:
        rows = slice(*bounds[experiment])
        return dict(zip(repeats[rows], positions[rows], strict=True))

    return PerRepeat(Lazy(bounds, of))


def _starts(result: ExperimentResult) -> dict[int, tuple[float, int]]:
    """Repeat -> its start and its order."""
    starts: dict[int, tuple[float, int]] = {}
    known: object = None
    for figure in result.shown:
        own = figure.repeats
        if isinstance(own, RepeatValues):
            if own.repeats is known:
                continue  # the same repeats as those of the figure before
            known = own.repeats
            starts |= zip(own.repeats, zip(own.starts, own.orders, strict=True), strict=True)
        else:
            starts |= {one.repeat: (one.t0, one.order) for one in own}
    return starts


def nearest(figure: FigureResult, most: int) -> Iterator[int]:
    """The numbers of the repeats nearest to the median, nearest first."""
    values = figure.values
    places = nsmallest(most, range(len(values)), key=lambda place: abs(values[place] - figure.median))
    return (figure.repeats[place].repeat for place in places)


def _middle_record(
    trial: Trial, results_link: str | None, result: ExperimentResult, figure: FigureResult
) -> RecordLink | None:
    """The record of the repeat nearest to the median: the one that explains the number best."""
    links = (_record(trial, results_link, result.id, repeat) for repeat in nearest(figure, _MOST_TRIED))
    return next((link for link in links if link is not None), None)


def _record(trial: Trial, results_link: str | None, experiment: str, repeat: int) -> RecordLink | None:
    place = trial.places.get((experiment, repeat))
    if place is None:
        return None
    # A link with another scheme (javascript:, data:) would run code from a file name.
    safe = results_link is not None and not re.match(
        r"\s*(?!file:|https?:)[a-z][a-z0-9+.-]*:", results_link, re.IGNORECASE
    )
    href = f"{(results_link or '').rstrip('/')}/{quote(place.path)}" if safe else None
    return RecordLink(place.path, place.line, href)
