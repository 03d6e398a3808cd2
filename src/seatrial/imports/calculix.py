"""The output of CalculiX CrunchiX (ccx): the elapsed time of the whole run, which it prints since version 2.16."""

from __future__ import annotations

import re

from seatrial.benchmarks.apps.calculix_output import BANNER, COUNT, FINISHED, THREADS, TOTAL
from seatrial.imports.application_log import Log
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "CalculiX"
_TOTAL_LIKE = re.compile(r".{0,200}CalculiX Time.{0,200}")
_STEP = re.compile(r"STEP {1,20}([0-9]{1,9})")
_SIZES_HEADING = re.compile(r"The numbers below are estimated upper bounds")
_ERROR = re.compile(r"^\*ERROR\b|Segmentation fault|best solution and residuals are in")
_NOT_FINITE = re.compile(r"^(?:average|largest|time avg).{0,80}= {0,10}[+-]?(?:nan|inf)", re.IGNORECASE)


def read(data: bytes) -> ImportedFile:
    """The output of one run. Raises ParseError for a run that failed, diverged, or did not end, and for two runs."""
    log = Log(_TOOL, data)
    banner = log.banner(BANNER, "CalculiX Version 2.20, Copyright(C) 1998-2022 Guido Dhondt")
    log.refuse_signs((_ERROR, "the run failed"), (_NOT_FINITE, "the solution diverged (not a number)"))
    finished = log.found(FINISHED)
    if not finished:
        raise log.not_ended("no `Job finished`")
    total = log.of_form(_TOTAL_LIKE, TOTAL, "Total CalculiX Time: 1.234567")
    if not banner.line.number < finished[-1].line.number < total.line.number:
        raise total.error("the banner, `Job finished` and this line are not in this order")
    time = total.printed(1, "the time")
    notes = {"steps": len({step.match[1] for step in log.found(_STEP)})}
    experiment = ImportedExperiment("imported.calculix", (time.sample("wall"),), _parameters(log), notes)
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


def _parameters(log: Log) -> dict[str, Value]:
    """Threads, and the size of the model. Raises ParseError if there are two sizes: two runs."""
    parameters: dict[str, Value] = {}
    if threads := [int(one.match[1]) for one in log.found(THREADS)]:
        parameters["threads"] = max(threads)
    if log.at_most_one(_SIZES_HEADING, "model") is not None:
        for size in log.found(COUNT):
            parameters.setdefault(size.match[1], size.whole(2, f"the number of {size.match[1]}"))
    return parameters


READER = Reader("calculix", read)
