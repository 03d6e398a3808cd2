"""Logs of applications: what all their readers share.

A reader recognises its format by what the text is: a line of the program's banner, which is there once. A log gives a
figure only of a run that ended. `Printed` is a number with its rounding error, so that the numbers of a log can be
checked against each other. Conversions of units are here, and nowhere else.

The reader of a log with the common shape: a line that names the program, signs of failure, a line that only a run
that ended has, and what the run states of itself. All this is declared; a function takes the times, and checks them
against what else the log says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from datetime import datetime

from seatrial.applications.reading.figures import Reader, in_SI, rate_sample, time_sample
from seatrial.applications.reading.runs import Starts
from seatrial.applications.reading.tables import body
from seatrial.applications.reading.text import LogLine, Pattern, number, read_lines
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

HOTTEST_K = 10_000.0
"""A molecular simulation above this temperature has exploded: its atoms no longer interact, so its rate is none."""
_NOT_FINITE = Pattern(r"(?i)[+-]?(?:nan|inf)(?:\([a-z-]{0,9}\))?")
_ANY = Pattern(r"(?s).*")
_A_DAY_S = 86400.0
_FS_PER_NS = 1e6
_COMPUTED = 1e-5
"""Programs print some numbers from values that were rounded before (single precision)."""


class Printed(Frozen):
    """A number and how far the true value may be from it, at most, because of its printed digits."""

    value: float
    error: float

    @classmethod
    def of(cls, value: float, token: str) -> Printed:
        """`value` as it was printed in `token`, whose last digit is rounded."""
        return cls(value, half_unit(token))

    @property
    def resolution(self) -> float:
        """The step of the printed digits, as a share of the number (as samples state it)."""
        return 2.0 * self.error / self.value

    @property
    def share(self) -> float:
        """The error as a share of the number."""
        return self.error / self.value

    def scaled(self, factor: float) -> Printed:
        """In another unit, or of `factor` as many."""
        return Printed(self.value * factor, self.error * factor)

    def inverse(self, factor: float = 1.0) -> Printed:
        """`factor` over this number: a rate as a time, or a time as a rate."""
        return Printed(factor / self.value, factor / self.value * (self.error / self.value))

    def ns_time_from_days(self) -> Printed:
        """Seconds per simulated nanosecond, from days/ns (lower is better)."""
        return self.scaled(_A_DAY_S)

    def ns_time_from_rate(self) -> Printed:
        """Seconds per simulated nanosecond, from ns/day (higher is better)."""
        return self.inverse(_A_DAY_S)

    def ns_time_from_step(self, timestep_fs: float) -> Printed:
        """Seconds per simulated nanosecond, from seconds per step and the simulated time of a step."""
        return self.scaled(_FS_PER_NS / timestep_fs)

    def step_from_ns_time(self, timestep_fs: float) -> Printed:
        """Seconds per step, from seconds per simulated nanosecond."""
        return self.scaled(timestep_fs / _FS_PER_NS)

    def sample(self, series: str, *, i: int = 0, count: int = 1) -> Sample:
        """A time (s) as a sample, or that of one of `count` equal parts."""
        return time_sample(series, self.value / count, i=i, resolution=self.resolution)

    def rate_sample(self, series: str, unit: float = 1.0, *, i: int = 0) -> Sample:
        """A rate, in this unit of SI, as a sample."""
        return rate_sample(series, in_SI(self.value, unit), i=i, resolution=self.resolution)

    def agrees(self, other: Printed) -> bool:
        """Whether both can be roundings of one true value."""
        slack = _COMPUTED * max(abs(self.value), abs(other.value))
        return abs(self.value - other.value) <= self.error + other.error + slack


class Found(Frozen):
    """A line of a log with the match of a pattern on it."""

    line: LogLine
    match: re.Match[str]

    def error(self, why: str) -> ParseError:
        """The error that this line is wrong."""
        return self.line.error(why)

    def text(self, group: str | int) -> str:
        """What the group matched, as one printable word or phrase."""
        plain = "".join(character if character.isprintable() else "?" for character in self.match[group])
        return " ".join(plain.split())

    def number(self, group: str | int, what: str) -> float:
        """The group as a number above zero. Raises ParseError."""
        return self.line.number_of(self.match[group], what)

    def printed(self, group: str | int, what: str) -> Printed:
        """The group as a number above zero, with its rounding error. Raises ParseError."""
        return Printed.of(self.number(group, what), self.match[group])

    def whole(self, group: str | int, what: str, *, least: int = 1) -> int:
        """The group as a whole number. Raises ParseError."""
        return self.line.whole_of(self.match[group], what, least=least)

    def number_or_zero(self, group: str | int, what: str) -> float:
        """The group as a number, zero or more. Raises ParseError."""
        return self.line.number_or_zero(self.match[group], what)

    def result(self, group: str | int, what: str) -> float | None:
        """The group as a computed number, of any sign; None where the program itself says that it is none (nan, inf).
        Raises ParseError."""
        return self.result_of(self.match[group], what)

    def result_of(self, token: str, what: str) -> float | None:
        """A token of this line, as `result`."""
        value = number(token)
        if value is None and not _NOT_FINITE.fullmatch(token):
            raise self.error(f"{what} is {token[:40]!r}, which is not a number")
        return value

    def refuse_exploded(self, token: str) -> None:
        """Raise ParseError if a temperature (K) is not a number, or that of a simulation that has exploded."""
        kelvin = number(token)
        if kelvin is None or not 0 <= kelvin <= HOTTEST_K:
            why = "the simulation has exploded, so its rate means nothing"
            raise self.error(f"the temperature is {token[:40]} K: {why}")

    def moment(self, group: str | int, form: str = "") -> datetime:
        """The group as a date and time of this form ("": that of ISO 8601). Raises ParseError."""
        text = self.match[group]
        try:
            return datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        except ValueError as error:
            raise self.error("not a valid date and time") from error

    def whole_seconds(self, group: str | int, what: str) -> Printed:
        """Seconds of a clock that counts whole ones: +-0.5 s. Raises ParseError for 0 s, which says nothing."""
        seconds = self.whole(group, what, least=0)
        if seconds == 0:
            raise self.error(f"{what} is 0 s: it counts whole seconds, and the run was too short for it")
        return Printed(float(seconds), 0.5)


class Log:
    """The lines of one application's log. Patterns match the whole text of a line: without what the launcher put before
    it, and without white space at its ends. With `is_spaced_once` it has one space between words. Without `is_given`,
    seatrial started the run, and there is no file that the user could split."""

    def __init__(self, tool: str, data: bytes, *, is_spaced_once: bool = False, is_given: bool = True) -> None:
        self.tool = tool
        self.is_given = is_given
        self.lines = read_lines(data, tool)
        texts = map(body, self.lines)
        self.texts = [" ".join(text.split()) if is_spaced_once else text.strip() for text in texts]

    def until(self, line: LogLine) -> Log:
        """The log up to this line, with it."""
        part = copy(self)
        part.lines, part.texts = self.lines[: line.number], self.texts[: line.number]
        return part

    def error(self, why: str) -> ParseError:
        """The error of the whole file."""
        return ParseError(self.tool, None, "", why)

    def numbered(self, lines: Iterable[LogLine] | None = None) -> Iterator[tuple[LogLine, str]]:
        """Lines, all by default, with their texts."""
        return zip(self.lines, self.texts, strict=True) if lines is None else ((one, self.text(one)) for one in lines)

    def text(self, line: LogLine) -> str:
        """The text of a line."""
        return self.texts[line.number - 1]

    def whole_line(self, line: LogLine) -> Found:
        """All of a line."""
        return self.found(_ANY, [line])[0]

    def found(self, pattern: Pattern, lines: Iterable[LogLine] | None = None) -> list[Found]:
        """The lines of this pattern, in order. A last line without a line break may be cut off: it is not among them,
        unless the pattern is that of a mark (without groups)."""
        compiled = pattern.compiled
        return [
            Found(line, match)
            for line, text in self.numbered(lines)
            if (match := compiled.fullmatch(text)) is not None and (line.is_ended or not compiled.groups)
        ]

    def banner(self, pattern: Pattern, looks_like: str) -> Found:
        """The line that names the program. Raises ParseError if there is none, or a second one: two runs."""
        found = self.found(pattern)
        if not found:
            raise self.error(f"no line such as {looks_like!r}: from another program, or its beginning is missing")
        if len(found) > 1:
            why = f"a second run begins here; the first began on line {found[0].line.number}"
            raise found[1].error(f"{why}: put each in its own file" if self.is_given else why)
        return found[0]

    def somewhere(self, pattern: Pattern, looks_like: str) -> Found:
        """The first line with this pattern in it, which only the program prints. Raises ParseError."""
        for line, text in self.numbered():
            if (match := pattern.search(text)) is not None:
                return Found(line, match)
        raise self.error(f"nothing such as {looks_like!r}: from another program, or its beginning is missing")

    def at_most_one(self, pattern: Pattern, what: str, lines: Iterable[LogLine] | None = None) -> Found | None:
        """The line of this pattern, or None. Raises ParseError if there is a second one: two runs."""
        found = self.found(pattern, lines)
        if len(found) > 1:
            why = f"a second {what}; the first is on line {found[0].line.number}: two runs"
            raise found[1].error(f"{why} in one file; split it" if self.is_given else why)
        return found[0] if found else None

    def only(self, pattern: Pattern, what: str, lines: Iterable[LogLine] | None = None) -> Found:
        """The one line of this pattern. Raises ParseError if there is none, or a second one."""
        found = self.at_most_one(pattern, what, lines)
        if found is None:
            raise self.error(f"no {what}: the run did not end, or the file is from another tool or cut off")
        return found

    def end(self, pattern: Pattern, missing: str) -> Found:
        """The line that only a run has that ended. Raises ParseError if there is none (`missing`: "there is no `End`"),
        or a second one."""
        if not self.found(pattern):
            raise self.not_ended(missing)
        return self.only(pattern, missing.rpartition("no ")[2])

    def of_form(self, like: Pattern, form: Pattern, looks_like: str) -> Found:
        """The one line that is `like` this; it must have the whole form. Raises ParseError."""
        line = self.only(like, f"`{looks_like}`").line
        match = form.fullmatch(self.text(line))
        if match is None or not line.is_ended:
            raise line.error(f"not of the form `{looks_like}`: the line is damaged or cut off")
        return Found(line, match)

    def each_of_form(
        self, like: Pattern, form: Pattern, why: str, lines: Iterable[LogLine] | None = None
    ) -> list[Found]:
        """The lines that are `like` this. Raises ParseError (`why`) at the first that has not the whole form."""
        whole = {one.line.number: one for one in self.found(form, lines)}
        for one in self.found(like, lines):
            if one.line.number not in whole:
                raise one.error(why)
        return list(whole.values())

    def maybe(self, pattern: Pattern, what: str) -> Found | None:
        """The line of this pattern, or None. Lines that repeat it must say the same; else raises ParseError."""
        found = self.found(pattern)
        for one in found[1:]:
            if one.match.groups() != found[0].match.groups():
                raise one.error(f"another {what} than on line {found[0].line.number}: two runs in one file?")
        return found[0] if found else None

    def stated(self, numbers: Mapping[str, Pattern]) -> dict[str, int]:
        """The whole numbers in these lines, as far as they are there; lines that repeat one must say the same."""
        lines = {name: self.maybe(pattern, f"number of {name}") for name, pattern in numbers.items()}
        return {name: line.whole(1, name) for name, line in lines.items() if line is not None}

    def refuse(self, pattern: Pattern, why: str) -> None:
        """Raise ParseError with the first line of this pattern: such a run has no figure."""
        found = self.found(pattern)
        if found:
            raise found[0].error(why)

    def refuse_signs(self, *signs: tuple[Pattern, str]) -> None:
        """Raise ParseError at the first line in which a pattern is found, with what it is a sign of: a crash, or a
        solution that is not a number. Such a run has no figure."""
        for line, text in self.numbered():
            for pattern, why in signs:
                if pattern.search(text):
                    raise line.error(f"{why}: such a run has no figure")

    def verdict(self, failed: Pattern, valid: Pattern, missing: str) -> str:
        """Why the program calls its own results wrong, "" if it calls them right; `missing` if it says neither. Raises
        ParseError if it calls them right twice."""
        if wrong := self.found(failed):
            return wrong[0].match[0]
        return missing if self.at_most_one(valid, "validation") is None else ""

    def not_ended(self, last_sign: str) -> ParseError:
        """The error of a run that has not ended; `last_sign` is how far it came, or what is missing."""
        return self.lines[-1].error(f"the run has not ended, or the file is cut off: {last_sign}")


Words = tuple[str, str]
"""A pattern of lines, and what it is, looks like, or means."""


class Measured(Frozen):
    """What the function of a reader takes from a log: samples, and what the declaration of the log does not have.
    `failed`: why its figures mean nothing, though the log is whole."""

    samples: Sequence[Sample]
    parameters: Mapping[str, Value] = {}
    notes: Mapping[str, object] = {}
    remarks: Sequence[str] = ()
    version: str | None = None
    failed: str = ""


def plain_reader(
    of: Benchmark,
    tool: str,
    measured: Callable[[Log], Measured],
    *,
    begins: str = "",
    aside: str = "",
    is_spaced_once: bool = False,
    is_from_documentation: bool = False,
    starts: Starts | None = None,
) -> Reader:
    """The reader of logs of `tool`, with the figures that `of` declares, where `measured` does all of it: it raises
    ParseError for a run without figure. `begins` is the line with which each run begins, if there is one; `aside`
    one of a program that has no figure, `starts` as in `Reader`."""

    def read(data: bytes) -> ImportedFile:
        found = measured(Log(tool, data, is_spaced_once=is_spaced_once))
        samples, remarks = tuple(found.samples), tuple(found.remarks)
        experiment = ImportedExperiment(
            of.name, samples, found.parameters, found.notes, failed=found.failed, remarks=remarks
        )
        return ImportedFile(tool, found.version or "", (experiment,))

    kind = of.name.removeprefix("imported.")
    return Reader(
        kind,
        read,
        (begins,) if begins else (),
        aside=aside,
        is_from_documentation=is_from_documentation,
        starts=starts,
    )


def log_reader(
    of: Benchmark,
    tool: str,
    measured: Callable[[Log, Found, Found], Measured],
    *,
    begin: Words,
    end: Words,
    begins: str | None = None,
    is_begun_anywhere: bool = False,
    is_spaced_once: bool = False,
    version: Words | None = None,
    refused: Sequence[Words] = (),
    signs: Sequence[Words] = (),
    temperature: str = "",
    states: Mapping[str, str] = {},
    remarked: Words | None = None,
    is_from_documentation: bool = False,
) -> Reader:
    """The reader of logs of `tool`, with the figures that `of` declares. It raises ParseError for a run without figure.

    `begin`: the line that every log has once, and what it looks like; with `is_begun_anywhere` what some line must have
    in it, be it more than one. `begins`: the line at which several runs in one text are separated, if it is not `begin`
    ("": they are not). `is_spaced_once`: as in `Log`. `version`: the line whose first group is the version, and the
    error if there is none; without it that is the first group of `begin`, if that has one, or what `measured` says.
    `end`: the line of a run that ended, and the error if there is none. `refused`: a whole line, and why a run that
    prints it has no figure; `signs`: what may be found in a line, and what it is a sign of; `temperature`: a line with
    kelvins, of which a simulation that has exploded has too many. `states`: parameter -> the lines with this whole
    number, which must all agree. `remarked`: a line that is reported to the user, and the words (`{text}` is the line
    itself).

    `measured` is given the log and its lines `begin` and `end`.
    """
    first, last = Pattern(begin[0]), Pattern(end[0])
    of_version, no_version = (None, "") if version is None else (Pattern(version[0]), version[1])
    failures = [(Pattern(pattern), why) for pattern, why in refused]
    found_in_lines = [(Pattern(pattern), why) for pattern, why in signs]
    kelvins, numbers = Pattern(temperature), {name: Pattern(pattern) for name, pattern in states.items()}
    unsound, words = (None, "") if remarked is None else (Pattern(remarked[0]), remarked[1])

    def read(log: Log) -> Measured:
        begun = log.somewhere(first, begin[1]) if is_begun_anywhere else log.banner(first, begin[1])
        named = begun if of_version is None else log.maybe(of_version, "version")
        if named is None:
            raise log.error(no_version)
        for pattern, why in failures:
            log.refuse(pattern, why)
        log.refuse_signs(*found_in_lines)
        for row in log.found(kelvins) if temperature else ():
            row.refuse_exploded(row.match[1])
        found = measured(log, begun, log.end(last, end[1]))
        doubts = log.found(unsound)[:1] if unsound is not None else []
        remarks = (*found.remarks, *(f"line {one.line.number}: {words.format(text=one.text(0))}" for one in doubts))
        declared = next((named.text(k) for k, one in enumerate(named.match.groups(), start=1) if one is not None), "")
        parameters = {**found.parameters, **log.stated(numbers)}
        version = declared if found.version is None else found.version
        return Measured(found.samples, parameters, found.notes, remarks, version, found.failed)

    if begins is None:
        begins = "" if is_begun_anywhere else begin[0]
    return plain_reader(
        of, tool, read, begins=begins, is_spaced_once=is_spaced_once, is_from_documentation=is_from_documentation
    )
