"""HPCG reports, parsed by `seatrial.benchmarks.apps.hpcg_output`."""

from __future__ import annotations

from seatrial.benchmarks.apps.hpcg_output import TOOL, HpcgReport, is_last_line, read_hpcg
from seatrial.imports.reader import Reader
from seatrial.imports.samples import in_SI, rate_sample, time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import SIX_DIGITS, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample


def read(data: bytes) -> ImportedFile:
    """One report of HPCG. Raises ParseError if it is cut off, has two runs, or contradicts itself."""
    lines = [(line, body(line)) for line in read_lines(data, TOOL)]
    report = read_hpcg([text for line, text in lines if line.is_ended or is_last_line(text)])
    parameters: dict[str, Value] = dict(report.counts)
    notes = {
        "submission_valid": report.submission_valid,
        "shortest_official_s": report.official_s,
        "reference_code": report.is_reference_code,
    }
    experiment = ImportedExperiment("imported.hpcg", tuple(_samples(report)), parameters, notes)
    return ImportedFile(TOOL, report.version, (experiment,), report.failed)


def _samples(report: HpcgReport) -> list[Sample]:
    if report.failed:
        return []
    samples = [rate_sample(name, in_SI(value, 1e9), resolution=SIX_DIGITS) for name, value in report.rates.items()]
    return [*samples, time_sample("time", report.total_s, resolution=SIX_DIGITS)]


READER = Reader("hpcg", read)
