"""HPL, the High-Performance Linpack benchmark: text output, parsed by `seatrial.benchmarks.apps.hpl_output`."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.apps.hpl_output import TOOL, HplTest, read_hpl
from seatrial.imports.reader import Reader
from seatrial.imports.samples import in_SI, rate_sample, time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample


def read(data: bytes) -> ImportedFile:
    """One run of HPL: one experiment per setting, with repeated rows as its samples.

    Raises ParseError if the output is cut off before its summary, has two runs, or contradicts itself.
    """
    output = read_hpl([body(line) for line in read_lines(data, TOOL)])
    groups: dict[tuple[Value, ...], list[HplTest]] = {}
    for test in output.tests:
        groups.setdefault(tuple(_parameters(test).values()), []).append(test)
    return ImportedFile(TOOL, output.version, tuple(map(_experiment, groups.values())))


def _parameters(test: HplTest) -> dict[str, Value]:
    grid = {"p": test.p, "q": test.q, "ranks": test.p * test.q}
    return {"n": test.n, "nb": test.nb, **grid, "variant": test.variant}


def _experiment(tests: Sequence[HplTest]) -> ImportedExperiment:
    samples: list[Sample] = []
    for i, test in enumerate(tests):
        # A time printed as 0.00 follows more exactly from the rate.
        time_s = test.printed_s or test.time_s
        step = test.time_step_s / time_s if test.printed_s else test.resolution
        samples += [
            rate_sample("rate", in_SI(test.printed_Gflops, 1e9), i=i, resolution=test.resolution),
            time_sample("time", time_s, i=i, resolution=step),
        ]
    wrong = next((test for test in tests if not test.is_right), None)
    failed = "" if wrong is None else f"residual FAILED: the solution is wrong (line {wrong.line})"
    residuals = [residual.value if residual.passed else None for test in tests for residual in test.residuals]
    parameters = _parameters(tests[0])
    return ImportedExperiment("imported.hpl", tuple(samples), parameters, {"residuals": residuals}, failed=failed)


READER = Reader("hpl", read)
