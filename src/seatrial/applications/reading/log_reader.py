"""The reader of a log with the common shape: a line that names the program, signs of failure, a line that only a run
that ended has, and what the run states of itself. All this is declared; a function takes the times, and checks them
against what else the log says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seatrial.applications.reader import Reader
from seatrial.applications.reading.log import Found, Log, refuse_exploded
from seatrial.applications.reading.pattern import Pattern
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

Words = tuple[str, str]
"""A pattern of lines, and what it is, looks like, or means."""


class Measured(Frozen):
    """What the function of a reader takes from a log: samples, and what the declaration of the log does not have."""

    samples: Sequence[Sample]
    parameters: Mapping[str, Value] = {}
    notes: Mapping[str, object] = {}
    remarks: Sequence[str] = ()


def log_reader(
    of: Benchmark,
    tool: str,
    measured: Callable[[Log, Found, Found], Measured],
    *,
    begin: Words,
    end: Words,
    version: Words | None = None,
    refused: Sequence[Words] = (),
    signs: Sequence[Words] = (),
    temperature: str = "",
    states: Mapping[str, str] = {},
    remarked: Words | None = None,
) -> Reader:
    """The reader of logs of `tool`, with the figures that `of` declares. It raises ParseError for a run without figure.

    `begin`: the line that every log has once, and what it looks like. `version`: the line whose first group is the
    version, and the error if there is none; without it that is the first group of `begin`, if that has one. `end`: the
    line of a run that ended, and the error if there is none. `refused`: a whole line, and why a run that prints it has
    no figure; `signs`: what may be found in a line, and what it is a sign of; `temperature`: a line with kelvins, of
    which a simulation that has exploded has too many. `states`: parameter -> the lines with this whole number, which
    must all agree. `remarked`: a line that is reported to the user, and the words (`{text}` is the line itself).

    `measured` is given the log and its lines `begin` and `end`.
    """
    first, last = Pattern(begin[0]), Pattern(end[0])
    of_version, no_version = (None, "") if version is None else (Pattern(version[0]), version[1])
    failures = [(Pattern(pattern), why) for pattern, why in refused]
    found_in_lines = [(Pattern(pattern), why) for pattern, why in signs]
    kelvins, numbers = Pattern(temperature), {name: Pattern(pattern) for name, pattern in states.items()}
    unsound, words = (None, "") if remarked is None else (Pattern(remarked[0]), remarked[1])

    def read(data: bytes) -> ImportedFile:
        log = Log(tool, data)
        begun = log.banner(first, begin[1])
        named = begun if of_version is None else log.maybe(of_version, "version")
        if named is None:
            raise log.error(no_version)
        for pattern, why in failures:
            log.refuse(pattern, why)
        log.refuse_signs(*found_in_lines)
        for row in log.found(kelvins) if temperature else ():
            refuse_exploded(row, row.match[1])
        found = measured(log, begun, log.end(last, end[1]))
        doubts = log.found(unsound)[:1] if unsound is not None else []
        remarks = (*found.remarks, *(f"line {one.line.number}: {words.format(text=one.text(0))}" for one in doubts))
        parameters: dict[str, Value] = {**found.parameters, **log.stated(numbers)}
        experiment = ImportedExperiment(of.name, tuple(found.samples), parameters, found.notes, remarks=remarks)
        return ImportedFile(tool, named.text(1) if named.match.re.groups else "", (experiment,))

    return Reader(of.name.removeprefix("imported."), read)
