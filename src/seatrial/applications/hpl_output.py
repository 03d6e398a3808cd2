"""The output of HPL (netlib 1.0 to 2.3, builds of vendors, HPL inside hpcc): rows and residuals.

Every row `T/V N NB P Q Time Gflops` is one solution of a system, checked by the residual below it. Time and rate are
related by the operation count of HPL, 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c), and the summary counts the tests, so a damaged
or missing row is detected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from seatrial.applications.reading.text import Pattern
from seatrial.errors import ParseError, ProtocolError
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

TOOL = "HPL"
SERIES = "solution"

_TITLE = Pattern(r"HPLinpack ([0-9][0-9.]{0,15})\s{1,9}--.{0,200}")
_NVIDIA = Pattern(r"HPL-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,200}")
"""NVIDIA's build prints its own title above that of HPL."""
_HEADER = Pattern(r"T/V\s+N\s+NB\s+P\s+Q\s+Time\s+Gflops\b.{0,40}")
_ROW = Pattern(r"[WC][RC][0-9][0-9A-Z]{0,12}")
"""The variant: clock, mapping, depth, and more that NVIDIA's build leaves out (WC0)."""
_RESIDUAL = Pattern(r"\|\|Ax-b\|\|.{1,200}=\s*(\S{1,40})\s*\.{2,9}\s*(PASSED|FAILED)\s*")
_FINISHED = Pattern(r"Finished\s+([0-9]{1,9}) tests with the following results:")
_COUNTS = (
    Pattern(r"([0-9]{1,9}) tests completed and passed residual checks,"),
    Pattern(r"([0-9]{1,9}) tests completed and failed residual checks,"),
    Pattern(r"([0-9]{1,9}) tests skipped because of illegal input values\."),
)
_UNCHECKED = Pattern(r"([0-9]{1,9}) tests completed without checking,")
_END = Pattern(r"End of Tests\.")
_NUMBER = Pattern(r"\+?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,2})?")
_WHOLE = Pattern(r"[0-9]{1,18}")
_SUMMARY_LINES = 8
_LARGEST_B = 64 << 20
_MOST = 1e24
"""No rate or time of any machine reaches this."""


def operations(n: int) -> float:
    """Floating-point operations that HPL counts for a system of order `n`: 2/3 n^3 + 3/2 n^2 (HPL_pdtest.c)."""
    return (2 / 3 * n + 3 / 2) * float(n) * n


class Residual(Frozen):
    """The scaled residual of a solution; `value` is None where it overflowed: HPL prints nan or inf, and fails it."""

    value: float | None
    passed: bool


class HplTest(Struct):
    """One row of the output: `line` (from 1) and its `text`, time in s and rate in Gflops as printed, the time 0 where
    HPL printed 0.00, with the steps of their last printed digits, and the residuals that stand below it."""

    line: int
    text: str
    variant: str
    n: int
    nb: int
    p: int
    q: int
    printed_s: float
    printed_Gflops: float
    time_step_s: float = 0.0
    rate_step_Gflops: float = 0.0
    residuals: list[Residual] = []

    @property
    def time_s(self) -> float:
        """Work over rate: more exact than the printed time, which has two decimals."""
        return operations(self.n) / (self.printed_Gflops * 1e9)

    @property
    def resolution(self) -> float:
        """The step of the printed rate, as a share of it."""
        return self.rate_step_Gflops / self.printed_Gflops

    @property
    def is_right(self) -> bool:
        """Whether HPL passed every residual of it."""
        return all(residual.passed for residual in self.residuals)


class HplOutput(Frozen):
    """One run: the version of HPL, its tests in order, and how many more it skipped as impossible."""

    version: str
    tests: tuple[HplTest, ...]
    skipped: int


def read_hpl(lines: Sequence[str], first: int = 1) -> HplOutput:
    """The run that these lines hold, which are numbered from `first`.

    Raises ParseError where the output is cut off before its summary, holds two runs, or contradicts itself.
    """
    numbered = _Lines(lines, first)
    version = _version(numbered)
    tests = _tests(numbered)
    skipped = _skipped(numbered, tests)
    return HplOutput(version, tuple(tests), skipped)


def _version(lines: _Lines) -> str:
    """The version of HPL, and that of NVIDIA's build."""
    vendor = lines.only(_NVIDIA, "title `HPL-NVIDIA`")[1][1] if lines.has(_NVIDIA) else ""
    if vendor and not lines.has(_TITLE):
        return f"HPL-NVIDIA {vendor}"
    version = lines.only(_TITLE, "title `HPLinpack`")[1][1]
    return f"{version} (HPL-NVIDIA {vendor})" if vendor else version


class _Lines(Frozen):
    lines: Sequence[str]
    first: int

    def error(self, place: int, why: str) -> ParseError:
        """The error that the line at `place` (from 0) is wrong."""
        return ParseError(TOOL, self.first + place, self.lines[place], why)

    def has(self, pattern: Pattern) -> bool:
        """Whether a line holds this pattern."""
        return any(pattern.search(text) for text in self.lines)

    def only(self, pattern: Pattern, what: str) -> tuple[int, re.Match[str]]:
        """Where the one line is that holds this pattern, and the match."""
        found = [(place, match) for place, text in enumerate(self.lines) if (match := pattern.search(text))]
        if not found:
            raise ParseError(TOOL, None, "", f"{what} not found: the file is from another tool, or cut off")
        if len(found) > 1:
            earlier = self.first + found[0][0]
            why = f"a second {what} (first on line {earlier}): the file contains two runs; put each in its own file"
            raise self.error(found[1][0], why)
        return found[0]

    def number(self, place: int, token: str, what: str) -> float:
        """A token of a line as a number from zero on."""
        if _NUMBER.fullmatch(token) is None:
            raise self.error(place, f"{what} is {token[:40]!r}, which is not a plain number")
        if not (value := float(token)) < _MOST:
            raise self.error(place, f"{what} is {token[:40]!r}, which is not possible")
        return value

    def whole(self, place: int, token: str, what: str) -> int:
        """A token of a line as a whole number from 1 on."""
        if _WHOLE.fullmatch(token) is None or int(token) < 1:
            raise self.error(place, f"{what} is {token[:40]!r}, expected an integer >= 1")
        return int(token)


def _tests(lines: _Lines) -> list[HplTest]:
    tests: list[HplTest] = []
    is_table = False
    for place, text in enumerate(lines.lines):
        words = text.split()
        if _HEADER.fullmatch(text.strip()):
            is_table = True
        elif words and _ROW.fullmatch(words[0]) and len(words) > 1:
            if not is_table:
                raise lines.error(place, "a row outside any table")
            tests.append(_test(lines, place, words))
        elif (residual := _RESIDUAL.search(text)) is not None:
            if not tests:
                raise lines.error(place, "a residual before any test")
            passed = residual[2] == "PASSED"
            is_number = passed or _NUMBER.fullmatch(residual[1]) is not None
            value = lines.number(place, residual[1], "the residual") if is_number else None
            tests[-1].residuals.append(Residual(value, passed))
    return tests


def _test(lines: _Lines, place: int, words: Sequence[str]) -> HplTest:
    # NVIDIA's build appends the rate of one GPU in brackets.
    if len(words) < 7 or (len(words) > 7 and not words[7].startswith("(")):
        raise lines.error(place, "a row must have a variant, N, NB, P, Q, time and rate")
    n, nb, p, q = (lines.whole(place, word, what) for word, what in zip(words[1:5], ("N", "NB", "P", "Q"), strict=True))
    rate, time_s = lines.number(place, words[6], "Gflops"), lines.number(place, words[5], "the time")
    if rate == 0:
        raise lines.error(place, f"Gflops is {words[6]}, expected a number above zero")
    if not _fits(operations(n) / 1e9, (rate, words[6]), (time_s, words[5])):
        raise lines.error(place, f"{words[6]} Gflops in {words[5]} s is not the work of N = {n}")
    steps = (2.0 * _half_unit(words[5]), 2.0 * _half_unit(words[6]))
    return HplTest(lines.first + place, lines.lines[place], words[0], n, nb, p, q, time_s, rate, *steps)


def _fits(work: float, rate: tuple[float, str], time_s: tuple[float, str]) -> bool:
    """Whether rate x time can be the work, each as far off as its last printed place."""
    low, high = 1.0, 1.0
    for value, token in (rate, time_s):
        off = _half_unit(token)
        low, high = low * max(0.0, value - off), high * (value + off)
    slack = 1e-5 * work
    return low - slack <= work <= high + slack


def _half_unit(token: str) -> float:
    """Half a unit in the last printed place of a number."""
    mantissa, _, exponent = token.lower().partition("e")
    # "0.0e14" is no less sure than "0.0"
    power = int(exponent) if exponent and float(mantissa) != 0 else 0
    return float(0.5 * 10.0 ** (power - len(mantissa.partition(".")[2])))


def _skipped(lines: _Lines, tests: Sequence[HplTest]) -> int:
    """The tests that were skipped, where the summary counts what stands above it; else raises ParseError."""
    place, match = lines.only(_FINISHED, "summary `Finished N tests`")
    lines.only(_END, "line `End of Tests.`")
    total = lines.whole(place, match[1], "the number of tests")
    below = lines.lines[place + 1 : place + 1 + _SUMMARY_LINES]
    if any(_UNCHECKED.search(text) for text in below):
        why = "the tests ran without a check of their residual; set a threshold above 0 in HPL.dat"
        raise lines.error(place, why)
    passed, failed, skipped = (
        next((int(count[1]) for text in below if (count := pattern.search(text))), None) for pattern in _COUNTS
    )
    if passed is None or failed is None or skipped is None:
        raise lines.error(place, "the summary below this line is cut off")
    bare = next((test for test in tests if not test.residuals), None)
    if bare is not None:
        raise ParseError(TOOL, bare.line, bare.text, "no residual follows this test")
    right = sum(test.is_right for test in tests)
    if (passed, failed, passed + failed + skipped) != (right, len(tests) - right, total):
        why = f"the summary counts {passed} passed and {failed} failed; the file has {right} and {len(tests) - right}"
        raise lines.error(place, why)
    if not tests:
        raise lines.error(place, "no test was run: all were skipped because of illegal input values")
    return skipped


def read_xhpl(data: bytes) -> ProgramRecord:
    """The solutions in HPL.out. Raises ProtocolError where it is not that of one whole run."""
    return _read(_lines(data), 1)


def read_hpcc(data: bytes) -> ProgramRecord:
    """The solutions in the section of HPL of hpccoutf.txt. Raises ProtocolError where that is not of one whole run."""
    lines = _lines(data)
    places = {
        edge: [k for k, text in enumerate(lines) if text == f"{edge} of HPL section."] for edge in ("Begin", "End")
    }
    begin, end = places["Begin"], places["End"]
    if len(begin) != 1 or len(end) != 1 or end[0] < begin[0] or "End of HPC Challenge tests." not in lines[end[0] :]:
        raise ProtocolError("cannot read hpcc's output: it does not contain exactly one complete HPL section")
    return _read(lines[begin[0] : end[0]], begin[0] + 1)


def _lines(data: bytes) -> list[str]:
    if len(data) > _LARGEST_B or b"\0" in data:
        raise ProtocolError("HPL's output is not text, or larger than any that HPL writes")
    return [line.removesuffix("\r") for line in data.decode("utf-8", "replace").split("\n")]


def _read(lines: Sequence[str], first: int) -> ProgramRecord:
    try:
        output = read_hpl(lines, first)
    except ParseError as error:
        raise ProtocolError(str(error)) from error
    residuals = [residual.value for test in output.tests for residual in test.residuals]
    return ProgramRecord(
        samples=tuple(_sample(test) for test in output.tests),
        checks={
            "residual": _largest(residuals),
            "wrong_solutions": float(sum(not test.is_right for test in output.tests) + output.skipped),
        },
        notes={"hpl_version": output.version, "variant": output.tests[0].variant},
        ended=True,
    )


def _largest(residuals: Sequence[float | None]) -> float | None:
    """The largest; None where one overflowed."""
    numbers = [residual for residual in residuals if residual is not None]
    return max(numbers) if len(numbers) == len(residuals) else None


def _sample(test: HplTest) -> Sample:
    return Sample(
        series=SERIES,
        i=0,
        elapsed_s=test.time_s,
        work={"flops": operations(test.n)},
        point={"n": test.n, "nb": test.nb, "grid": f"{test.p}x{test.q}"},
        extra={"resolution": test.resolution},
    )
