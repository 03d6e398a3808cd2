"""Logs of CP2K.

The row `CP2K` of the table of timings is the whole run: its last two columns are the mean and the most of all ranks,
and the slowest rank counts. It is checked against the moments at which the program began and ended, against the other
rows, and against the mean: all ranks begin and end together.
"""

from __future__ import annotations

import re
from datetime import datetime

from seatrial.imports.application_log import Found, Log, refuse_exploded
from seatrial.imports.reader import Reader
from seatrial.imports.samples import time_sample
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "CP2K"
_MOMENT = r"([0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3})"
_STARTED = re.compile(rf"[* ]+PROGRAM STARTED AT +{_MOMENT}")
_ENDED = re.compile(rf"[* ]+PROGRAM ENDED AT +{_MOMENT}")
_VERSION = re.compile(r"CP2K\| version string: +CP2K version (\S{1,40}).{0,40}")
_TOTAL = re.compile(r"CP2K +1 +1\.0" + 4 * r" +([0-9]{1,9}\.[0-9]{2,3})")
_ROW = re.compile(
    r"[a-zA-Z]\w{2,39} +[1-9][0-9]{0,11} +[0-9]{1,3}\.[0-9](?: +[0-9]{1,9}\.[0-9]{2,3}){3} +([0-9]{1,9}\.[0-9]{2,3})"
)
_MOST_APART = 0.1
_ABORT = re.compile(r"(?:\*.{0,20}\[ABORT\].{0,200}|CP2K\| .{0,40}SIGTERM.{0,80}|=+ ?ABORT.{0,80})")
_TEMPERATURE = re.compile(r"(?:TEMPERATURE \[K\] +=|MD\| Temperature \[K\]) +(\S{1,30})(?: +\S{1,30})?")
_UNCONVERGED = re.compile(r"\*\*\* WARNING .{1,80} SCF run NOT converged.{0,40}")
_PARAMETERS = {
    "ranks": re.compile(r"GLOBAL\| Total number of message passing processes +([0-9]{1,9})"),
    "threads": re.compile(r"GLOBAL\| Number of threads for this process +([0-9]{1,9})"),
    "atoms": re.compile(r"- Atoms: +([0-9]{1,12})"),
}


def read(data: bytes) -> ImportedFile:
    """One run of CP2K. Raises ParseError if it did not end, failed or exploded, or its times contradict each other."""
    log = Log(_TOOL, data)
    started = log.banner(_STARTED, "PROGRAM STARTED AT")
    version = log.maybe(_VERSION, "version")
    if version is None:
        raise log.error("no line `CP2K| version string`: from another program, or damaged")
    log.refuse(_ABORT, "CP2K stopped here: the run has no figure")
    for row in log.found(_TEMPERATURE):
        refuse_exploded(row, row.match[1])
    if not log.found(_ENDED):
        raise log.not_ended("there is no `PROGRAM ENDED AT`")
    ended = log.only(_ENDED, "`PROGRAM ENDED AT`")
    row = log.only(_TOTAL, "row `CP2K` of the table of timings")
    mean, most = row.printed(3, "the mean total time"), row.printed(4, "the most total time")
    span_s = (_moment(ended) - _moment(started)).total_seconds()
    if mean.value > most.value + mean.error + most.error:
        raise row.error("the mean of all ranks is above the most")
    if mean.value < (1 - _MOST_APART) * most.value:
        raise row.error("the mean of all ranks is far below the most: the row is damaged")
    if most.value > span_s + 1.0:
        raise row.error(f"{most.value:g} s, but the program took {span_s:g} s from its begin to its end")
    for part in log.found(_ROW):
        if part.line.number_or_zero(_TOOL, part.match[1], "the most total time") > 1.001 * most.value + 0.01:
            raise part.error(f"a part took longer than the whole run, {most.value:g} s")
    unconverged = log.found(_UNCONVERGED)
    remarks = (
        (f"{len(unconverged)} SCF runs did not converge: compare only runs that did the same",) if unconverged else ()
    )
    parameters: dict[str, Value] = {
        name: found.whole(1, name)
        for name, pattern in _PARAMETERS.items()
        if (found := log.maybe(pattern, f"number of {name}")) is not None
    }
    sample = time_sample("wall", most.value, resolution=most.resolution)
    experiment = ImportedExperiment("imported.cp2k", (sample,), parameters, remarks=remarks)
    return ImportedFile(_TOOL, version.text(1), (experiment,))


def _moment(found: Found) -> datetime:
    try:
        return datetime.fromisoformat(found.match[1])
    except ValueError as error:
        raise found.error("not a valid date and time") from error


READER = Reader("cp2k", read)
