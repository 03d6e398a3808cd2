"""IO500: result_summary.txt (2018 on) and result.txt (2020 on, sections with `key = value`).

The score is the square root of bandwidth x operations, which are geometric means of four and eight phases; all three
are recomputed. Old scripts print GB/s, and as TOTAL the product itself, which is another figure. Phases outside the
score (`ior-rnd4K-easy-read`, ...) are left out. A run that IO500 calls invalid has no score.

`apps.io500`: the IO500 on a configuration of the user.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT, InputCase
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

_TOOL = "IO500"
_BANDWIDTH = ("ior_easy_write", "ior_hard_write", "ior_easy_read", "ior_hard_read")
_OPERATIONS = (
    *(f"mdtest_easy_{name}" for name in ("write", "stat", "delete")),
    *(f"mdtest_hard_{name}" for name in ("write", "stat", "read", "delete")),
    "find",
)
_VERSION = Pattern(r"IO500 version (\S{1,60}) \((\w{1,20})\)")
_PHASE = Pattern(
    r"\[RESULT\] +(?:(?:BW|IOPS) +phase +[0-9]+ +)?([a-zA-Z0-9_-]{1,40})"
    r" +([0-9]{1,12}\.[0-9]{1,9}) (GB/s|GiB/s|k[iI][oO][pP][sS]) +: time +([0-9]{1,9}(?:\.[0-9]{1,6})?) seconds"
)
_PHASE_LIKE = Pattern(r"\[RESULT.{0,200}")
_SCORE = Pattern(
    r"\[SCORE *\] Bandwidth ([0-9]{1,12}\.[0-9]{1,9}) (GB/s|GiB/s) : IOPS ([0-9]{1,12}\.[0-9]{1,9}) k[iI][oO][pP][sS]"
    r" : TOTAL ([0-9]{1,12}\.[0-9]{1,9})"
)
_SCORE_LIKE = Pattern(r"\[SCORE[^X\]]{0,20}\].{0,200}")
_INVALID = Pattern(
    r"(?:.{0,300}\[INVALID\]|\[\w{1,10}[ -]INVALID\].{0,200}"
    r"|(?:; )?ERROR INVALID.{0,200}|valid *= *(?:NO|FALSE|0)\b.{0,40})",
    re.IGNORECASE,
)
_SECTION = Pattern(r"\[([A-Za-z0-9-]{1,40})\]")
_KEY = Pattern(r"(score|t_delta|MD|BW|SCORE|procs|version|mode) *= *(\S{1,80})")
_LONG_S, _MOST_APART = 10.0, 1.5
_UNITS = {"GB/s": 1e9, "GiB/s": 2.0**30}


class _Result(Frozen):
    """All numbers of a file, in its own unit of bandwidth, and thousands of operations per second."""

    phases: Mapping[str, Printed]
    times_s: Mapping[str, float]
    """Seconds that each phase took, with its start."""
    unit: float
    bandwidth: Printed
    operations: Printed
    total: Printed
    line: Found
    """The line with the score."""


def _measured(log: Log) -> Measured:
    """One run of IO500. Raises ParseError if it did not end or is invalid, or if its score is not that of its
    phases."""
    log.refuse(_INVALID, "IO500 says that this run is invalid: it has no score")
    parameters: dict[str, Value] = {}
    version = ""
    if log.found(_PHASE_LIKE):
        result = _summary(log)
        if (found := log.maybe(_VERSION, "version")) is not None:
            version, parameters["mode"] = found.text(1), found.text(2)
    else:
        result, run = _sections(log)
        version = run.get("version", "")
        if run.get("mode"):
            parameters["mode"] = run["mode"]
        if re.fullmatch(r"[1-9][0-9]{0,8}", run.get("procs", "")):
            parameters["ranks"] = int(run["procs"])
    is_product = _check(result)
    odd = _unequal_work(result)
    score = Printed(math.sqrt(result.bandwidth.value * result.operations.value), 0.0)
    remarks: tuple[str, ...] = ()
    samples: list[Sample] = []
    if is_product:
        score = Printed(score.value, score.value * (result.bandwidth.share + result.operations.share) / 2)
        samples.append(result.total.rate_sample("product"))
        remarks = (
            "TOTAL is the product of bandwidth and operations here; `score` is its square root, as in later versions",
        )
    else:
        score = result.total
    samples.append(score.rate_sample("score"))
    if odd:
        remarks = (*remarks, f"{odd} did more work than the other phases on the same files (rate x time)")
    for name, one, unit in (("bandwidth", result.bandwidth, result.unit), ("operations", result.operations, 1e3)):
        samples.append(one.rate_sample(name, unit))
    for name, one in result.phases.items():
        unit = result.unit if name in _BANDWIDTH else 1e3
        samples.append(one.rate_sample(name, unit))
    return Measured(samples, parameters, remarks=remarks, version=version.removeprefix("io500-"))


def _summary(log: Log) -> _Result:
    """What result_summary.txt states. Raises ParseError for a damaged or missing phase."""
    phases: dict[str, Printed] = {}
    times: dict[str, float] = {}
    units: set[str] = set()
    for row in log.each_of_form(_PHASE_LIKE, _PHASE, "a damaged line of a phase"):
        name = row.match[1].lower().replace("-", "_")
        if name not in (*_BANDWIDTH, *_OPERATIONS):
            continue
        is_bandwidth = row.match[3] in _UNITS
        if is_bandwidth != (name in _BANDWIDTH):
            raise row.error(f"{row.match[3]} is not a unit of this phase")
        if is_bandwidth:
            units.add(row.match[3])
        _add(phases, name, row, 2)
        times[name] = row.number_or_zero(4, "the time")
    if not log.found(_SCORE_LIKE):
        raise log.not_ended("there is no `[SCORE]`")
    score = log.only(_SCORE, "`[SCORE]`")
    if len(log.found(_SCORE_LIKE)) > 1:
        raise log.found(_SCORE_LIKE)[1].error("a second score: two runs in one file")
    if len(units) > 1:
        raise score.error("phases in GB/s and in GiB/s: two runs in one file")
    unit = _UNITS[units.pop()] if units else _UNITS[score.match[2]]
    bandwidth, operations, total = (score.printed(group, "the score") for group in (1, 3, 4))
    return _Result(phases, times, unit, bandwidth, operations, total, score)


def _sections(log: Log) -> tuple[_Result, dict[str, str]]:
    """What result.txt states, and the keys of its section `run`. Raises ParseError."""
    sections = {one.line.number: one.match[1] for one in log.found(_SECTION)}
    keys = {one.line.number: one for one in log.found(_KEY)}
    phases: dict[str, Printed] = {}
    times: dict[str, float] = {}
    run: dict[str, str] = {}
    score: dict[str, Found] = {}
    section = ""
    for line in log.lines:
        section = sections.get(line.number, section)
        key = keys.get(line.number)
        if key is None:
            continue
        name = section.lower().replace("-", "_")
        if section == "SCORE":
            if key.match[1] in score:
                raise key.error("stated twice: two runs in one file")
            score[key.match[1]] = key
        elif section == "run":
            if run.setdefault(key.match[1], key.text(2)) != key.text(2):
                raise key.error("stated twice: two runs in one file")
        elif key.match[1] == "score" and name in (*_BANDWIDTH, *_OPERATIONS):
            _add(phases, name, key, 2)
        elif key.match[1] == "t_delta":
            times[name] = key.number_or_zero(2, "t_delta")
    if not {"MD", "BW", "SCORE"} <= set(score):
        raise log.not_ended("there is no section `[SCORE]` with MD, BW and SCORE")
    bandwidth, operations, total = (score[name].printed(2, "the score") for name in ("BW", "MD", "SCORE"))
    return _Result(phases, times, _UNITS["GiB/s"], bandwidth, operations, total, score["SCORE"]), run


def _add(phases: dict[str, Printed], name: str, found: Found, group: int) -> None:
    """Old scripts print the phases as they run and again at the end."""
    result = found.printed(group, "the result of the phase")
    if phases.setdefault(name, result) != result:
        raise found.error("another result of this phase: two runs in one file")


def _check(result: _Result) -> bool:
    """Whether TOTAL is a product in place of its square root. Raises ParseError if the score is not that of the
    phases."""
    missing = [name for name in (*_BANDWIDTH, *_OPERATIONS) if name not in result.phases]
    if missing:
        raise result.line.error(f"the file has no result of {missing[0]}: a phase is missing, so there is no score")
    for names, stated, what in (
        (_BANDWIDTH, result.bandwidth, "bandwidth"),
        (_OPERATIONS, result.operations, "operations"),
    ):
        parts = [result.phases[name] for name in names]
        mean = math.exp(sum(math.log(one.value) for one in parts) / len(parts))
        slack = sum(one.share for one in parts) / len(parts) + stated.share + 5e-5
        if abs(mean - stated.value) > slack * stated.value:
            raise result.line.error(f"{what}: {stated.value:g}, but the geometric mean of its phases is {mean:g}")
    product = result.bandwidth.value * result.operations.value
    slack = result.bandwidth.share + result.operations.share + result.total.share + 1e-5
    if abs(math.sqrt(product) - result.total.value) <= slack * result.total.value:
        return False
    if abs(product - result.total.value) <= slack * product:
        return True
    raise result.line.error(f"the score is {result.total.value:g}, but should be {math.sqrt(product):g}")


def _unequal_work(result: _Result) -> str:
    """The name of a phase that did much more than the others on the same files; "" if there is none.

    Deletion takes longer than its rate says: directories are removed, too. Such runs are among the published ones.
    """
    for pattern in ("ior_easy", "ior_hard", "mdtest_easy", "mdtest_hard"):
        work = {
            name: one.value * result.times_s[name]
            for name, one in result.phases.items()
            if name.startswith(pattern) and not name.endswith("delete") and result.times_s.get(name, 0.0) >= _LONG_S
        }
        if work and max(work.values()) > _MOST_APART * min(work.values()):
            return max(work, key=lambda name: work[name])
    return ""


IMPORTED = figures.imported(
    "io500",
    "IO500",
    "Which score did IO500 give?",
    (figures.text("mode", "standard or extended"), figures.count("ranks", "processes")),
    (
        figures.rate("score", "1", "square root of bandwidth (GiB/s; old versions: GB/s) x thousands of operations/s"),
        figures.rate("product", "1", "TOTAL of old versions: bandwidth (GB/s) x thousands of operations/s"),
        figures.rate("bandwidth", "B/s", "geometric mean of the phases of IOR", figures.given_limit("B/s")),
        figures.rate("operations", "op/s", "geometric mean of the phases of mdtest and find"),
        *(figures.rate(name, "B/s", "this phase of IOR") for name in _BANDWIDTH),
        *(figures.rate(name, "op/s", "this phase") for name in _OPERATIONS),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, _measured)


BENCHMARK = application(
    IMPORTED,
    "What is the IO500 score of this file system?",
    tool="IO500",
    programs=("io500",),
    install="build the IO500 (https://github.com/IO500/io500) and put io500 on PATH",
    arguments=lambda params: [str(params[INPUT])],
    output="results/*/result.txt",
    cases=(
        InputCase(
            "minimal",
            "the shortest valid configuration (stonewall 300 s; set expected_s); its data and results are in the "
            "folder of the run",
            "https://github.com/IO500/io500, file config-minimal.ini",
            "config-minimal.ini",
        ),
    ),
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
