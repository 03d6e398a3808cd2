"""What PAM-CRASH (ESI VPS) prints: the elapsed time of a run with normal termination.

Format from documentation: of the output, only what scripts of sites read in it is known (the last line `ELAPSED TIME`,
in seconds, and the version and precision in a box). Whatever else a version prints is not looked at, and a file without
these lines is refused.

`apps.pam-crash`: the crash code PAM-CRASH (ESI VPS) on the user's input.
"""

from __future__ import annotations

import re

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FROM_DOCUMENTATION, application
from seatrial.model.benchmark.given_input import INPUT
from seatrial.model.benchmark.parameter import Value

_ELAPSED = Pattern(
    r"ELAPSED TIME (?:[=:] ?)?([0-9]{1,9}\.[0-9]{1,6}(?:E[+-]?[0-9]{1,2})?)(?: .{0,100})?", re.IGNORECASE
)
_ELAPSED_LIKE = Pattern(r".{0,20}ELAPSED TIME.{0,200}", re.IGNORECASE)
_VERSION = Pattern(r"\| ?Version ?: (\S.{0,60}?) ?\|")
_PRECISION = Pattern(r"\| ?Precision ?: (Single|Double)\b.{0,30}\|", re.IGNORECASE)


def _measured(log: Log, begin: Found, normal: Found) -> Measured:
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
    return Measured([values[-1].sample("wall")], parameters, version="" if version is None else version.text(1))


IMPORTED = figures.imported(
    "pam-crash",
    "PAM-CRASH",
    "How long did PAM-CRASH take?",
    (figures.choice("precision", "precision of the solver", "single", "double"),),
    (figures.time("wall", "elapsed time of the whole run (the last ELAPSED TIME)"),),
)

READER = log_reader(
    IMPORTED,
    "PAM-CRASH",
    _measured,
    begin=(r"(?i)PAM[- ]?CRASH|PAM-SAFE|Virtual Performance Solution|\bVPS\b", "PAM-CRASH or VPS"),
    is_begun_anywhere=True,
    is_spaced_once=True,
    signs=(
        (
            r"(?i)(?:ABNORMAL|ERROR) TERMINATION|\bNaN\b|\*\*\* ?(?:FATAL )?ERROR\b|Segmentation fault|BAD TERMINATION"
            r"|\blicen[cs]e\b.{0,60}(?:not available|denied|fail)",
            "the run failed",
        ),
    ),
    end=(r"\W*NORMAL TERMINATION\W*(?:.{0,60})", "no `NORMAL TERMINATION`"),
    is_from_documentation=True,
)


BENCHMARK = application(
    IMPORTED,
    "How long does PAM-CRASH take?",
    tool="PAM-CRASH",
    programs=("pamcrash",),
    install="PAM-CRASH needs a licence (https://www.esi-group.com): put pamcrash on PATH",
    arguments=lambda params: ["-np", str(params["processes"]), "-nt", "1", str(params[INPUT])],
    starts="itself",
    stated={},
    is_clocked=True,
    evidence=FROM_DOCUMENTATION,
)
