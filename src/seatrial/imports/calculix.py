"""The output of CalculiX CrunchiX (ccx): the elapsed time of the whole run, which it prints since version 2.16."""

from __future__ import annotations

import re
from collections.abc import Sequence

from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.imports.tables import body
from seatrial.imports.text import Line, last_digit, only_one, read_lines
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "CalculiX"
_BANNER = re.compile(r"CalculiX Version (\d[\w.]{0,20}), Copyright.{0,80}")
_TOTAL = re.compile(r"Total CalculiX Time: ([0-9]{1,9}\.[0-9]{6})")
_TOTAL_LIKE = re.compile(r".{0,200}CalculiX Time.{0,200}")
_FINISHED = re.compile(r"Job finished")
_THREADS = re.compile(r"Using up to ([0-9]{1,9}) cpu\(s\) for .{1,80}")
_STEP = re.compile(r"STEP {1,20}([0-9]{1,9})")
_COUNT = re.compile(r"(nodes|elements): {1,30}([0-9]{1,12})")
_SIZES_HEADING = re.compile(r"The numbers below are estimated upper bounds")
_ERROR = re.compile(r"^\*ERROR\b|Segmentation fault|best solution and residuals are in")
_NOT_FINITE = re.compile(r"^(?:average|largest|time avg).{0,80}= {0,10}[+-]?(?:nan|inf)", re.IGNORECASE)


def read(data: bytes) -> ImportedFile:
    """The output of one run. Raises ParseError for a run that failed, diverged, or did not end, and for two runs."""
    lines = [(line, body(line).strip()) for line in read_lines(data, _TOOL)]
    banner = only_one([line for line, text in lines if _BANNER.fullmatch(text)], _TOOL, "banner `CalculiX Version`")
    for line, text in lines:
        if _ERROR.search(text):
            raise line.error(_TOOL, "the run failed: it has no figure")
        if _NOT_FINITE.search(text):
            raise line.error(_TOOL, "the solution diverged (not a number): such a run has no figure")
    finished = [line for line, text in lines if _FINISHED.fullmatch(text)]
    if not finished:
        raise lines[-1][0].error(_TOOL, "no `Job finished`: the run has not ended, or the file is cut off")
    total = only_one([line for line, text in lines if _TOTAL_LIKE.fullmatch(text)], _TOOL, "`Total CalculiX Time`")
    match = _TOTAL.fullmatch(body(total).strip())
    if match is None or not total.is_ended:
        raise total.error(_TOOL, "not of the form `Total CalculiX Time: 1.234567`: the line is damaged or cut off")
    if not banner.number < finished[-1].number < total.number:
        raise total.error(_TOOL, "the banner, `Job finished` and this line are not in this order")
    time_s = total.number_of(_TOOL, match[1], "the time")
    version = _BANNER.fullmatch(body(banner).strip())
    experiment = ImportedExperiment(
        "imported.calculix",
        (time_sample("time", time_s, resolution=last_digit(match[1])),),
        _parameters(lines),
        {"steps": len({match[1] for _, text in lines if (match := _STEP.fullmatch(text))})},
    )
    return ImportedFile(_TOOL, version[1] if version else "", (experiment,))


def _parameters(lines: Sequence[tuple[Line, str]]) -> dict[str, Value]:
    """Threads, and the size of the model. Raises ParseError if there are two sizes: two runs."""
    parameters: dict[str, Value] = {}
    threads = [int(match[1]) for _, text in lines if (match := _THREADS.fullmatch(text))]
    if threads:
        parameters["threads"] = max(threads)
    headings = [line for line, text in lines if _SIZES_HEADING.fullmatch(text)]
    if len(headings) > 1:
        raise headings[1].error(_TOOL, f"a second model; the first is at line {headings[0].number}: two runs")
    for line, text in lines:
        if headings and (match := _COUNT.fullmatch(text)) and match[1] not in parameters:
            parameters[match[1]] = line.whole_of(_TOOL, match[2], f"the number of {match[1]}")
    return parameters


READER = Reader("calculix", read)
