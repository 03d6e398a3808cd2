"""`seatrial discover --results`: copies of GPUs on the links of the answer, in each of its forms."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from analysis.made_up_copies import p2p, transfer
from published_schemas import check
from report.drawing_machines import two_gpus

from seatrial.analysis import folder
from seatrial.cli.check import check_machine
from seatrial.cli.discover import PictureFormat, _discover
from seatrial.cli.output import Amount, Format, Output
from seatrial.interface import machines
from seatrial.model.machine.machine import DeviceKind, Machine
from seatrial.model.study.result import Trial

MACHINE = two_gpus()
ADDRESSES = [device.pci for device in MACHINE.of_kind(DeviceKind.GPU) if device.pci]


@pytest.fixture
def results(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A results folder of a made-up machine, on which the command is run."""
    copies, seen = transfer(ADDRESSES, lambda k: 24e9 + k * 1e9, lambda k: 12e9)
    pairs, more = p2p(ADDRESSES, lambda a, b: 20e9 + a * 1e9)
    trial = Trial(MACHINE, (copies, pairs), (), (), {}, seen={**seen, **more})
    monkeypatch.setattr(folder, "trials_in", lambda path: (trial,))
    monkeypatch.setattr(machines, "machine_of", lambda dumps, *, live, results: MACHINE)
    return Path("r")


def shown(capsys: pytest.CaptureFixture[str], results: Path | None, form: str) -> str:
    _discover(results=results, output_format=PictureFormat(form), amount=Amount())
    return capsys.readouterr().out


def test_json_has_the_measured_rates_and_keeps_the_rest(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document, plain = (json.loads(shown(capsys, given, "json")) for given in (results, None))
    check(document, "machine-1")
    measured = {link["b"]: link["measured_Bps"] for link in document["links"]}
    assert (measured["gpu-0"], measured["gpu-1"]) == (24e9, 25e9)
    for link in document["links"]:
        link["measured_Bps"] = None
    assert document["links"] == plain["links"] and document["limits"] == plain["limits"]


def test_text_and_drawing_have_the_measured_rates(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = shown(capsys, results, "text")
    assert (
        "Links measured, per direction" in text
        and "Copies between GPUs: bandwidth, in GB/s, from row to column" in text
    )
    svg = shown(capsys, results, "svg")
    ET.fromstring(svg)
    assert "measured 24.0" in svg and "Copies between GPUs: bandwidth" in svg
    assert "measured 24" not in shown(capsys, None, "svg")


def test_check_names_the_gpus_that_slow_each_other(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    check_machine(MACHINE, results, None, None, Output(output_format=Format.JSON))
    (finding,) = (f for f in json.loads(capsys.readouterr().out)["findings"] if f["rule"] == "copies-slow-each-other")
    assert (
        finding["devices"] == ["gpu-0", "gpu-1"] and "gpu-0, gpu-1 reach 24.0 GB/s in total" in finding["observation"]
    )


def test_the_machine_stays_as_it_is(results: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = MACHINE.links
    shown(capsys, results, "json")
    assert isinstance(MACHINE, Machine) and before is MACHINE.links
