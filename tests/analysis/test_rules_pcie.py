"""The rules about PCI settings, ports of adapters and idle states."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.made_up_nodes import GEN3_X16, bridge, facts, gpu, link, nic, switched

from seatrial.analysis.rules import findings
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, survey_dumps
from seatrial.model.machine.fact import Aim, Facts, FactValue, Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine

GUEST = facts(hypervisor="kvm")
PAYLOADS = {"pcie_max_payload": 512, "pcie_payload": 512}


def below_port(port: dict[str, FactValue], card: dict[str, FactValue], general: Facts | None = None) -> Machine:
    root = bridge("0000:00:01.0", "pci-0000:00", **{**PAYLOADS, **port})
    adapter = replace(nic("mlx5_0", **{**PAYLOADS, **card}), parent=root.id, pci="0000:01:00.0")
    return Machine("m", (bridge("0000:00"), root, adapter), general or Facts())


def adapters(*several: dict[str, FactValue], general: Facts | None = None) -> Machine:
    return Machine("m", tuple(nic(f"mlx5_{k}", **told) for k, told in enumerate(several)), general or Facts())


def on_link(trained: float, general: Facts | None = None, **told: FactValue) -> Machine:
    root, adapter = bridge("0000:00:01.0"), nic("mlx5_0", **told)
    adapter = replace(adapter, parent=root.id)
    return Machine("m", (root, adapter), general or Facts(), links=(link(root, adapter, 2 * GEN3_X16, trained),))


def of_machine(**told: FactValue) -> Machine:
    return Machine("m", facts=facts(**told))


def processor(name: str) -> Device:
    return Device("package-0", DeviceKind.PACKAGE, "CPU", facts=facts(microarchitecture=name))


ACTIVE = {"state": "active", "link_layer": "InfiniBand", "board_id": "MT_0000000223"}
HDR = {**ACTIVE, "rate": 25e9, "link_width": 4, "link_speed": "HDR"}
TRANSLATED = tuple(gpu(f"GPU{k}", iommu_domain="DMA-FQ") for k in range(2))
IDLE = {"idle_states": "POLL C1 C1E C6", "idle_exit_latency": 290e-6}

CASES = {
    "pcie-payload-low": (
        below_port({}, {"pcie_payload": 128}),
        [
            below_port({}, {}),
            below_port({"pcie_max_payload": 256}, {"pcie_payload": 256}),  # all that the port can do
            adapters({"pcie_max_payload": 512, "pcie_payload": 128}),  # the port is unknown
            below_port({}, {"pcie_payload": 128}, GUEST),
        ],
    ),
    "pcie-payload-mismatch": (
        below_port({"pcie_payload": 128}, {}),
        [below_port({}, {}), below_port({}, {"pcie_payload": 256}), below_port({"pcie_payload": 128}, {}, GUEST)],
    ),
    "pcie-read-request-small": (
        adapters({"pcie_read_request": 256}),
        [
            adapters({"pcie_read_request": 512}),
            adapters({"pcie_read_request": 4096}),
            adapters({}),
            adapters({"pcie_read_request": 128}, general=GUEST),
            Machine("m", (nic("eth0", pcie_read_request=128),)),  # a port for management
        ],
    ),
    "pcie-relaxed-ordering-off": (
        adapters({"pcie_relaxed_ordering": False}),
        [
            adapters({"pcie_relaxed_ordering": True}),
            adapters({}),
            Machine("m", (processor("Broadwell-EP"), nic("mlx5_0", pcie_relaxed_ordering=False))),
        ],
    ),
    "iommu-translates": (
        Machine("m", TRANSLATED),
        [
            Machine("m", tuple(gpu(f"GPU{k}", iommu_domain="identity") for k in range(2))),
            Machine("m", (gpu("GPU0"), gpu("GPU1"))),
            Machine("m", TRANSLATED, GUEST),
        ],
    ),
    "idle-states-deep": (
        of_machine(**IDLE),
        [
            of_machine(**{**IDLE, "idle_exit_latency": 4e-6}),
            of_machine(idle_states="POLL C1"),
            of_machine(**IDLE, hypervisor="kvm"),
        ],
    ),
    "idle-states-off": (
        of_machine(idle_states="POLL C1 C6", idle_states_off="C6", idle_exit_latency=1e-6),
        [
            of_machine(**IDLE),
            of_machine(**IDLE, kernel_parameters="quiet intel_idle.max_cstate=9"),  # does not limit
            of_machine(idle_states="POLL C1_ACPI C2", idle_states_off="C1_ACPI", idle_exit_latency=1e-6),
            of_machine(kernel_parameters="idle=poll", hypervisor="kvm"),
        ],
    ),
    "fabric-port-narrow": (
        adapters({**HDR, "link_width": 1, "rate": 6.25e9}, {**HDR, "rate": 6.25e9}),
        [
            adapters(HDR),
            adapters({**HDR, "link_width": 2, "rate": 12.5e9}),  # HDR100
            adapters({**HDR, "link_width": 1, "state": "down"}),
            adapters({**HDR, "link_width": 1, "link_layer": "Ethernet"}),
        ],
    ),
    "fabric-port-down": (
        adapters({**HDR, "state": "down", "physical_state": "Polling"}),
        [
            adapters({**HDR, "physical_state": "LinkUp"}),
            adapters({**HDR, "state": "down"}),
            adapters({**HDR, "state": "down", "physical_state": "Disabled", "link_layer": "Ethernet"}),
            adapters({**HDR, "state": "init", "physical_state": "LinkUp"}),
        ],
    ),
    "fabric-port-not-activated": (
        adapters({**HDR, "state": "initializing", "physical_state": "LinkUp"}),
        [
            adapters({**HDR, "physical_state": "LinkUp"}),
            adapters({**HDR, "state": "down", "physical_state": "Polling"}),
        ],
    ),
    "fabric-port-slower": (
        adapters(HDR, {**HDR, "rate": 12.5e9, "link_width": 2}),
        [
            adapters(HDR, HDR),
            adapters(HDR, {**HDR, "rate": 12.5e9, "board_id": "MT_0000000224"}),
            adapters(HDR, {**HDR, "rate": 2.5e9 / 8, "state": "init"}),
            adapters(HDR, {**HDR, "rate": 12.5e9, "link_layer": "Ethernet"}),
        ],
    ),
    "pcie-below-port": (
        on_link(GEN3_X16, **HDR),
        [
            on_link(2 * GEN3_X16, **HDR),
            on_link(GEN3_X16, GUEST, **HDR),
            on_link(GEN3_X16, **{**HDR, "rate": 12.5e9}),
            adapters(HDR),
        ],
    ),
}


def found(given: Machine, rule: str) -> list[Finding]:
    return [finding for finding in findings(given, ()) if finding.rule == rule]


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_about_settings_fires_once_and_does_not(rule: str) -> None:
    fires, silent = CASES[rule]
    assert len(found(fires, rule)) == 1
    for number, given in enumerate(silent):
        assert found(given, rule) == [], number


def test_small_payloads_are_counted_and_the_remedy_is_not_in_force() -> None:
    (finding,) = found(CASES["pcie-payload-low"][0], "pcie-payload-low")
    assert "set to 128 B; it and all bridges above support 512 B" in finding.observation
    assert "at most 88 % of what 512 B allow" in finding.diagnosis, "128/152 over 512/536"
    assert "pcie_bus_safe" in finding.remedy and finding.aims == (Aim("pcie_payload", 512, "mlx5_0"),)
    booted = below_port({}, {"pcie_payload": 128}, facts(kernel_parameters="pci=pcie_bus_safe"))
    (finding,) = found(booted, "pcie-payload-low")
    assert "in the firmware: the kernel runs with `pci=pcie_bus_safe`" in finding.remedy


def test_the_command_for_a_read_request_names_the_function() -> None:
    (finding,) = found(below_port({}, {"pcie_read_request": 128}), "pcie-read-request-small")
    assert "`sudo setpci -s 0000:01:00.0 CAP_EXP+8.w=5000:7000`" in finding.remedy
    (finding,) = found(
        below_port({}, {"pcie_read_request": 128}, facts(kernel_parameters="pci=pcie_bus_perf")),
        "pcie-read-request-small",
    )
    assert "limits requests to the payload" in finding.diagnosis and finding.remedy.startswith("Boot without")


def test_translation_matters_more_between_gpus_and_pass_through_is_not_asked_for_twice() -> None:
    (finding,) = found(Machine("m", TRANSLATED), "iommu-translates")
    assert finding.severity is Severity.WARNING and "`iommu=pt`" in finding.remedy and len(finding.aims) == 2
    (one,) = found(Machine("m", TRANSLATED[:1]), "iommu-translates")
    assert one.severity is Severity.INFO and "between GPUs" not in one.diagnosis
    (already,) = found(Machine("m", TRANSLATED, facts(kernel_parameters="iommu=pt")), "iommu-translates")
    assert "boot with" not in already.remedy and already.aims == ()


LISTED = """00:01.0 PCI bridge: Intel Corporation Device 347a
\tControl: I/O+ Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tBus: primary=00, secondary=01, subordinate=01, sec-latency=0
\tCapabilities: [40] Express (v2) Root Port (Slot+), MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0
\t\t\tMaxPayload 512 bytes, MaxReadReq 128 bytes

01:00.0 Infiniband controller: Mellanox Technologies MT28908 Family [ConnectX-6]
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr- Stepping- SERR- FastB2B- DisINTx+
\tCapabilities: [60] Express (v2) Endpoint, MSI 00
\t\tDevCap:\tMaxPayload 512 bytes, PhantFunc 0, Latency L0s unlimited, L1 unlimited
\t\t\tRlxdOrd- ExtTag+ PhantFunc- AuxPwr- NoSnoop+ FLReset-
\t\t\tMaxPayload 128 bytes, MaxReadReq 256 bytes
"""


def test_a_listing_of_pci_functions_is_enough() -> None:
    given = assemble(survey_dumps([Dump("lspci-vv", "l", LISTED.encode())]))
    rules = {finding.rule: finding for finding in findings(given, ()) if finding.rule.startswith("pcie-")}
    assert set(rules) == {"pcie-payload-low", "pcie-read-request-small", "pcie-relaxed-ordering-off"}
    assert "setpci -s 0000:01:00.0" in rules["pcie-read-request-small"].remedy
    good = LISTED.replace("Payload 128", "Payload 512").replace("Req 256", "Req 512").replace("RlxdOrd-", "RlxdOrd+")
    given = assemble(survey_dumps([Dump("lspci-vv", "l", good.encode())]))
    assert not any(finding.rule.startswith("pcie-") for finding in findings(given, ()))


def with_acs(given: Machine, *redirecting: str) -> Machine:
    on = facts(acs_redirects=True)
    return replace(given, devices=tuple(replace(d, facts=on) if d.id in redirecting else d for d in given.devices))


def test_only_access_control_between_peers_counts() -> None:
    two = switched(2, GEN3_X16)
    (finding,) = found(with_acs(two, "pci-0000:02:00.0"), "acs-redirects")
    assert finding.devices == ("pci-0000:02:00.0",) and "setpci -s 0000:02:00.0" in finding.remedy
    assert finding.aims == (Aim("acs_redirects", False, "pci-0000:02:00.0"),)
    # Root ports: traffic between them meets in the root complex; traffic below one turns around in its switch.
    assert found(with_acs(two, "pci-0000:00:01.0"), "acs-redirects") == []
    apart = switched(2, GEN3_X16, switches=2)
    assert found(with_acs(apart, *(d.id for d in apart.devices if d.kind is DeviceKind.BRIDGE)), "acs-redirects") == []


def test_access_control_between_a_gpu_and_an_adapter_below_one_switch() -> None:
    one = switched(1, GEN3_X16)
    port = bridge("0000:02:01.0", "pci-0000:01:00.0", acs_redirects=True)
    beside = replace(one, devices=(*one.devices, port, replace(nic("mlx5_0"), parent=port.id)))
    (finding,) = found(beside, "acs-redirects")
    assert finding.devices == (port.id,)
    assert found(with_acs(one, "pci-0000:02:00.0"), "acs-redirects") == []


def test_what_idle_states_cost_and_give() -> None:
    (finding,) = found(of_machine(**IDLE), "idle-states-deep")
    assert finding.severity is Severity.INFO and "(C6) that takes 290 µs" in finding.observation
    assert found(of_machine(**IDLE), "idle-states-off") == []
    (polling,) = found(of_machine(kernel_parameters="idle=poll nosmt"), "idle-states-off")
    assert polling.severity is Severity.WARNING and "boot without `idle=poll`" in polling.remedy
    (off,) = found(CASES["idle-states-off"][0], "idle-states-off")
    assert "state C6 is off" in off.observation and "idle-set -E" in off.remedy


def test_ports_are_judged_one_by_one() -> None:
    second = {**HDR, "ports": 2, "port2_rate": 6.25e9, "port2_state": "active", "port2_link_layer": "InfiniBand"}
    two = adapters({**second, "port2_link_width": 1, "port2_link_speed": "HDR"})
    (finding,) = found(two, "fabric-port-narrow")
    assert "mlx5_0 port 2 is 1X wide: 6.25 GB/s instead of 25.0 GB/s with 4X" in finding.observation
    assert finding.loss == pytest.approx(0.75)


def test_an_unconnected_second_port_is_a_note() -> None:
    second = {"ports": 2, "port2_state": "down", "port2_physical_state": "Polling", "port2_link_layer": "InfiniBand"}
    (finding,) = found(adapters({**HDR, "physical_state": "LinkUp", **second}), "fabric-port-down")
    assert finding.severity is Severity.INFO and "mlx5_0 port 2 has no link (down, Polling)" in finding.observation
    (alone,) = found(CASES["fabric-port-down"][0], "fabric-port-down")
    assert alone.severity is Severity.WARNING


def test_a_bridge_above_may_be_what_limits_an_adapter() -> None:
    given = on_link(2 * GEN3_X16, **HDR)
    host = bridge("0000:00")
    (finding,) = found(
        replace(
            given,
            devices=(host, replace(given.devices[0], parent=host.id), given.devices[1]),
            links=(*given.links, link(host, "pci-0000:00:01.0", GEN3_X16, GEN3_X16)),
        ),
        "pcie-below-port",
    )
    assert "carries 15.8 GB/s" in finding.observation and finding.loss == pytest.approx(1 - GEN3_X16 / 25e9)
