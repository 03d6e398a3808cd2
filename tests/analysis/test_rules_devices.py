"""The rules about links, switches, GPUs, adapters and their places."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.made_up_nodes import (
    GEN3_X16,
    beside,
    bridge,
    card,
    cpu_tree,
    facts,
    gpu,
    link,
    matrix,
    nic,
    switched,
)

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.devices import spans
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.links import faces_down
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, PeerAccess

FULL = {"pcie_lanes": 16, "pcie_max_lanes": 16, "pcie_GTps": 8.0, "pcie_max_GTps": 8.0}
NVME = card(DeviceKind.NVME, "nvme-0", parent="pci-0000:00:01.0", **{**FULL, "pcie_lanes": 8})
PORT = bridge("0000:00:01.0", **{"pcie_max_lanes": 16, "pcie_max_GTps": 8.0})
GPUS = tuple(gpu(f"GPU{k}") for k in range(4))
NAMES = [device.id for device in GPUS]
CUBE = {("GPU0", "GPU1"): "NV2", ("GPU2", "GPU3"): "NV2", ("GPU0", "GPU2"): "NV1", ("GPU1", "GPU3"): "NV1"}
MLX = (nic("mlx5_0"), nic("mlx5_1"))
NEAR = {("GPU0", "mlx5_0"): "PIX", ("GPU1", "mlx5_0"): "PXB", ("GPU2", "mlx5_1"): "PHB", ("GPU3", "mlx5_1"): "PIX"}
FOUR_AND_TWO = (*GPUS, *MLX)


def with_paths(devices: tuple[Device, ...], classes: dict[tuple[str, str], str], other: str = "SYS") -> Machine:
    return Machine("m", devices, paths=matrix([device.id for device in devices], classes, other))


def access(*statuses: tuple[str | None, str | None]) -> Machine:
    pairs = tuple(PeerAccess("GPU0", f"GPU{k}", *status) for k, status in enumerate(statuses, start=1))
    return Machine("m", GPUS, p2p=pairs)


def redirecting(value: bool, **more: object) -> Machine:
    below = switched(2, GEN3_X16 * 2)
    devices = tuple(replace(d, facts=facts(acs_redirects=value)) if d.kind == "bridge" else d for d in below.devices)
    return replace(below, devices=devices, **more)


def node(*devices: Device, **more: object) -> Machine:
    return Machine("m", (*cpu_tree(), *devices), **more)


BAD = [gpu("GPU0", ecc_mode="disabled"), gpu("GPU1", ecc_mode="enabled")]

CASES = {
    "link-measured-above-capability": (
        Machine("m", links=(link("a", "b", 10e9, 10e9, 11e9),)),
        [Machine("m", links=(link("a", "b", 10e9, 10e9, 10.1e9),)), Machine("m", links=(link("a", "b", 1, 1),))],
    ),
    "link-measured-low": (
        Machine("m", links=(link("a", "b", 10e9, 10e9, 5e9),)),
        [
            Machine("m", links=(link("a", "b", 10e9, 10e9, 8e9),)),
            Machine("m", links=(link("a", "b", 10e9, 1e9, 8e9),)),  # idle when it was read
            Machine("m", links=(link("a", "b", None, None, 5e9),)),
        ],
    ),
    "slot-below-card": (
        Machine("m", (PORT, gpu("g", None, PORT.id, pcie_max_lanes=16, pcie_max_GTps=16.0))),
        [
            Machine("m", (PORT, gpu("g", None, PORT.id, pcie_max_lanes=16, pcie_max_GTps=8.0))),
            Machine("m", (bridge("0000:00:01.0"), gpu("g", None, PORT.id, pcie_max_lanes=16, pcie_max_GTps=16.0))),
            Machine(
                "m",
                (PORT, gpu("g", None, PORT.id, pcie_max_lanes=16, pcie_max_GTps=16.0)),
                facts(hypervisor="kvm"),
            ),
        ],
    ),
    "gpus-share-uplink": (
        switched(4, GEN3_X16, switches=2),
        [switched(4, 2 * GEN3_X16, switches=2), switched(2, GEN3_X16, switches=2), Machine("m", GPUS)],
    ),
    "acs-redirects": (
        redirecting(True),
        [redirecting(False), switched(2, GEN3_X16), redirecting(True, facts=facts(hypervisor="kvm"))],
    ),
    "gpus-without-peer-access": (
        access(("OK", "CNS"), ("OK", "OK")),
        [access(("OK", "OK")), access((None, None)), access(("U", "U"))],
    ),
    "gpu-links-uneven": (
        with_paths(GPUS, CUBE),
        [
            with_paths(GPUS, {}, "NV12"),
            with_paths(GPUS, {}, "PIX"),
            with_paths(GPUS[:2], {}, "NV2"),
            with_paths(GPUS, {}, "XGMI"),
        ],
    ),
    "gpu-link-missing": (
        with_paths(GPUS, {("GPU0", "GPU3"): "NV11", ("GPU1", "GPU3"): "NV11", ("GPU2", "GPU3"): "NV11"}, "NV12"),
        [with_paths(GPUS, {}, "NV12"), with_paths(GPUS, CUBE), with_paths(GPUS, {("GPU0", "GPU1"): "NV4"})],
    ),
    "gpus-across-numa-nodes": (
        with_paths(GPUS, {("GPU0", "GPU1"): "PIX"}),
        [with_paths(GPUS, {}, "PIX"), with_paths(GPUS, {}, "NV2"), with_paths((GPUS[0], *MLX), {})],
    ),
    "adapter-far-from-gpu": (
        with_paths(FOUR_AND_TWO, NEAR | {("GPU3", "mlx5_1"): "NODE"}),
        [
            with_paths(FOUR_AND_TWO, NEAR),
            with_paths(GPUS, {}),
            with_paths((*GPUS, nic("eth0")), {}),  # a port for management
            with_paths((*GPUS, nic("mlx5_0", state="down")), {}),
            Machine("m", FOUR_AND_TWO),
        ],
    ),
    "adapter-near-no-gpu": (
        with_paths((*FOUR_AND_TWO, nic("mlx5_2")), NEAR),
        [with_paths(FOUR_AND_TWO, NEAR), with_paths(FOUR_AND_TWO, {}), Machine("m", FOUR_AND_TWO)],
    ),
    "numa-node-without-devices": (
        node(gpu("gpu-0", 0), gpu("gpu-1", 0)),
        [
            node(gpu("gpu-0", 0), gpu("gpu-1", 1)),
            node(gpu("gpu-0", 0), gpu("gpu-1", None)),
            node(nic("eth0", 0)),
            node(),
            Machine("m", (*cpu_tree(1), gpu("gpu-0", 0))),
        ],
    ),
    "affinity-cut": (
        node(gpu("GPU0", 0), gpu("GPU1", 1), affinity=(beside("GPU0", (0,), 0),)),
        [
            node(gpu("gpu-0", 0), gpu("gpu-1", 1), affinity=(beside("gpu-0", (0,), 0),)),  # not from a matrix
            node(gpu("gpu-0", 0), gpu("gpu-1", 1), affinity=(beside("gpu-0", (0, 1, 2, 3, 8, 9, 10, 11), 0),)),
            node(gpu("gpu-0", 0), gpu("gpu-1", 1), affinity=(beside("gpu-0", None, 0),)),
            Machine("m", GPUS, affinity=(beside("GPU0", None, 0), beside("GPU1", None, 1))),
            Machine("m", (*GPUS, *MLX), affinity=(beside("GPU0", (0,), 0), beside("mlx5_0", None, None))),
        ],
    ),
    "memory-ecc-off": (
        Machine("m", facts=facts(ecc="none")),
        [
            Machine("m", facts=facts(ecc="multi-bit ECC")),
            Machine("m", facts=facts(ecc="none", hypervisor="kvm")),
            Machine("m", facts=facts(ecc_mode="SECDED", ecc="none")),
            Machine("m"),
        ],
    ),
    "gpu-memory-rows": (
        Machine("m", (gpu("GPU0", row_remapping_pending=True, row_remapping_failed=False),)),
        [
            Machine("m", (gpu("GPU0", row_remapping_pending=False, row_remapping_failed=False),)),
            Machine("m", (gpu("GPU0", rows_remapped_correctable=2, rows_remapped_uncorrectable=0),)),
            Machine("m", GPUS),
        ],
    ),
    "gpu-ecc-off": (Machine("m", tuple(BAD)), [Machine("m", (BAD[1],)), Machine("m", GPUS)]),
}


def found(given: Machine, rule: str) -> list[Finding]:
    return [finding for finding in findings(given, ()) if finding.rule == rule]


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_about_devices_fires_once_and_does_not(rule: str) -> None:
    fires, silent = CASES[rule]
    assert len(found(fires, rule)) == 1
    for number, given in enumerate(silent):
        assert found(given, rule) == [], number


@pytest.mark.parametrize("rule", CASES)
def test_what_it_says_is_whole(rule: str) -> None:
    (finding,) = found(CASES[rule][0], rule)
    for text in (finding.observation, finding.diagnosis, finding.remedy, finding.evidence):
        assert text.strip() == text and text and "None" not in text and "  " not in text
    assert finding.observation.endswith(".") and finding.diagnosis.endswith(".")
    assert finding.loss is None or 0 < finding.loss <= 1


def idle_gpus(number: int, **more: object) -> Machine:
    devices: list[Device] = []
    links: list[Link] = []
    for k in range(number):
        host, root = bridge(f"000{k}:00"), bridge(f"000{k}:00:01.0", f"pci-000{k}:00", **FULL)
        below = gpu(f"gpu-{k}", None, root.id, **{**FULL, "pcie_GTps": 2.5})
        devices += [host, root, below]
        links += [link(host, root, GEN3_X16, GEN3_X16 / 4), link(root, below, GEN3_X16, GEN3_X16 / 4)]
    return Machine("m", tuple(devices), links=tuple(links), **more)


def test_eight_idle_gpus_are_one_note_without_a_loss() -> None:
    (finding,) = found(idle_gpus(8), "link-below-capability")
    assert finding.severity is Severity.INFO and finding.loss is None
    assert finding.devices == tuple(f"gpu-{k}" for k in range(8))
    assert "gpu-0 to gpu-7" in finding.observation and "ossibly only idle" in finding.diagnosis
    assert "3.94 GB/s of 15.8 GB/s" in finding.observation and "pcie_GTps = 2.5" in finding.evidence


def test_a_low_speed_that_stays_under_load_is_a_warning_and_one_that_does_not_is_nothing() -> None:
    given = idle_gpus(1)
    slow, woken = (
        replace(given, links=(given.links[0], replace(given.links[1], measured_Bps=rate))) for rate in (3.4e9, 12e9)
    )
    (finding,) = found(slow, "link-below-capability")
    assert finding.severity is Severity.WARNING and finding.loss == pytest.approx(0.75)
    assert "3.40 GB/s was measured" in finding.observation and "idle" not in finding.diagnosis
    assert found(woken, "link-below-capability") == []


def test_missing_lanes_are_no_effect_of_idling() -> None:
    given = Machine("m", (PORT, NVME), links=(link(PORT, NVME, GEN3_X16, GEN3_X16 / 2),))
    (finding,) = found(given, "link-below-capability")
    assert finding.severity is Severity.WARNING and finding.loss == pytest.approx(0.5)
    assert "8 lanes wide; both ends can do 16" in finding.observation and "hardware" in finding.diagnosis
    narrow_gpu = gpu("g", None, PORT.id, **{**FULL, "pcie_lanes": 4, "pcie_GTps": 2.5})
    both = Machine("m", (PORT, narrow_gpu), links=(link(PORT, narrow_gpu, GEN3_X16, GEN3_X16 / 16),))
    (finding,) = found(both, "link-below-capability")
    assert finding.severity is Severity.WARNING and finding.loss == pytest.approx(0.75), "idle speed is no loss"
    assert "possibly only because the GPU is idle" in finding.diagnosis


def test_an_adapter_that_lost_lanes_and_speed_has_lost_both() -> None:
    gen4 = {"pcie_max_lanes": 16, "pcie_max_GTps": 16.0}
    port = bridge("0000:00:01.0", **gen4)
    half = card(DeviceKind.NIC, "mlx5_0", parent=port.id, **gen4, pcie_lanes=8, pcie_GTps=8.0)
    (finding,) = found(
        Machine("m", (port, half), links=(link(port, half, 2 * GEN3_X16, GEN3_X16 / 2),)), "link-below-capability"
    )
    assert "8 lanes wide at 8 GT/s; both ends can do 16 lanes at 16 GT/s" in finding.observation
    assert finding.loss == pytest.approx(0.75) and "75 % of the rate is missing" in finding.diagnosis
    assert "50 % of the lanes are missing" in finding.diagnosis and "8 of 16 GT/s" in finding.diagnosis
    lone = replace(half, parent=None)
    (finding,) = found(Machine("m", (lone,)), "link-below-capability")
    assert finding.loss == pytest.approx(0.75) and "the device can do 16 lanes at 16 GT/s" in finding.observation


def test_a_port_that_can_do_more_than_its_card_is_no_defect() -> None:
    host, root = bridge("0000:00"), bridge("0000:00:01.0", "pci-0000:00", **{**FULL, "pcie_lanes": 8})
    small = nic("mlx5_0")
    small = replace(small, parent=root.id, facts=facts(**{**FULL, "pcie_lanes": 8, "pcie_max_lanes": 8}))
    links = (link(host, root, GEN3_X16, GEN3_X16 / 2), link(root, small, GEN3_X16 / 2, GEN3_X16 / 2))
    assert found(Machine("m", (host, root, small), links=links), "link-below-capability") == []


def test_a_virtual_machine_is_not_blamed_for_the_links_of_its_host() -> None:
    given = Machine("m", (PORT, NVME), facts(hypervisor="kvm"), links=(link(PORT, NVME, GEN3_X16, GEN3_X16 / 2),))
    (finding,) = found(given, "link-below-capability")
    assert (
        finding.severity is Severity.INFO and finding.loss is None and "check the link on the host" in finding.diagnosis
    )


def test_a_device_whose_port_nobody_shows_speaks_for_itself() -> None:
    lone = Machine("m", tuple(gpu(f"gpu-{k}", **{**FULL, "pcie_GTps": 2.5}) for k in range(3)))
    (finding,) = found(lone, "link-below-capability")
    assert len(finding.devices) == 3 and finding.severity is Severity.INFO
    (finding,) = found(Machine("m", (replace(NVME, parent=None),)), "link-below-capability")
    assert "the device can do 16" in finding.observation and "may have no more" in finding.diagnosis


def test_ports_facing_down_are_told_by_their_type_else_by_their_depth() -> None:
    given = switched(2, GEN3_X16)
    down = {device.id: faces_down(given, device) for device in given.devices}
    assert down == {
        "pci-0000:00": False, "pci-0000:00:01.0": True, "pci-0000:01:00.0": False,
        "pci-0000:02:00.0": True, "gpu-0": False, "pci-0000:02:01.0": True, "gpu-1": False,
    }  # fmt: skip
    assert faces_down(given, bridge("0000:01:00.0", "pci-0000:00:01.0", pcie_type="Downstream Port (Slot+)"))
    assert not faces_down(given, bridge("0000:00:02.0", "pci-0000:00", pcie_type="Upstream Port"))
    assert not faces_down(given, bridge("ffff:ff:01.0")), "NCCL's trees have no ports"


def test_what_each_gpu_gets_of_a_shared_uplink() -> None:
    (finding,) = found(switched(8, GEN3_X16, switches=2), "gpus-share-uplink")
    assert finding.observation == (
        "4 GPUs (gpu-0 to gpu-3) share one uplink of 15.8 GB/s: 3.94 GB/s each if all copy at once, "
        "15.8 GB/s alone. The same holds for gpu-4 to gpu-7."
    )
    assert len(finding.devices) == 8 and finding.severity is Severity.WARNING and finding.loss is None


def test_the_tightest_of_nested_uplinks_counts() -> None:
    given = switched(4, GEN3_X16)
    inner = [bridge("0000:10:00.0", "pci-0000:02:00.0"), bridge("0000:11:00.0", "pci-0000:10:00.0")]
    moved = Device("gpu-9", DeviceKind.GPU, "g", inner[1].id, pci="0000:12:00.0")
    links = (
        link("pci-0000:02:00.0", inner[0], GEN3_X16, GEN3_X16), link(inner[0], inner[1], GEN3_X16, GEN3_X16),
        link(inner[1], moved, GEN3_X16, GEN3_X16),
    )  # fmt: skip
    nested = replace(given, devices=(*given.devices, *inner, moved), links=(*given.links, *links))
    (finding,) = found(nested, "gpus-share-uplink")
    assert "5 GPUs" in finding.observation and "3.15 GB/s each" in finding.observation
    assert "pci-0000:00:01.0 - pci-0000:01:00.0" in finding.evidence


def test_functions_of_one_card_share_nothing_with_each_other() -> None:
    given = switched(1, GEN3_X16)
    virtual = Device("gpu-1", DeviceKind.GPU, "g", "pci-0000:02:00.0", pci="0000:03:00.1")
    both = replace(
        given,
        devices=(*given.devices, virtual),
        links=(*given.links, link("pci-0000:02:00.0", virtual, GEN3_X16, GEN3_X16)),
    )
    assert found(both, "gpus-share-uplink") == []


def test_a_trained_uplink_is_said_to_be_trained() -> None:
    given = switched(2, GEN3_X16)
    trained = replace(given, links=tuple(replace(entry, capable_Bps=None) for entry in given.links))
    assert "15.8 GB/s trained" in found(trained, "gpus-share-uplink")[0].evidence
    assert "15.8 GB/s capable" in found(given, "gpus-share-uplink")[0].evidence
    untold = replace(given, links=tuple(replace(e, capable_Bps=None, trained_Bps=None) for e in given.links))
    assert found(untold, "gpus-share-uplink") == []


@pytest.mark.parametrize(
    ("status", "means"),
    [
        ("CNS", "chipset does not support"),
        ("GNS", "GPUs do not support"),
        ("TNS", "topology does not support"),
        ("NS", "not supported here"),
        ("DR", "registry"),
    ],
)
def test_each_status_of_peer_access_is_explained(status: str, means: str) -> None:
    (finding,) = found(access((status, status), ("OK", "OK")), "gpus-without-peer-access")
    assert means in finding.diagnosis and f"{status}:" in finding.remedy and finding.severity is Severity.WARNING
    assert finding.observation == f"1 of 2 GPU pairs has no peer access ({status}: 1)."
    assert finding.devices == ("GPU0", "GPU1")


def test_access_that_amd_smi_lists_as_disabled_has_no_known_cause() -> None:
    given = access(("NS", "NS"))
    of_amd = replace(given, devices=tuple(gpu(one.name, vendor_id="1002") for one in given.devices))
    (finding,) = found(of_amd, "gpus-without-peer-access")
    assert "NS: amd-smi lists it as disabled, and does not say why. " in finding.diagnosis
    assert "data sheet" not in finding.remedy and "amd-smi topology --access" in finding.remedy


def test_access_in_one_direction_is_said() -> None:
    (finding,) = found(access(("OK", "CNS"), ("OK", "OK")), "gpus-without-peer-access")
    assert "1 pair can only read or only write." in finding.observation


def test_uneven_links_are_counted_and_a_hybrid_cube_is_no_defect() -> None:
    given = with_paths(GPUS, CUBE)
    (finding,) = found(given, "gpu-links-uneven")
    assert "of 6 pairs, 2 with 2 direct links, 2 with 1 direct link, 2 with none" in finding.observation
    assert finding.severity is Severity.INFO and "GPU0 and GPU1" in finding.remedy
    assert found(given, "gpu-link-missing") == []
    direct = tuple(Link(a, b, "nvlink", None, None, "NCCL", count=int(told[2:])) for (a, b), told in CUBE.items())
    (same,) = found(Machine("m", GPUS, links=direct), "gpu-links-uneven")
    assert same.observation == finding.observation


def test_a_gpu_with_fewer_links_than_its_like_is_named() -> None:
    (finding,) = found(CASES["gpu-link-missing"][0], "gpu-link-missing")
    assert finding.devices == ("GPU3",) and finding.severity is Severity.ERROR
    assert finding.observation == "GPU3 has 11 NVLinks; the other GPUs have 12."
    eight = tuple(gpu(f"GPU{k}") for k in range(8))
    fewer = {(f"GPU{k}", "GPU7"): "NV17" for k in range(7)}
    (finding,) = found(with_paths(eight, fewer, "NV18"), "gpu-link-missing")
    assert finding.observation == "GPU7 has 17 NVLinks; the other GPUs have 18."
    assert found(with_paths(eight, fewer, "NV18"), "gpu-links-uneven") == [], "all of them hang on switches"


def test_groups_of_near_gpus_are_kept_together() -> None:
    given = with_paths(GPUS, {("GPU0", "GPU1"): "PIX", ("GPU2", "GPU3"): "NODE"})
    (finding,) = found(given, "gpus-across-numa-nodes")
    assert "GPU0, GPU1; GPU2, GPU3" in finding.remedy and finding.observation.startswith(
        "4 of 6 GPU pairs are connected"
    )


def test_the_distance_of_an_adapter_decides_the_severity() -> None:
    (finding,) = found(CASES["adapter-far-from-gpu"][0], "adapter-far-from-gpu")
    assert finding.severity is Severity.INFO and finding.devices == ("GPU3",) and "NODE" in finding.observation
    (finding,) = found(with_paths(FOUR_AND_TWO, {("GPU0", "mlx5_0"): "PIX"}), "adapter-far-from-gpu")
    assert finding.severity is Severity.WARNING and finding.devices == ("GPU1", "GPU2", "GPU3")
    assert "Use GPU0" in finding.remedy


def test_an_adapter_of_unknown_distance_may_be_the_near_one() -> None:
    given = with_paths(FOUR_AND_TWO, {})
    untold = tuple(replace(p, path_class=None) if p.b == "mlx5_1" else p for p in given.paths)
    assert found(replace(given, paths=untold), "adapter-far-from-gpu") == []


def test_the_system_names_of_adapters_stand_in_the_remedy() -> None:
    labelled = tuple(replace(nic(f"NIC{k}"), aliases=(f"mlx5_{k + 1}",)) for k in range(3))
    classes = {("GPU0", "NIC0"): "PIX", ("GPU1", "NIC1"): "PIX"}
    (finding,) = found(with_paths((*GPUS[:2], *labelled), classes), "adapter-near-no-gpu")
    assert finding.devices == ("NIC2",) and "mlx5_3" in finding.observation
    assert "NCCL_IB_HCA==mlx5_1,mlx5_2`" in finding.remedy


def test_failed_rows_are_an_error_and_replaced_ones_a_note() -> None:
    given = Machine("m", (
        gpu("GPU0", row_remapping_failed=True, row_remapping_pending=True, rows_remapped_uncorrectable=8),
        gpu("GPU1", row_remapping_pending=True, rows_remapped_uncorrectable=1),
        gpu("GPU2", rows_remapped_uncorrectable=1),
    ))  # fmt: skip
    several = found(given, "gpu-memory-rows")
    assert [(finding.severity, finding.devices) for finding in several] == [
        (Severity.ERROR, ("GPU0",)), (Severity.WARNING, ("GPU1",)), (Severity.INFO, ("GPU2",)),
    ]  # fmt: skip
    assert "row_remapping_failed = true" in several[0].evidence and "reset" in several[1].remedy


def test_spans() -> None:
    assert spans(["gpu-0", "gpu-1", "gpu-2", "gpu-10"]) == "gpu-0 to gpu-2, gpu-10"
    assert spans(["b", "GPU10", "GPU9"]) == "GPU9, GPU10, b"
    assert spans([f"x{2 * k}" for k in range(10)]).endswith("x14 and 2 more")
    assert spans(["1" * 4000]) == "1" * 4000
