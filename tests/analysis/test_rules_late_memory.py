"""Memory that is present but that the kernel does not manage."""

from __future__ import annotations

import pytest

from seatrial.analysis.rules import findings
from seatrial.model.machine.fact import Fact, Facts, Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.report.pages.fingerprint import fingerprint
from seatrial.report.text.machine import machine_text

GIB = 1 << 30


def found(managed: float, online: float | None = None, modules: float | None = None, **more: str) -> dict[str, Finding]:
    totals = [Fact(managed, "/proc/meminfo (MemTotal)", unit="B")]
    totals += [Fact(online, "blocks", unit="B")] if online is not None else []
    totals += [Fact(modules, "dmidecode (sum of the modules)", unit="B")] if modules is not None else []
    facts = {"memory_total": tuple(totals)}
    facts |= {"memory_online": (Fact(online, "blocks", unit="B"),)} if online is not None else {}
    facts |= {name: (Fact(value, "x"),) for name, value in more.items()}
    several = findings(Machine("m", facts=Facts(facts)), ())
    return {f.rule: f for f in several if f.rule in ("memory-not-managed", "memory-sizes-disagree")}


@pytest.mark.parametrize("parameters", ["quiet", "quiet deferred_init=lazy psi=1"])
def test_memory_that_grows_is_explained_once(parameters: str) -> None:
    several = found(3 * GIB, 24 * GIB, kernel_parameters=parameters)
    assert set(several) == {"memory-not-managed"}
    finding = several["memory-not-managed"]
    assert finding.observation == "The kernel manages 3 GiB of 24 GiB of memory that is present."
    is_stated = "deferred" in parameters
    assert finding.severity is (Severity.INFO if is_stated else Severity.WARNING)
    assert ("`deferred_init=lazy`" in finding.diagnosis) is is_stated


def test_what_the_kernel_keeps_and_missing_modules_are_not_it() -> None:
    assert found(23.3 * GIB, 24 * GIB) == {}
    assert found(23.3 * GIB) == {}
    assert set(found(3 * GIB, 24 * GIB, 48 * GIB)) == {"memory-sizes-disagree"}


def growing(*, hypervisor: bool, kernel: str = "quiet") -> Machine:
    """Blocks of 24 GiB; MemTotal and the nodes' totals were read while memory was plugged in."""
    readings = (
        Fact(int(21.5 * GIB), "/proc/meminfo (MemTotal)", unit="B"),
        Fact(24 * GIB, "blocks", unit="B"),
        Fact(int(22.9 * GIB), "/sys/devices/system/node (sum of MemTotal of the NUMA nodes)", unit="B", volatile=True),
        Fact(int(20.4 * GIB), "hwloc 2.9.0 (sum of the NUMA nodes' local memory)", unit="B", volatile=True),
    )
    facts = {"memory_total": readings, "memory_online": (readings[1],), "kernel_parameters": (Fact(kernel, "x"),)}
    node = Device("numa-0", DeviceKind.NUMA, "node 0", facts=Facts({"memory_total": readings[2:]}))
    of_guest = {"hypervisor": (Fact("kvm", "x"),)} if hypervisor else {}
    return Machine("m", devices=(node,), facts=Facts(facts | of_guest))


@pytest.mark.parametrize(("hypervisor", "kernel"), [(True, "quiet"), (False, "deferred_init=lazy")])
def test_known_growth_is_a_note_and_not_a_disagreement(*, hypervisor: bool, kernel: str) -> None:
    machine = growing(hypervisor=hypervisor, kernel=kernel)
    assert machine.disagreements() == ()
    severities = {f.rule: f.severity for f in findings(machine, ()) if f.rule.startswith("memory-")}
    assert severities.get("memory-not-managed", Severity.INFO) is Severity.INFO
    assert "memory-sizes-disagree" not in severities
    assert "24 GiB of memory" in fingerprint(machine) and "sources disagree" not in fingerprint(machine)
    text = machine_text(machine)
    assert "24 GiB memory" in text and "note: the kernel's total changes" in text and "Sources disagree" not in text


def test_sizes_that_differ_without_a_known_growth_still_disagree() -> None:
    machine = growing(hypervisor=False)
    assert [one.name for one in machine.disagreements()] == ["memory_total"]
    assert "sources disagree" in fingerprint(machine)
