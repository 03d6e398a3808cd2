"""What nvidia-smi answers about the memory of GPUs. The tool is a script here: the test machine has no GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import ParseError
from seatrial.machine.assemble import assemble
from seatrial.machine.live import survey_nvidia
from seatrial.machine.readers.nvidia_smi import read_ecc_modes, read_remapped_rows
from seatrial.machine.survey import PciPart, Survey

ECC = "00000000:18:00.0, Enabled\n00000000:2A:00.0, Disabled\n0008:01:00.0, [N/A]\n"
ROWS = "00000000:18:00.0, 2, 1, Yes, No\n00000000:2A:00.0, 0, 0, 0, 1\n0008:01:00.0, [N/A], [N/A], [N/A], [N/A]\n"


def test_modes_and_rows() -> None:
    assert [(part.pci, part.facts.text("ecc_mode")) for part in read_ecc_modes(ECC)] == [
        ("0000:18:00.0", "enabled"),
        ("0000:2a:00.0", "disabled"),
        ("0008:01:00.0", None),
    ]
    first, second, third = (part.facts for part in read_remapped_rows(ROWS))
    assert first.integer("rows_remapped_correctable") == 2 and first.integer("rows_remapped_uncorrectable") == 1
    assert first.text("row_remapping_pending") == "True" and first.text("row_remapping_failed") == "False"
    assert second.text("row_remapping_failed") == "True" and not third
    assert all(fact.volatile for facts in (first, second) for name in facts for fact in facts[name])


@pytest.mark.parametrize("text", ["No devices were found\n", "18:00.0, Enabled, more\n", "00000000:18:00.0\n"])
def test_another_answer_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read_ecc_modes(text)


def nvidia_smi(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None) -> Path:
    """A folder like that of the driver; `script` answers for nvidia-smi."""
    (tmp_path / "gpus" / "0000:18:00.0").mkdir(parents=True)
    program = tmp_path / "nvidia-smi"
    if script is not None:
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
    found = str(program) if script is not None else None
    monkeypatch.setattr("seatrial.machine.live.on_path", lambda _: found)
    return tmp_path / "gpus"


def test_the_answers_join_the_gpus_of_other_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"case $1 in --query-gpu=*) printf '{ECC}';; --query-remapped-rows=*) printf '{ROWS}';; esac"
    (survey,) = survey_nvidia(nvidia_smi(tmp_path, monkeypatch, script))
    assert survey.unread == ()
    on_pci = Survey("lspci", pci_parts=(PciPart("0000:18:00.0", "0302"), PciPart("0000:2a:00.0", "0302")))
    machine = assemble([on_pci, survey])
    first, second = (machine.device(name) for name in ("gpu-0", "gpu-1"))
    assert first is not None and first.facts.text("ecc_mode") == "enabled"
    assert first.facts.integer("rows_remapped_correctable") == 2
    assert second is not None and second.facts.text("row_remapping_failed") == "True"


@pytest.mark.parametrize(
    ("script", "said"),
    [
        (None, "not on PATH"),
        ("echo Unable to determine the device handle; exit 15", "exit status 15: Unable to determine"),
        ("echo No devices were found", "expected a PCI address"),
    ],
)
def test_what_is_not_known_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, said: str
) -> None:
    (survey,) = survey_nvidia(nvidia_smi(tmp_path, monkeypatch, script))
    assert survey.named_parts == () and said in survey.unread[0]
    assert survey.unread[0].startswith("ECC mode and remapped rows of NVIDIA GPUs: ")


def test_a_machine_without_the_driver_asks_nothing(tmp_path: Path) -> None:
    assert survey_nvidia(tmp_path / "gpus") == ()
