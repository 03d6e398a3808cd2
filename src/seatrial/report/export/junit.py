"""JUnit XML, which CI servers show: a test case for each figure, each experiment without one, and each verdict."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from seatrial.model.frozen import Frozen
from seatrial.model.results.exported import Exported, ExportedRow, ExportedVerdict
from seatrial.model.spelling import show
from seatrial.report.studies.verdicts import NOT_COMPARED

_SKIPPED = ("skipped", "unsupported")


class _Case(Frozen):
    name: str
    time_s: float
    result: str = ""  # "", failure, error or skipped
    kind: str = ""
    message: str = ""
    text: str = ""
    out: str = ""


def junit_text(exported: Exported) -> str:
    """One suite for each benchmark and each study. `slower` and invalid results are failures, other problems errors;
    what was skipped, is unsupported or undecided is skipped."""
    suites: dict[str, list[_Case]] = {}
    counted: set[str] = set()
    for row in exported.rows:
        suites.setdefault(row.benchmark, []).append(_of_row(row, 0.0 if row.experiment in counted else row.wall_s))
        counted.add(row.experiment)
    for verdict in exported.verdicts:
        suites.setdefault(f"study {verdict.study}", []).append(_of_verdict(verdict))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f"<testsuites {_counts([c for s in suites.values() for c in s])}>",
    ]
    for name, cases in suites.items():
        lines.append(f"  <testsuite name={_attribute(name)} {_counts(cases)}>")
        for case in cases:
            lines += _case(name, case)
        lines.append("  </testsuite>")
    return "\n".join([*lines, "</testsuites>", ""])


def _of_row(row: ExportedRow, time_s: float) -> _Case:
    if row.figure:
        name = f"{row.figure} {row.figure_parameters} [{row.experiment}]"
        unit = row.unit
        out = f"median {show(row.median or 0.0, unit)} ({row.median!r} {row.unit}), {row.better} is better, "
        if row.ci95_low is not None and row.ci95_high is not None:
            out += f"95 % interval {show(row.ci95_low, unit)} to {show(row.ci95_high, unit)}, "
        remarks = f"; {row.remarks}" if row.remarks else ""
        return _Case(name, time_s, out=f"{out}{row.n_repeats} repeats{remarks}")
    name = f"{row.parameters} [{row.experiment}]"
    result = "skipped" if row.outcome in _SKIPPED else "failure" if row.outcome == "invalid" else "error"
    return _Case(
        name, time_s, "" if row.outcome == "ok" else result, row.outcome, row.reason or row.outcome, row.evidence
    )


def _of_verdict(verdict: ExportedVerdict) -> _Case:
    # Why something was not compared is a case as well: the outcome of its experiment.
    result = {"slower": "failure", "ambiguous": "skipped", NOT_COMPARED: "skipped"}.get(verdict.verdict, "")
    message = f"{verdict.verdict}: {verdict.detail}"
    return _Case(f"{verdict.what}: {verdict.verdict}", 0.0, result, verdict.verdict, message, out=message)


def _counts(cases: list[_Case]) -> str:
    found = {kind: sum(case.result == kind for case in cases) for kind in ("failure", "error", "skipped")}
    time_s = sum(case.time_s for case in cases)
    return (
        f'tests="{len(cases)}" failures="{found["failure"]}" errors="{found["error"]}" '
        f'skipped="{found["skipped"]}" time="{time_s:.3f}"'
    )


def _case(suite: str, case: _Case) -> Iterator[str]:
    head = f'    <testcase classname={_attribute(suite)} name={_attribute(case.name)} time="{case.time_s:.3f}"'
    if not case.result and not case.out:
        yield f"{head}/>"
        return
    yield f"{head}>"
    if case.result == "skipped":
        yield f"      <skipped message={_attribute(case.message)}/>"
    elif case.result:
        what = f"type={_attribute(case.kind)} message={_attribute(case.message)}"
        yield f"      <{case.result} {what}>{escape(_clean(case.text))}</{case.result}>"
    if case.out:
        yield f"      <system-out>{escape(_clean(case.out))}</system-out>"
    yield "    </testcase>"


def _attribute(text: str) -> str:
    return quoteattr(_clean(text))


_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def _clean(text: str) -> str:
    """Without the characters that XML 1.0 cannot contain."""
    return _NOT_IN_XML.sub("?", text)
