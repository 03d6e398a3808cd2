"""Logs of NWChem: the elapsed time of `Total times`. CPU time beside it is not elapsed time."""

from __future__ import annotations

import re

from seatrial.imports.application_log import Log
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "NWChem"
_BANNER = re.compile(r"nwchem branch += +(\S{1,40})")
_TIMES = r" times +cpu: +([0-9]{1,12}\.[0-9])s +wall: +([0-9]{1,12}\.[0-9])s"
_TOTAL = re.compile("Total" + _TIMES)
_TASK = re.compile("Task +" + _TIMES.lstrip())
_FAILED = re.compile(
    r"(?:.{0,40}Received an Error in Communication.{0,80}"
    r"|There is an error .{1,80}|For more information see the NWChem manual.{0,120})"
)
_UNCONVERGED = re.compile(r"Calculation failed to converge")
_RANKS = re.compile(r"nproc += +([0-9]{1,9})")


def read(data: bytes) -> ImportedFile:
    """One run of NWChem. Raises ParseError if it did not end, failed, or its times contradict each other."""
    log = Log(_TOOL, data)
    banner = log.banner(_BANNER, "nwchem branch   = 7.0.0")
    log.refuse(_FAILED, "NWChem failed here: the run has no figure")
    if not log.found(_TOTAL):
        raise log.not_ended("there is no `Total times`")
    total = log.only(_TOTAL, "`Total times`")
    wall = total.printed(2, "the elapsed time")
    tasks = [one.printed(2, "the elapsed time of a task") for one in log.found(_TASK)]
    if sum(task.value - task.error for task in tasks) > wall.value + wall.error:
        raise total.error("the tasks took longer than the whole run")
    found = log.maybe(_RANKS, "number of processes")
    parameters: dict[str, Value] = {} if found is None else {"ranks": found.whole(1, "nproc")}
    unconverged = log.found(_UNCONVERGED)
    remarks = tuple(f"line {one.line.number}: the calculation did not converge" for one in unconverged[:1])
    sample = time_sample("wall", wall.value, resolution=wall.resolution)
    experiment = ImportedExperiment("imported.nwchem", (sample,), parameters, remarks=remarks)
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


READER = Reader("nwchem", read)
