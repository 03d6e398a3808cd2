"""The rules about NUMA nodes: paths that contradict them, GPUs attached coherently, divided sockets."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.made_up_nodes import beside, bridge, cpu_tree, facts, gpu, link, matrix, nic

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.devices import coherent_gpus
from seatrial.model.machine.fact import FactValue, Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine

GPUS = tuple(gpu(f"GPU{k}") for k in range(4))
NICS = (nic("mlx5_0"), nic("mlx5_1"))
NODES = tuple(beside(f"GPU{k}", None, k // 2) for k in range(4))
PAIRED = {("GPU0", "GPU1"): "NODE", ("GPU2", "GPU3"): "NODE", ("GPU0", "mlx5_0"): "PIX", ("GPU1", "mlx5_0"): "NODE"}
PAIRED |= {("GPU2", "mlx5_1"): "PIX", ("GPU3", "mlx5_1"): "NODE"}


def with_paths(
    devices: tuple[Device, ...], classes: dict[tuple[str, str], str], other: str = "SYS", **more: object
) -> Machine:
    return Machine("m", devices, paths=matrix([device.id for device in devices], classes, other), **more)


def found(given: Machine, rule: str) -> list[Finding]:
    return [finding for finding in findings(given, ()) if finding.rule == rule]


EPYC = {"vendor": "AuthenticAMD", "microarchitecture": "Zen 3"}


def sockets(nodes: int, packages: int = 2, *, joined: bool = False, **told: FactValue) -> Machine:
    """Sockets with `nodes` NUMA nodes in all, or all of them in one node."""
    tree = tuple(
        replace(d, facts=facts(**(told or EPYC))) if d.kind is DeviceKind.PACKAGE else d
        for d in cpu_tree(nodes, cores=2, packages=packages)
    )
    return Machine("m", tuple(replace(d, numa=0) if joined and d.numa is not None else d for d in tree))


CASES = {
    "sockets-divided": (
        sockets(8),
        [sockets(2), sockets(3), sockets(1, 1), replace(sockets(8), facts=facts(hypervisor="kvm"))],
    ),
    "sockets-one-numa-node": (
        sockets(2, joined=True),
        [
            sockets(2),
            sockets(1, 1),
            sockets(2, joined=True, vendor="GenuineIntel"),  # may be so old that memory is one
            replace(sockets(2, joined=True), facts=facts(hypervisor="kvm")),
        ],
    ),
    "paths-contradict-numa": (
        with_paths((*GPUS, *NICS), PAIRED | {("GPU0", "GPU1"): "SYS"}, affinity=NODES),
        [
            with_paths((*GPUS, *NICS), PAIRED, affinity=NODES),
            with_paths((*GPUS, *NICS), PAIRED),
            with_paths(GPUS, {}, "NV18", affinity=NODES),
            with_paths(tuple(replace(g, facts=facts(gpu_numa=2 + k)) for k, g in enumerate(GPUS)), {}, affinity=NODES),
        ],
    ),
}


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_about_nodes_fires_once_and_does_not(rule: str) -> None:
    fires, silent = CASES[rule]
    assert len(found(fires, rule)) == 1
    for number, given in enumerate(silent):
        assert found(given, rule) == [], number


def test_a_contradiction_names_both_sides_and_is_used_by_no_other_rule() -> None:
    (finding,) = found(CASES["paths-contradict-numa"][0], "paths-contradict-numa")
    assert finding.severity is Severity.INFO and finding.devices == ("GPU0", "GPU1")
    assert "1 pair of devices has the path class SYS (between NUMA nodes)" in finding.observation
    assert finding.evidence == "GPU0 - GPU1: SYS, both at node 0"
    all_far = with_paths(GPUS, {}, affinity=NODES)
    (across,) = found(all_far, "gpus-across-numa-nodes")
    assert across.observation.startswith("4 of 6 GPU pairs") and "GPU0, GPU1; GPU2, GPU3" in across.remedy
    # GPU1 shares a node with mlx5_0 (below the switch of GPU0), so SYS is not certain.
    near = with_paths((*GPUS, *NICS), {("GPU0", "mlx5_0"): "PIX"}, affinity=NODES)
    (far,) = found(near, "adapter-far-from-gpu")
    assert far.devices == ("GPU2", "GPU3") and far.observation.startswith("2 of 4 GPUs")


def test_a_near_class_between_nodes_and_a_far_one_in_the_only_node_contradict() -> None:
    crossed = with_paths(GPUS, PAIRED | {("GPU1", "GPU2"): "PIX"}, affinity=NODES)
    (finding,) = found(crossed, "paths-contradict-numa")
    assert "1 pair of devices has a path within one NUMA node, but different nodes" in finding.observation
    assert finding.evidence == "GPU1 - GPU2: PIX, nodes 0 and 1"
    alone = with_paths((*cpu_tree(1), *GPUS[:2]), {})
    alone = replace(alone, paths=matrix(["GPU0", "GPU1"], {}))
    (finding,) = found(alone, "paths-contradict-numa")
    assert "only one NUMA node" in finding.observation and "one node in all" in finding.evidence
    assert found(alone, "gpus-across-numa-nodes") == []


def test_adapters_of_grace_are_not_far_by_their_class() -> None:
    """Grace reports SYS between each GPU and adapter: the GPUs are attached by C2C, not by the PCI tree."""
    grace = tuple(replace(g, facts=facts(gpu_numa=2 + k)) for k, g in enumerate(GPUS))
    links = {(a.id, b.id): "NV18" for k, a in enumerate(GPUS) for b in GPUS[k + 1 :]}
    given = with_paths((*grace, *NICS), links)
    assert found(given, "adapter-far-from-gpu") == [] and found(given, "adapter-near-no-gpu") == []
    # The control: without the GPUs' own nodes, SYS is what it says.
    assert len(found(with_paths((*GPUS, *NICS), links), "adapter-far-from-gpu")) == 1
    # An adapter of the other socket is far from a GPU of this one also there.
    split = (replace(grace[0], numa=0), replace(NICS[0], numa=1))
    (finding,) = found(with_paths(split, {}), "adapter-far-from-gpu")
    assert finding.devices == ("GPU0",)


def test_what_tells_a_coherent_gpu() -> None:
    host = bridge("0000:00")
    named = gpu("g", model_name="NVIDIA GH200 480GB")
    linked = Machine("m", (host, GPUS[0]), links=(replace(link(host, GPUS[0], 450e9, 450e9), kind="c2c"),))
    assert coherent_gpus(Machine("m", (named,))) == {"g"} and coherent_gpus(linked) == {"GPU0"}
    assert coherent_gpus(with_paths((GPUS[0], NICS[0]), {}, "C2C")) == {"GPU0"}
    geforce = gpu("g", pci_name="GB202 [GeForce RTX 5090]")
    assert coherent_gpus(Machine("m", (geforce,))) == frozenset()


@pytest.mark.parametrize(
    ("classes", "asks", "not_asked"),
    [
        ({}, "at the NUMA node of these GPUs", "switch"),
        ({("GPU0", "GPU1"): "PIX"}, "below the switch of these GPUs, or at least at their NUMA node", "host bridge"),
        (
            dict.fromkeys([(f"GPU{k}", "mlx5_0") for k in range(4)], "NODE"),
            "below the host bridge of these GPUs",
            "NUMA node",
        ),
    ],
)
def test_an_adapter_is_only_to_be_moved_nearer(classes: dict[tuple[str, str], str], asks: str, not_asked: str) -> None:
    given = with_paths((*GPUS, NICS[0]), classes)
    (finding,) = found(given, "adapter-far-from-gpu")
    assert f"free slot {asks}" in finding.remedy and not_asked not in finding.remedy
    (guest,) = found(replace(given, facts=facts(hypervisor="kvm")), "adapter-far-from-gpu")
    assert "slot" not in guest.remedy and "host's administrator" in guest.remedy


@pytest.mark.parametrize(
    ("told", "nodes", "name"),
    [
        (EPYC, 8, "NPS4"),
        (EPYC, 4, "NPS2"),
        ({"vendor": "GenuineIntel", "microarchitecture": "Sapphire Rapids"}, 8, "SNC4"),
        ({"vendor": "GenuineIntel", "microarchitecture": "Granite Rapids"}, 6, "SNC3"),
        ({"vendor": "GenuineIntel", "microarchitecture": "Broadwell-EP"}, 4, "Cluster on Die"),
        ({"implementer": 65}, 4, None),
        ({"vendor": "AuthenticAMD", "model_name": "AMD Opteron(tm) Processor 6272"}, 4, None),
        ({"vendor": "AuthenticAMD", "model_name": "AMD EPYC 7763 64-Core Processor"}, 4, "NPS2"),
    ],
)
def test_a_divided_socket_has_the_name_of_its_vendor(told: dict[str, FactValue], nodes: int, name: str | None) -> None:
    (finding,) = found(sockets(nodes, **told), "sockets-divided")
    assert f"divided into {nodes // 2} NUMA nodes{f' ({name})' if name else ''}." in finding.observation
    assert f"1/{nodes // 2} of the memory channels" in finding.diagnosis and finding.severity is Severity.INFO
    assert ("firmware" in finding.remedy) == (name is not None)
    assert ("NPS1" in finding.remedy) == bool(name and name.startswith("NPS"))
    assert f"package-0: nodes 0-{nodes // 2 - 1}" in finding.evidence


def test_a_node_for_each_cache_is_not_a_number_of_nodes_per_socket() -> None:
    given = sockets(16)
    caches = tuple(Device(f"l3-{k}", DeviceKind.CACHE, "l3", f"numa-{k}", k) for k in range(16))
    (finding,) = found(replace(given, devices=(*given.devices, *caches)), "sockets-divided")
    assert "8 NUMA nodes (a node for each L3 cache)" in finding.observation and "one node per socket" in finding.remedy


def test_a_kernel_without_numa_is_named() -> None:
    given = replace(sockets(2, joined=True), facts=facts(kernel_parameters="quiet numa=off"))
    (finding,) = found(given, "sockets-one-numa-node")
    assert finding.remedy == "Boot without `numa=off`" and finding.severity is Severity.WARNING
    assert "about 1 of 2 accesses" in finding.diagnosis
