"""The output of HPL (netlib 1.0 to 2.3, builds of vendors, HPL inside hpcc): rows and residuals.

Every row `T/V N NB P Q Time Gflops` is one solution of a system, checked by the residual below it. Time and rate are
related by the operation count of HPL, 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c), and the summary counts the tests, so a damaged
or missing row is detected.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from seatrial.applications.reading.log import Log, Printed
from seatrial.applications.reading.run_output import output_file
from seatrial.applications.reading.text import LogLine, Pattern, is_product, number
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

TOOL = "HPL"
SERIES = "solution"

_TITLE = Pattern(r".{0,200}?HPLinpack ([0-9][0-9.]{0,15})\s{1,9}--.{0,200}")
_NVIDIA = Pattern(r".{0,200}?HPL-NVIDIA ([0-9][0-9.]{0,15})\s{1,9}--.{0,200}")
"""NVIDIA's build prints its own title above that of HPL."""
BEGINS = (_NVIDIA.text, _TITLE.text)
"""The lines with which a run begins."""
_HEADER = Pattern(r"T/V\s+N\s+NB\s+P\s+Q\s+Time\s+Gflops\b.{0,40}")
_ROW = Pattern(r"[WC][RC][0-9][0-9A-Z]{0,12}")
"""The variant: clock, mapping, depth, and more that NVIDIA's build leaves out (WC0)."""
_RESIDUAL = Pattern(r"\|\|Ax-b\|\|.{1,200}=\s*(\S{1,40})\s*\.{2,9}\s*(PASSED|FAILED)")
_FINISHED = Pattern(r"Finished\s+([0-9]{1,9}) tests with the following results:")
_COUNTS = (
    Pattern(r"([0-9]{1,9}) tests completed and passed residual checks,"),
    Pattern(r"([0-9]{1,9}) tests completed and failed residual checks,"),
    Pattern(r"([0-9]{1,9}) tests skipped because of illegal input values\."),
)
_UNCHECKED = Pattern(r"([0-9]{1,9}) tests completed without checking,")
_END = Pattern(r"End of Tests\.")
_SUMMARY_LINES = 8


def operations(n: int) -> float:
    """Floating-point operations that HPL counts for a system of order `n`: 2/3 n^3 + 3/2 n^2 (HPL_pdtest.c)."""
    return (2 / 3 * n + 3 / 2) * float(n) * n


class HplTest(Struct):
    """One row of the output, with the time in s (0 where HPL printed 0.00) and the rate in Gflop/s, and the scaled
    residuals that stand below it, each with whether HPL passed it. A residual is None where it overflowed: HPL prints
    nan or inf, and fails it."""

    line: LogLine
    variant: str
    n: int
    nb: int
    p: int
    q: int
    printed_time: Printed
    rate: Printed
    residuals: list[tuple[float | None, bool]] = []

    @property
    def time_s(self) -> float:
        """Work over rate: more exact than the printed time, which has two decimals."""
        return operations(self.n) / (self.rate.value * 1e9)

    @property
    def is_right(self) -> bool:
        """Whether HPL passed every residual of it."""
        return all(passed for _, passed in self.residuals)


class HplOutput(Frozen):
    """One run: the version of HPL, its tests in order, and how many more it skipped as impossible."""

    version: str
    tests: tuple[HplTest, ...]
    skipped: int


def read_hpl(log: Log, lines: Sequence[LogLine] | None = None) -> HplOutput:
    """The run that these lines hold, all by default.

    Raises ParseError where the output is cut off before its summary, holds two runs, or contradicts itself.
    """
    version, tests = _version(log, lines), _tests(log, lines)
    return HplOutput(version, tuple(tests), _skipped(log, lines, tests))


def read_block(log: Log) -> HplOutput | None:
    """The tests of a text that has neither title nor summary, as people quote them: rows with the residuals below
    them. None for any other text. Raises ParseError for a test without a residual."""
    if log.found(_TITLE) or log.found(_NVIDIA) or log.found(_FINISHED) or not log.found(_HEADER):
        return None
    tests = _tests(log, None)
    unchecked = next((test for test in tests if not test.residuals), None)
    if unchecked is not None:
        raise unchecked.line.error("no residual below this row: the solution is not checked, or the text is cut off")
    return HplOutput("", tuple(tests), 0) if tests else None


def _version(log: Log, lines: Sequence[LogLine] | None) -> str:
    """The version of HPL, and that of NVIDIA's build."""
    vendor = log.at_most_one(_NVIDIA, "title `HPL-NVIDIA`", lines)
    if vendor is not None and not log.found(_TITLE, lines):
        return f"HPL-NVIDIA {vendor.match[1]}"
    version = log.only(_TITLE, "title `HPLinpack`", lines).match[1]
    return version if vendor is None else f"{version} (HPL-NVIDIA {vendor.match[1]})"


def _tests(log: Log, lines: Sequence[LogLine] | None) -> list[HplTest]:
    tests: list[HplTest] = []
    is_table = False
    for line, text in log.numbered(lines):
        words = text.split()
        if _HEADER.fullmatch(text):
            is_table = True
        elif len(words) > 1 and _ROW.fullmatch(words[0]):
            if not is_table:
                raise line.error("a row outside any table")
            tests.append(_test(line, words))
        elif (residual := _RESIDUAL.fullmatch(text)) is not None:
            if not tests:
                raise line.error("a residual before any test")
            passed = residual[2] == "PASSED"
            value = line.number_or_zero(residual[1], "the residual") if passed else number(residual[1])
            tests[-1].residuals.append((value, passed))
    return tests


def _test(line: LogLine, words: Sequence[str]) -> HplTest:
    # NVIDIA's build appends the rate of one GPU in brackets.
    if len(words) < 7 or (len(words) > 7 and not words[7].startswith("(")):
        raise line.error("a row must have a variant, N, NB, P, Q, time and rate")
    n, nb, p, q = (line.whole_of(word, what) for word, what in zip(words[1:5], ("N", "NB", "P", "Q"), strict=True))
    rate = Printed.of(line.number_of(words[6], "Gflops"), words[6])
    time = Printed.of(line.number_or_zero(words[5], "the time"), words[5])
    if not is_product(operations(n) / 1e9, (rate.value, rate.error), (time.value, time.error)):
        raise line.error(f"{words[6]} Gflops in {words[5]} s is not the work of N = {n}")
    return HplTest(line, words[0], n, nb, p, q, time, rate)


def _skipped(log: Log, lines: Sequence[LogLine] | None, tests: Sequence[HplTest]) -> int:
    """The tests that were skipped, where the summary counts what stands above it; else raises ParseError."""
    finished = log.only(_FINISHED, "summary `Finished N tests`", lines)
    log.only(_END, "line `End of Tests.`", lines)
    below = log.lines[finished.line.number : finished.line.number + _SUMMARY_LINES]
    if log.found(_UNCHECKED, below):
        why = "the tests ran without a check of their residual; set a threshold above 0 in HPL.dat"
        raise finished.error(why)
    counts = [found[0].whole(1, "a count", least=0) for pattern in _COUNTS if (found := log.found(pattern, below))]
    if len(counts) < len(_COUNTS):
        raise finished.error("the summary below this line is cut off")
    passed, failed, skipped = counts
    bare = next((test for test in tests if not test.residuals), None)
    if bare is not None:
        raise bare.line.error("no residual follows this test")
    right = sum(test.is_right for test in tests)
    if (passed, failed, sum(counts)) != (right, len(tests) - right, finished.whole(1, "the number of tests")):
        why = f"the summary counts {passed} passed and {failed} failed; the file has {right} and {len(tests) - right}"
        raise finished.error(why)
    if not tests:
        raise finished.error("no test was run: all were skipped because of illegal input values")
    return skipped


@output_file(TOOL)
def read_xhpl(log: Log) -> ProgramRecord:
    """The solutions in HPL.out. Raises ProtocolError where it is not that of one whole run."""
    return _record(read_hpl(log))


@output_file("hpcc")
def read_hpcc(log: Log) -> ProgramRecord:
    """The solutions in the section of HPL of hpccoutf.txt. Raises ProtocolError where that is not of one whole run."""
    begin, end = (
        [k for k, text in enumerate(log.texts) if text == f"{edge} of HPL section."] for edge in ("Begin", "End")
    )
    if len(begin) != 1 or len(end) != 1 or end < begin or "End of HPC Challenge tests." not in log.texts[end[0] :]:
        raise log.error("it does not contain exactly one complete HPL section")
    return _record(read_hpl(log, log.lines[begin[0] : end[0]]))


def _record(output: HplOutput) -> ProgramRecord:
    residuals = [value for test in output.tests for value, _ in test.residuals]
    known = [value for value in residuals if value is not None]
    return ProgramRecord(
        samples=tuple(map(_sample, output.tests)),
        checks={
            "residual": max(known) if len(known) == len(residuals) else None,
            "wrong_solutions": float(sum(not test.is_right for test in output.tests) + output.skipped),
        },
        notes={"hpl_version": output.version, "variant": output.tests[0].variant},
        ended=True,
    )


def _sample(test: HplTest) -> Sample:
    return Sample(
        series=SERIES,
        i=0,
        elapsed_s=test.time_s,
        work={"flops": operations(test.n)},
        point={"n": test.n, "nb": test.nb, "grid": f"{test.p}x{test.q}"},
        extra={"resolution": test.rate.resolution},
    )
