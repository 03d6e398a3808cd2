"""Logs of Simcenter STAR-CCM+ in batch: the times in its table of iterations.

STAR-CCM+ prints times only on request. A simulation with the reports `Total Solver Elapsed Time` or `Solver
Iteration Elapsed Time` prints them as columns of the table of residuals; `Total Solver CPU Time` is a sum over the
processes. The total goes on from what the simulation file has saved, so it is that of the run only if the table begins
with iteration 1 or 2; the time of an iteration is a difference, and holds in any case.

Format from documentation: the layout of logs and tables as sites and clouds show it in their guides.

`apps.star-ccm`: Simcenter STAR-CCM+ on the user's simulation.

The simulation must have the report `Total Solver Elapsed Time` and print its monitor: STAR-CCM+ prints no time else.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Sequence
from itertools import pairwise

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.text import LogLine, Pattern, number
from seatrial.applications.running.given_input import FROM_DOCUMENTATION, application
from seatrial.model.benchmark.given_input import INPUT
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

_PROCESSES = Pattern(r"Total number of processes ?: ([0-9]{1,9})")
_LOADED = Pattern(r"(?:Simcenter )?STAR-CCM\+ .{1,200} Np=([0-9]{1,9})")
_LOADING = Pattern(r"Loading into:")
_HEADER_LIKE = Pattern(r"\s*Iteration\s.{1,4000}")
_ROW = Pattern(r"\s*([0-9]{1,9})(?:\s+[-+.0-9eEnaifNAIF]{1,30}){1,200}\s*")
_TOTAL, _ITERATION = "Total Solver Elapsed Time (s)", "Solver Iteration Elapsed Time (s)"
_FIRST = 2
"""A table that begins later continues that of an earlier run."""
_LONGEST = 20.0
"""No iteration takes so many times the median: files are written after it, which takes time of the solver, too."""
_MEAN_APART = 1.5
"""The most by which the mean of steady iterations exceeds their median, or is below it."""


class _Row(Frozen):
    """One iteration: its number, its line, and the cells of its row."""

    iteration: int
    line: LogLine
    cells: Sequence[str]

    def printed(self, at: int) -> Printed:
        """A time. Raises ParseError."""
        return Printed.of(self.line.number_of(self.cells[at], "an elapsed time"), self.cells[at])


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    columns, rows = _table(log)
    if end.line.number < rows[-1].line.number:
        why = f"an iteration after the end of the run on line {end.line.number}: two runs in one file"
        raise rows[-1].line.error(why)
    parameters: dict[str, Value] = {"iterations": len(rows)}
    stated = {one.match[1] for one in log.found(_PROCESSES)} | _loaded_on(log)
    if len(stated) > 1:
        raise begin.error(f"the file states {' and '.join(sorted(stated))} processes")
    if stated:
        parameters["ranks"] = int(stated.pop())
    return Measured(_samples(columns, rows), parameters)


def _loaded_on(log: Log) -> set[str]:
    """The processes that the simulation was loaded on; another run may have saved it."""
    below = [log.lines[one.line.number] for one in log.found(_LOADING) if one.line.number < len(log.lines)]
    return {one.match[1] for one in log.found(_LOADED, below)}


def _table(log: Log) -> tuple[list[str], list[_Row]]:
    """Columns and rows of the table. Raises ParseError if rows are missing or damaged, or columns cannot be
    distinguished: their names have spaces, so they must be apart by two."""
    headers = [line for line in log.lines if _HEADER_LIKE.fullmatch(line.text)]
    if not headers:
        raise log.error("no table of iterations")
    columns = re.split(r"\s{2,}", headers[0].text.strip())
    for other in headers[1:]:
        if re.split(r"\s{2,}", other.text.strip()) != columns:
            raise other.error(f"other columns than on line {headers[0].number}: two runs, or damaged")
    if not {_TOTAL, _ITERATION} & set(columns):
        raise headers[0].error(f"no column `{_TOTAL}`: add this report to the simulation, and print its monitor")
    if len(set(columns)) < len(columns):
        raise headers[0].error("a column twice")
    rows: list[_Row] = []
    for line in log.lines[headers[0].number :]:
        match = _ROW.fullmatch(line.text)
        if match is None:
            continue
        cells = line.text.split()
        if len(cells) != len(columns) or not line.is_ended:
            raise line.error(f"{len(cells)} values, but the table has {len(columns)} columns")
        if any(number(cell) is None for cell in cells):
            raise line.error("a residual or report is not a number: the solution has diverged")
        if rows and int(match[1]) != rows[-1].iteration + 1:
            raise line.error(f"not iteration {rows[-1].iteration + 1}: rows are missing, or two runs")
        rows.append(_Row(int(match[1]), line, cells))
    if len(rows) < 3:
        raise log.not_ended(f"{len(rows)} iterations, of which the first is not steady")
    return columns, rows


def _samples(columns: Sequence[str], rows: Sequence[_Row]) -> tuple[Sample, ...]:
    """The steady time of an iteration, and that of the run if the table holds all of it. Raises ParseError."""
    samples: list[Sample] = []
    if _TOTAL in columns:
        at = columns.index(_TOTAL)
        totals = [row.printed(at) for row in rows]
        steps = [after.value - before.value for before, after in pairwise(totals)]
        _check_steps(steps, rows)
        if _ITERATION in columns:
            _check_iterations(columns.index(_ITERATION), rows, totals)
        took = Printed(totals[-1].value - totals[0].value, totals[-1].error + totals[0].error)
        samples.append(took.sample("step", count=len(steps)))
        if rows[0].iteration <= _FIRST:
            samples.append(totals[-1].sample("wall"))
        return tuple(samples)
    at = columns.index(_ITERATION)
    each = [row.printed(at) for row in rows[1:]]
    _check_steps([one.value for one in each], rows)
    mean = Printed(statistics.fmean(one.value for one in each), statistics.fmean(one.error for one in each))
    return (mean.sample("step"),)


def _check_steps(steps: Sequence[float], rows: Sequence[_Row]) -> None:
    middle = statistics.median(steps)
    for step, row in zip(steps, rows[1:], strict=True):
        if not 0 < step <= _LONGEST * middle:
            raise row.line.error(f"this iteration took {step:g} s, {middle:g} s is the median")
    mean = statistics.fmean(steps)
    if not middle / _MEAN_APART <= mean <= middle * _MEAN_APART:
        raise rows[-1].line.error(f"iterations took {mean:g} s on average, but {middle:g} s in the median: not steady")


def _check_iterations(at: int, rows: Sequence[_Row], totals: Sequence[Printed]) -> None:
    """The time of each iteration is the difference of the totals. Raises ParseError."""
    for row, before, after in zip(rows[1:], totals, totals[1:], strict=False):
        one = row.printed(at)
        if not Printed(after.value - before.value, before.error + after.error + 0.01 * one.value).agrees(one):
            raise row.line.error("the time of this iteration is not the difference of the totals")


IMPORTED = figures.imported(
    "star-ccm",
    "STAR-CCM+",
    "How long did STAR-CCM+ take for an iteration?",
    (figures.count("ranks", "processes"), figures.count("iterations", "iterations of the run")),
    (
        figures.time("step", "mean elapsed time of an iteration, without the first one of the table"),
        figures.time("wall", "elapsed time of the solver from the first iteration on (Total Solver Elapsed Time)"),
    ),
)

READER = log_reader(
    IMPORTED,
    "STAR-CCM+",
    _measured,
    # `saved by` names the program that wrote the simulation, with its date.
    begin=(
        r"(?:Simcenter )?STAR-CCM\+ ([0-9][0-9.]{1,12}(?: Build [0-9.]{1,20})?) \(\S{1,80}\)",
        "STAR-CCM+ 10.06.009 (linux-x86_64-2.5/gnu4.8)",
    ),
    signs=(
        (
            r"Server process exited with code [1-9]|[Ff]loating [Pp]oint [Ee]xception|Server Error|Segmentation"
            r"|[Ll]icen[cs]e.{0,40}(?:denied|not available|[Ff]ailed)|^(?:error|Error): |solution has diverged",
            "the run failed",
        ),
    ),
    end=(
        r"Server process exited with code 0|Benchmark::(?:Output file name|HTML Report) : .{1,300}",
        "no `Server process exited with code 0`",
    ),
    is_from_documentation=True,
)


BENCHMARK = application(
    IMPORTED,
    "How long does STAR-CCM+ take for an iteration?",
    tool="STAR-CCM+",
    programs=("starccm+",),
    install="STAR-CCM+ needs a licence (https://plm.sw.siemens.com): put starccm+ on PATH, and set its licence",
    arguments=lambda params: ["-batch", "run", "-np", str(params["processes"]), str(params[INPUT])],
    starts="itself",
    evidence=FROM_DOCUMENTATION,
)
