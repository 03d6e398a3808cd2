"""What PAM-CRASH (ESI VPS) prints: the elapsed time of a run with normal termination.

Format from documentation: of the output, only what scripts of sites read in it is known (the last line `ELAPSED TIME`,
in seconds, and the version and precision in a box). Whatever else a version prints is not looked at, and a file without
these lines is refused.
"""

from __future__ import annotations

import re

from seatrial.imports.application_log import Log
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value

_TOOL = "PAM-CRASH"
_NAMED = re.compile(r"PAM[- ]?CRASH|PAM-SAFE|Virtual Performance Solution|\bVPS\b", re.IGNORECASE)
_NORMAL = re.compile(r"\W*NORMAL TERMINATION\W*(?:.{0,60})")
_FAILED = re.compile(
    r"(?:ABNORMAL|ERROR) TERMINATION|\bNaN\b|\*\*\* ?(?:FATAL )?ERROR\b|Segmentation fault|BAD TERMINATION"
    r"|\blicen[cs]e\b.{0,60}(?:not available|denied|fail)",
    re.IGNORECASE,
)
_ELAPSED = re.compile(
    r"ELAPSED TIME (?:[=:] ?)?([0-9]{1,9}\.[0-9]{1,6}(?:E[+-]?[0-9]{1,2})?)(?: .{0,100})?", re.IGNORECASE
)
_ELAPSED_LIKE = re.compile(r".{0,20}ELAPSED TIME.{0,200}", re.IGNORECASE)
_VERSION = re.compile(r"\| ?Version ?: (\S.{0,60}?) ?\|")
_PRECISION = re.compile(r"\| ?Precision ?: (Single|Double)\b.{0,30}\|", re.IGNORECASE)


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if it failed or did not end, if the file is from another program or holds two runs."""
    log = Log(_TOOL, data, is_spaced_once=True)
    if not any(_NAMED.search(text) for text in log.texts):
        raise log.error("nothing names PAM-CRASH or VPS: from another program, or its beginning is missing")
    log.refuse_signs((_FAILED, "the run failed"))
    normal = log.at_most_one(_NORMAL, "`NORMAL TERMINATION`")
    if normal is None:
        raise log.not_ended("no `NORMAL TERMINATION`")
    like, times = log.found(_ELAPSED_LIKE), log.found(_ELAPSED)
    if not times:
        raise normal.error("no line such as `ELAPSED TIME 1234.5`: when the run ended is not stated")
    if times[-1].line.number != like[-1].line.number:
        raise like[-1].error("not of the form `ELAPSED TIME 1234.5`: the line is damaged")
    values = [one.printed(1, "the elapsed time") for one in times]
    for before, after, line in zip(values, values[1:], times[1:], strict=False):
        if after.value < before.value:
            raise line.error("less than before: two runs in one file, or the line is damaged")
    parameters: dict[str, Value] = {}
    if (precision := log.maybe(_PRECISION, "precision")) is not None:
        parameters["precision"] = precision.text(1).lower()
    version = log.maybe(_VERSION, "version")
    experiment = ImportedExperiment("imported.pam-crash", (values[-1].sample("wall"),), parameters)
    return ImportedFile(_TOOL, "" if version is None else version.text(1), (experiment,))


READER = Reader("pam-crash", read)
