"""`nvidia-smi -q`: the state of GPUs, and what `check` says about it. The text was made up after public outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.analysis.rules import findings
from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.nvidia_smi_q import read_nvidia_smi_q
from seatrial.machine.survey import PciPart, Survey
from seatrial.model.machine.fact import Facts, Finding, Severity

TEXT = (Path(__file__).resolve().parents[1] / "data/machine/nvidia-smi-q/two-h100.txt").read_text()
SECOND = TEXT.index("GPU 00000000:3B:00.0")


def facts(text: str, gpu: int = 0) -> Facts:
    return read_nvidia_smi_q(text.encode()).pci_parts[gpu].facts


def found(text: str) -> dict[str, Finding]:
    return {finding.rule: finding for finding in findings(assemble([read_nvidia_smi_q(text.encode())]), ())}


def second(old: str, new: str) -> str:
    """The text with a field of the second GPU, which is at work, changed."""
    assert old in TEXT[SECOND:], old
    return TEXT[:SECOND] + TEXT[SECOND:].replace(old, new, 1)


def test_facts() -> None:
    own = facts(TEXT)
    assert (own.text("model_name"), own.text("driver_version"), own.text("device_id")) == (
        "NVIDIA H100 80GB HBM3", "545.23.08", "2330",
    )  # fmt: skip
    assert own.number("memory_total") == 81559 << 20 and own.number("power_limit") == 700
    assert own.number("pcie_max_GTps") == own.number("pcie_GTps") == 32 and own.integer("pcie_lanes") == 16
    assert own.integer("ecc_correctable_aggregate") == 177 and own.integer("ecc_uncorrectable_volatile") == 0
    assert own.integer("retired_pages_correctable") is None  # N/A is not 0
    assert own.integer("rows_remapped_correctable") == 1 and own.text("row_remapping_pending") == "False"
    assert (own.number("utilization"), facts(TEXT, 1).number("utilization")) == (0, 0.98)
    assert own.integer("temperature_margin_C") == 54 and own.text("slowed_by_heat") == "False"
    assert not any("1650000000000" in str(fact.value) for name in own for fact in own[name])


def test_healthy_gpus_have_no_findings() -> None:
    assert found(TEXT) == {}


def test_it_joins_the_gpus_of_other_sources() -> None:
    on_pci = Survey("lspci", pci_parts=(PciPart("0000:19:00.0", "0302"), PciPart("0000:3b:00.0", "0302")))
    machine = assemble([on_pci, read_nvidia_smi_q(TEXT.encode())])
    assert [gpu.id for gpu in machine.devices if gpu.kind == "gpu"] == ["gpu-0", "gpu-1"]
    assert {gpu.facts.text("model_name") for gpu in machine.devices if gpu.kind == "gpu"} == {"NVIDIA H100 80GB HBM3"}


SLOW = "HW Thermal Slowdown           : Not Active"
CASES: dict[str, tuple[str, str, str, Severity]] = {
    "heat": (SLOW, SLOW.replace("Not ", ""), "gpu-slowed-down", Severity.WARNING),
    "power brake": (
        "HW Power Brake Slowdown       : Not Active", "HW Power Brake Slowdown       : Active",
        "gpu-slowed-down", Severity.WARNING,
    ),
    "driver": (
        "SW Thermal Slowdown               : Not Active", "SW Thermal Slowdown               : Active",
        "gpu-slowed-down", Severity.WARNING,
    ),
    "limit": (
        "Current Power Limit               : 700", "Current Power Limit               : 500",
        "gpu-power-limit", Severity.WARNING,
    ),
    "errors": (
        "DRAM Uncorrectable            : 0", "DRAM Uncorrectable            : 3",
        "gpu-memory-errors", Severity.WARNING,
    ),
    "SRAM": (
        "SRAM Threshold Exceeded       : No", "SRAM Threshold Exceeded       : Yes",
        "gpu-memory-errors", Severity.ERROR,
    ),
    "row": (
        "Pending                           : No\n", "Pending                           : Yes\n",
        "gpu-memory-rows", Severity.WARNING,
    ),
    "page": (
        "Pending Page Blacklist            : N/A", "Pending Page Blacklist            : Yes",
        "gpu-memory-pages", Severity.WARNING,
    ),
    "pages": (
        "Double Bit ECC                    : N/A", "Double Bit ECC                    : 11",
        "gpu-memory-pages", Severity.WARNING,
    ),
    "lanes": (
        "Current                   : 16x", "Current                   : 8x",
        "link-below-capability", Severity.WARNING,
    ),
    "persistence": (
        "Persistence Mode                      : Enabled", "Persistence Mode                      : Disabled",
        "gpu-persistence-off", Severity.INFO,
    ),
    "ECC": (
        "Pending                           : Enabled", "Pending                           : Disabled",
        "gpu-mode-pending", Severity.INFO,
    ),
    "fabric": (
        "State                             : Completed", "State                             : In Progress",
        "gpu-fabric-not-ready", Severity.WARNING,
    ),
    "reset": (
        "Reset Required                    : No", "Reset Required                    : Yes",
        "gpu-reset-required", Severity.WARNING,
    ),
    "hot": (
        "GPU T.Limit Temp                  : 26 C", "GPU T.Limit Temp                  : 0 C",
        "gpu-hot", Severity.WARNING,
    ),
    "at its limit": (
        "SW Power Cap                      : Not Active", "SW Power Cap                      : Active",
        "", Severity.INFO,
    ),
}  # fmt: skip
"""What is changed in the second GPU, to what, the finding that names it, and its severity."""


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_named(name: str) -> None:
    old, new, rule, severity = CASES[name]
    if name == "row":  # the first field of that name belongs to another section
        at = TEXT.rindex(old)
        changed = found(TEXT[:at] + new + TEXT[at + len(old) :])
    else:
        changed = found(second(old, new))
    assert set(changed) == ({rule} if rule else set())
    if rule:
        assert changed[rule].severity is severity and changed[rule].devices == ("gpu-1",)


def test_a_slow_link_of_an_idle_gpu_is_only_a_note() -> None:
    """An idle GPU lowers the speed of its link; one at work does not."""
    generation = "Current                   : 5\n"
    idle, busy = (
        found(TEXT.replace(generation, generation.replace("5", "1"), 1)),
        found(second(generation, generation.replace("5", "1"))),
    )
    assert idle["link-below-capability"].severity is Severity.INFO
    assert busy["link-below-capability"].severity is Severity.WARNING


def test_errors_of_the_past_are_a_note() -> None:
    at = TEXT.rindex("DRAM Uncorrectable            : 0")
    old = found(TEXT[:at] + "DRAM Uncorrectable            : 2" + TEXT[at + 33 :])
    assert old["gpu-memory-errors"].severity is Severity.INFO
    assert "in the life of the GPU" in old["gpu-memory-errors"].observation


def test_older_names_of_fields() -> None:
    text = TEXT.replace("Clocks Event Reasons", "Clocks Throttle Reasons").replace(
        "GPU Power Readings", "Power Readings"
    )
    text = text.replace("Current Power Limit", "Power Limit        ").replace("ECC Mode", "Ecc Mode")
    text = text.replace("    Utilization\n        GPU ", "    Utilization\n        Gpu ")
    assert facts(text) == facts(TEXT)
    bits = "        Volatile\n            Double Bit\n                Total                     : 4\n"
    old = text.replace("        Volatile\n", bits, 1)
    assert facts(old).integer("ecc_uncorrectable_volatile") == 4


def test_a_lost_gpu() -> None:
    only = found("Unable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system\n")
    assert only["gpu-lost"].severity is Severity.ERROR and only["gpu-lost"].devices == ("gpu-0",)


def test_some_of_the_gpus() -> None:
    survey = read_nvidia_smi_q(TEXT[:SECOND].encode())
    assert len(survey.pci_parts) == 1 and "1 of 2 attached GPUs" in survey.unread[0]


def test_a_field_that_was_cut_off_is_unknown() -> None:
    at = TEXT.index("Power Draw                        : 72.02 W")
    own = facts(TEXT[: at + len("Power Draw                        : 7")])
    assert own.number("power_draw") is None and own.number("power_limit") is None


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (TEXT + TEXT[SECOND:], "a second time"),
        (TEXT.replace("Attached GPUs                             : 2", "Attached GPUs                             : 1"),
         "where 1 are attached"),
        ("\n".join(line.strip() for line in TEXT.splitlines()) + "\n", "not indented"),
        ('<?xml version="1.0" ?>\n<nvidia_smi_log>\n</nvidia_smi_log>\n', "its XML"),
        ("hello\n", "no GPU"),
    ],
)  # fmt: skip
def test_damage_is_refused(text: str, why: str) -> None:
    with pytest.raises(ParseError, match=why):
        read_nvidia_smi_q(text.encode())


def test_several_logs_need_a_choice() -> None:
    with pytest.raises(UsageError, match="2 dumps"):
        read_nvidia_smi_q((TEXT + TEXT.replace("33 C", "34 C")).encode())
    later = read_nvidia_smi_q((TEXT + TEXT.replace("33 C", "34 C")).encode(), 2)
    assert later.pci_parts[0].facts.integer("temperature_C") == 34
