"""JUnit of each verdict and each outcome: what CI servers take as passed, failed, broken and skipped."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ET

import pytest
from report.study_samples import fair, no_interval

from seatrial.model.results.exported import Exported, ExportedRow, ExportedVerdict
from seatrial.model.study.result import Compared
from seatrial.report.export.junit import junit_text
from seatrial.report.studies.verdicts import verdict_rows


def cases(exported: Exported) -> list[tuple[str, str, str]]:
    """(name, result, message) of each test case; the counts of the suites fit."""
    root = ET.fromstring(junit_text(exported))
    found = []
    for case in root.iter("testcase"):
        results = [child for child in case if child.tag != "system-out"]
        assert len(results) <= 1
        tag, message = (results[0].tag, results[0].get("message") or "") if results else ("", "")
        found.append((case.get("name") or "", tag, message))
    for place in (root, *root.iter("testsuite")):
        own = [{child.tag for child in case} for case in place.iter("testcase")]
        for attribute, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert place.get(attribute) == str(sum(tag in tags for tags in own))
        assert place.get("tests") == str(len(own))
    return found


def of_study(compared: Compared) -> list[tuple[str, str, str]]:
    return cases(Exported((), tuple(ExportedVerdict("stores", *row) for row in verdict_rows(compared))))


def test_each_verdict_of_a_study() -> None:
    found = {name.split()[1]: (name.rpartition(": ")[2], result, why) for name, result, why in of_study(fair())}
    assert {figure: (verdict, result) for figure, (verdict, result, _) in found.items()} == {
        "copy": ("faster", ""),
        "scale": ("same", ""),
        "add": ("slower", "failure"),
        "triad": ("ambiguous", "skipped"),
        "load": ("faster", ""),
    }
    assert found["add"][2].startswith("slower: ratio 0.86, interval 0.8")


def test_a_comparison_without_an_interval_or_a_side_is_skipped() -> None:
    lost = dataclasses.replace(no_interval(), lost=("nontemporal true: invalid: check residual failed <&>",))
    found = of_study(lost)
    assert [result for _, result, _ in found] == ["skipped"] * 3
    assert found[-1][0].endswith(": not compared") and "check residual failed <&>" in found[-1][2]


@pytest.mark.parametrize(
    ("outcome", "result"),
    [("ok", ""), ("invalid", "failure"), ("failed", "error"), ("timed_out", "error"), ("skipped", "skipped"),
     ("unsupported", "skipped")],
)  # fmt: skip
def test_each_outcome_of_an_experiment(outcome: str, result: str) -> None:
    row = ExportedRow("id", "b", "{}", "", "m", outcome, reason="why")
    assert [(tag, message) for _, tag, message in cases(Exported((row,)))] == [(result, "why" if result else "")]
