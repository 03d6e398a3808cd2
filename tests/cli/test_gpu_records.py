"""From the records of a node with eight GPUs to what the commands say of its links."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from analysis.made_up_gpu_folder import node, transfer_folder
from analysis.made_up_nodes import GEN3_X16
from cli.in_process import seatrial_here
from cli.test_contract import answer

from seatrial.analysis.results import trials_of
from seatrial.model.machine.limit import Basis
from seatrial.model.study.result import Trial
from seatrial.report.pages.page import page
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

ALONE, AT_ONCE = 12.2e9, 3.3e9


def trial_in(path: Path) -> Trial:
    (trial,) = trials_of(read_contents(ResultsFolder.existing(path)))
    return trial


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return transfer_folder(tmp_path / "r", node(), lambda k: ALONE, lambda k: AT_ONCE)


def test_figures_have_the_limits_of_the_links_that_they_cross(folder: Path) -> None:
    (result,) = trial_in(folder).results
    assert result.outcome.is_ok
    limits = {(f.name, f.point.get("device")): f.limit for f in result.figures}
    for way in ("h2d", "d2h"):
        own, beside, whole = limits[way, 7], limits[f"{way}_together", 7], limits[f"{way}_all", None]
        assert own is not None and own.value == GEN3_X16 and own.is_physical
        assert beside is not None and beside.basis is Basis.UNKNOWN
        assert whole is not None and whole.value == pytest.approx(2 * GEN3_X16)
    whole = next(figure for figure in result.figures if figure.name == "h2d_all")
    assert whole.fraction_of_limit == pytest.approx(8 * AT_ONCE * 1.005 / (2 * GEN3_X16), rel=0.01)


def test_the_shared_uplinks_explain_the_lost_bandwidth(folder: Path) -> None:
    findings = {finding.rule: finding for finding in trial_in(folder).findings}
    assert "fill 84 % of it: the uplink is the bottleneck" in findings["copies-share-uplink"].diagnosis
    assert not {"below-physical-limit", "link-measured-low", "gpus-share-uplink"} & set(findings)


def test_a_rate_above_the_link_is_rejected(tmp_path: Path) -> None:
    above = transfer_folder(tmp_path / "r", node(), lambda k: 1.1 * GEN3_X16, lambda k: AT_ONCE)
    (result,) = trial_in(above).results
    assert not result.outcome.is_ok and result.outcome.check == "limit" and result.figures == ()
    hidden = replace(node(), facts=replace(node().facts, by_name={}))
    allowed = transfer_folder(tmp_path / "other", hidden, lambda k: 1.1 * GEN3_X16, lambda k: AT_ONCE)
    assert trial_in(allowed).results[0].outcome.is_ok, "no source says that these links are all there is"


def test_the_commands_read_them(folder: Path, tmp_path: Path) -> None:
    document = answer(
        seatrial_here("discover", "--results", str(folder), "--format", "json", cwd=tmp_path), "machine-1"
    )
    measured = {link["b"]: link["measured_Bps"] for link in document["links"]}
    assert measured["gpu-0"] == pytest.approx(ALONE, rel=0.01)
    assert measured["pci-0001:01:00.0"] == pytest.approx(4 * AT_ONCE, rel=0.01)
    checked = answer(seatrial_here("check", "--results", str(folder), "--format", "json", cwd=tmp_path), "check-1")
    assert "copies-share-uplink" in {finding["rule"] for finding in checked["findings"]}
    text = seatrial_here("discover", "--results", str(folder), cwd=tmp_path).stdout
    assert "pci-0000:01:00.0" in text and "84 %" in text


def test_the_page_shows_them(folder: Path) -> None:
    html = page([trial_in(folder)])
    for said in ("Device by device", "measured 12.3", "gpu.transfer", "device 7 (gpu-7)", "h2d_all"):
        assert said in html, said
