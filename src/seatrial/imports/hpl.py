"""HPL, the High-Performance Linpack benchmark (netlib 1.0 to 2.3, and vendors' builds with the same output): text.

Every row `T/V N NB P Q Time Gflops` is one experiment; the residual below it says whether the solution is right. Time
and rate are tied by the operations of HPL, 2/3 N^3 + 3/2 N^2 (HPL_pdtest.c), and the summary counts the tests, so a row
that is damaged or missing shows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.imports.reader import Reader
from seatrial.imports.samples import in_SI, rate_sample, time_sample
from seatrial.imports.text import Line, half_unit, is_product, only_one, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

_TOOL = "HPL"

_TITLE = re.compile(r"(?:HPLinpack|HPL-NVIDIA) ([0-9][0-9.]{0,15})\s{1,9}--.{0,200}")
_HEADER = re.compile(r"T/V\s+N\s+NB\s+P\s+Q\s+Time\s+Gflops\b.{0,40}")
_ROW = re.compile(r"[WC][RC][0-9A-Z]{4,12}")
_RESIDUAL = re.compile(r"\|\|Ax-b\|\|.{1,200}=\s*(\S{1,40})\s*\.{2,9}\s*(PASSED|FAILED)\s*")
_FINISHED = re.compile(r"Finished\s+([0-9]{1,9}) tests with the following results:")
_COUNTS = (
    re.compile(r"([0-9]{1,9}) tests completed and passed residual checks,"),
    re.compile(r"([0-9]{1,9}) tests completed and failed residual checks,"),
    re.compile(r"([0-9]{1,9}) tests skipped because of illegal input values\."),
)
_UNCHECKED = re.compile(r"([0-9]{1,9}) tests completed without checking,")
_END = re.compile(r"End of Tests\.")


@dataclass(slots=True)
class _Test:
    """One row of the output, with the residuals that stand below it."""

    line: Line
    parameters: dict[str, Value]
    time_s: float
    rate: float
    residuals: list[tuple[float | None, bool]]


def read(data: bytes) -> ImportedFile:
    """One run of HPL: an experiment for each setting, repeated rows as samples of it.

    Raises ParseError where the output is cut off before its summary, holds two runs, or contradicts itself.
    """
    lines = read_lines(data, _TOOL)
    title = only_one([line for line in lines if _TITLE.search(line.text)], _TOOL, "title `HPLinpack`")
    match = _TITLE.search(title.text)
    tests = _tests(lines)
    _check_summary(lines, tests)
    groups: dict[tuple[Value, ...], list[_Test]] = {}
    for test in tests:
        groups.setdefault(tuple(test.parameters.values()), []).append(test)
    return ImportedFile(_TOOL, match[1] if match else "", tuple(map(_experiment, groups.values())))


def _tests(lines: Sequence[Line]) -> list[_Test]:
    tests: list[_Test] = []
    is_table = False
    for line in lines:
        words = line.words
        if _HEADER.fullmatch(line.text.strip()):
            is_table = True
        elif words and _ROW.fullmatch(words[0]) and len(words) > 1:
            if not is_table:
                raise line.error(_TOOL, "a row that belongs to no table")
            tests.append(_test(line, words))
        elif (residual := _RESIDUAL.search(line.text)) is not None:
            if not tests:
                raise line.error(_TOOL, "a residual before any test")
            passed = residual[2] == "PASSED"
            # A residual that overflowed is printed as nan or inf; then the test must have failed.
            value = None if not passed else line.number_or_zero(_TOOL, residual[1], "the residual")
            tests[-1].residuals.append((value, passed))
    return tests


def _test(line: Line, words: Sequence[str]) -> _Test:
    # NVIDIA's build appends the rate of one GPU in brackets.
    if len(words) < 7 or (len(words) > 7 and not words[7].startswith("(")):
        raise line.error(_TOOL, "a row has a variant, N, NB, P, Q, time and rate")
    n, nb, p, q = (
        line.whole_of(_TOOL, word, what) for word, what in zip(words[1:5], ("N", "NB", "P", "Q"), strict=True)
    )
    rate = line.number_of(_TOOL, words[6], "Gflops")
    time_s = line.number_or_zero(_TOOL, words[5], "the time")
    operations = (2 / 3 * n + 3 / 2) * float(n) * n
    if not is_product(operations / 1e9, (rate, half_unit(words[6])), (time_s, half_unit(words[5]))):
        raise line.error(_TOOL, f"{words[6]} Gflops in {words[5]} s is not the work of N = {n}")
    # A time that is printed as 0.00 is known better from the rate.
    time_s = time_s or operations / (rate * 1e9)
    parameters: dict[str, Value] = {"n": n, "nb": nb, "p": p, "q": q, "ranks": p * q, "variant": words[0]}
    return _Test(line, parameters, time_s, in_SI(rate, 1e9), [])


def _check_summary(lines: Sequence[Line], tests: Sequence[_Test]) -> None:
    """Whether the summary counts what stands above it. Raises ParseError where it does not, or is missing."""
    finished = only_one([line for line in lines if _FINISHED.search(line.text)], _TOOL, "summary `Finished N tests`")
    only_one([line for line in lines if _END.search(line.text)], _TOOL, "line `End of Tests.`")
    match = _FINISHED.search(finished.text)
    total = finished.whole_of(_TOOL, match[1] if match else "", "the number of tests")
    below = lines[finished.number : finished.number + 8]
    unchecked = any(_UNCHECKED.search(line.text) for line in below)
    counted = [
        next((int(match[1]) for line in below if (match := pattern.search(line.text))), None) for pattern in _COUNTS
    ]
    if unchecked:
        raise finished.error(
            _TOOL, "the tests ran without a check of their residual; set a threshold above 0 in HPL.dat"
        )
    passed, failed, skipped = counted
    if passed is None or failed is None or skipped is None:
        raise finished.error(_TOOL, "the summary below this line is cut off")
    bare = [test for test in tests if not test.residuals]
    if bare:
        raise bare[0].line.error(_TOOL, "no residual stands below this test")
    right = sum(all(ok for _, ok in test.residuals) for test in tests)
    if (passed, failed, passed + failed + skipped) != (right, len(tests) - right, total):
        why = f"the summary counts {passed} passed and {failed} failed; the file shows {right} and {len(tests) - right}"
        raise finished.error(_TOOL, why)
    if not tests:
        raise finished.error(_TOOL, "no test was run: all were skipped because of illegal input values")


def _experiment(tests: Sequence[_Test]) -> ImportedExperiment:
    samples: list[Sample] = []
    for i, test in enumerate(tests):
        samples += [rate_sample("rate", test.rate, i=i), time_sample("time", test.time_s, i=i)]
    wrong = [test for test in tests if not all(ok for _, ok in test.residuals)]
    failed = f"residual FAILED: the solution is wrong (line {wrong[0].line.number})" if wrong else ""
    residuals = [value for test in tests for value, _ in test.residuals]
    return ImportedExperiment(
        "imported.hpl", tuple(samples), tests[0].parameters, {"residuals": residuals}, failed=failed
    )


READER = Reader("hpl", read)
