"""The rules about devices and slots unlike the others, and about the BLAS of matrix products."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from analysis.made_up_nodes import GEN3_X16, beside, cpu_tree, facts, gpu, link, matrix, nic, switched
from analysis.test_rules_expectation import limit, made, result
from machine.dmi_dumps import SKYLAKE, Server, dell

from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import Case
from seatrial.machine.assemble import assemble
from seatrial.machine.readers.dmidecode import read_dmidecode
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine

EIGHT = tuple(gpu(f"GPU{k}", device_id="2330", vendor_id="10de") for k in range(8))


def rates(*values: float, kind: str = "gpu", trained: bool = False, **told: object) -> Machine:
    """Devices of one model with these link rates."""
    make = gpu if kind == "gpu" else nic
    devices = tuple(make(f"{kind}-{k}", device_id="2330", vendor_id="10de") for k in range(len(values)))
    links = tuple(
        link("host", d, None if trained else v, v if trained else None) for d, v in zip(devices, values, strict=True)
    )
    return Machine("m", devices, links=links, **told)


def uplinks(*values: float) -> Machine:
    """Switches with two GPUs each and uplinks of these rates."""
    whole = switched(2 * len(values), GEN3_X16, switches=len(values))
    of = {f"pci-000{k}:01:00.0": value for k, value in enumerate(values)}
    links = tuple(replace(one, capable_Bps=of.get(one.b, one.capable_Bps), trained_Bps=None) for one in whole.links)
    return replace(whole, links=links)


def boards(adapters: dict[int, str], gpus: int = 8, switches: int = 4) -> Machine:
    """Linked GPUs, two or more to a switch with adapters; `adapters` has the number of the switch of each."""
    cards = EIGHT[:gpus]
    nics = tuple(nic(f"mlx5_{k}") for k in adapters)
    each = 8 // switches
    classes = {(a.id, b.id): "NV18" for k, a in enumerate(cards) for b in cards[k + 1 :]}
    classes |= {
        (card.id, f"mlx5_{number}"): "PIX"
        for number, at in adapters.items()
        for k, card in enumerate(cards)
        if k // each == at
    }
    return Machine("m", (*cards, *nics), paths=matrix([d.id for d in (*cards, *nics)], classes, "NODE"))


def at_nodes(*nodes: int) -> Machine:
    cards = tuple(gpu(f"GPU{k}", node) for k, node in enumerate(nodes))
    return Machine("m", (*cpu_tree(), *cards), affinity=tuple(beside(card.id, None, card.numa) for card in cards))


def linked(*counts: int) -> Machine:
    return Machine("m", tuple(gpu(f"gpu-{k}", nvlink_links=number) for k, number in enumerate(counts)))


def server(change: dict[int, dict[str, str]] | None = None, **more: str) -> Machine:
    """A server of two sockets with six of twelve slots filled each; `change` are slots by number with other fields."""
    slots = dell(12, range(1, 7), configured="2666 MT/s", speed="2666 MT/s", **more)
    for number, fields in (change or {}).items():
        slots[number] = replace(slots[number], **fields)
    return assemble([read_dmidecode(Server("Dell Inc.|PowerEdge R740", [SKYLAKE, SKYLAKE], slots).data())])


def without_ecc(machine: Machine) -> Machine:
    """The same machine with a slot whose module has no bits for ECC."""
    text = Server("Dell Inc.|PowerEdge R740", [SKYLAKE, SKYLAKE], dell(12, range(1, 7))).text()
    head, _, tail = text.partition("\tLocator: B3")
    at = head.rindex("\tTotal Width: 72 bits")
    return assemble([read_dmidecode((head[:at] + head[at:].replace("72", "64", 1) + "\tLocator: B3" + tail).encode())])


TWO_EACH = dict(enumerate((0, 0, 1, 1, 2, 2, 3, 3)))
ONE_EACH = dict(enumerate((0, 1, 2, 3)))

CASES = {
    "link-unlike-siblings": (
        rates(*[GEN3_X16] * 7, GEN3_X16 / 4),
        [
            rates(*[GEN3_X16] * 8),
            rates(*[GEN3_X16] * 4, *[GEN3_X16 / 2] * 4),  # two kinds of slots
            Machine("m", EIGHT),
            replace(rates(GEN3_X16, GEN3_X16, GEN3_X16 / 2), links=rates(GEN3_X16, GEN3_X16).links),  # one is unknown
        ],
    ),
    "uplink-unlike-siblings": (uplinks(*[GEN3_X16] * 3, GEN3_X16 / 2), [uplinks(*[GEN3_X16] * 4), uplinks(GEN3_X16)]),
    "device-out-of-place": (
        boards({**TWO_EACH, 2: 0}),
        [boards(TWO_EACH), boards(ONE_EACH), at_nodes(0, 0, 1, 1, 1, 1), boards({0: 0, 1: 0, 2: 3})],
    ),
    "gpu-missing": (
        boards(TWO_EACH, gpus=7),
        [boards(TWO_EACH), at_nodes(0, 0, 0, 0, 1, 1, 1, 1), at_nodes(0, 1, 1), at_nodes(0, 0, 1, 1, 1, 1)],
    ),
    "gpu-links-fewer": (linked(12, 12, 11, 12), [linked(12, 12, 12, 12), linked(12, 11), linked(12, 12, 11, 11)]),
    "memory-module-differs": (
        replace(server({14: {"rank": "1"}}), memory=replace(server().memory, odd_slots=server({14: {"rank": "1"}})
                                                           .memory.odd_slots)),
        [server(), server({14: {"rank": "1"}})],  # reported with the population
    ),
    "memory-module-without-ecc": (without_ecc(server()), [server()]),
}  # fmt: skip


def of_gemm(core: str, family: str = "openblas", isa: str = "avx avx2 fma sse2 avx512f", **notes: str) -> Case:
    """A matrix product with these kernels."""
    cpu = Device("package-0", DeviceKind.PACKAGE, "CPU", facts=facts(isa=isa))
    doubtful = replace(limit(1e11), unit="flop/s", confirmed=False)
    figure = replace(made(3.6e9, doubtful, name="gemm", one_limit_over=("blas", "kernels")), unit="flop/s")
    product = result(figure, benchmark="cpu.gemm", precision="fp64", threads=1, blas="auto", kernels="forced")
    said = {"blas_core": core, "blas_family": family, **notes}
    said = {name: text for name, text in said.items() if text}
    return Case(Machine("m", (cpu,)), (product,), {(product.id, 0): {"notes": said}})


OF_RESULTS = {
    "blas-kernels-older": of_gemm("Prescott", blas_own_core="SkylakeX"),
    "far-below-limit": Case(Machine("m"), (result(made(0.19, replace(limit(1.0), confirmed=False))),)),
}


def named(rule: str, machine: Machine) -> Finding:
    return next(finding for finding in findings(machine, ()) if finding.rule == rule)


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_fires_once_and_not_on_its_controls(rule):
    fires, silent = CASES[rule]
    assert [finding.rule for finding in findings(fires, ())].count(rule) == 1
    for given in silent:
        assert rule not in [finding.rule for finding in findings(given, ())], given


def test_the_odd_device_is_named():
    assert named("link-unlike-siblings", CASES["link-unlike-siblings"][0]).devices == ("gpu-7",)
    assert named("uplink-unlike-siblings", CASES["uplink-unlike-siblings"][0]).devices == ("pci-0003:01:00.0",)
    assert named("device-out-of-place", CASES["device-out-of-place"][0]).devices == ("mlx5_2",)
    assert named("gpu-links-fewer", CASES["gpu-links-fewer"][0]).devices == ("gpu-2",)


def test_two_devices_that_differ_and_idle_gpus_are_only_notes():
    pair = named("link-unlike-siblings", rates(GEN3_X16, GEN3_X16 / 2))
    assert pair.severity is Severity.INFO and "by design" in pair.diagnosis and pair.loss is None
    idle = named("link-unlike-siblings", rates(*[GEN3_X16] * 3, 4.0e9, trained=True))
    assert idle.severity is Severity.INFO and "idle" in idle.diagnosis
    narrow = named("link-unlike-siblings", rates(*[GEN3_X16] * 3, GEN3_X16 / 4, trained=True))
    assert narrow.severity is Severity.WARNING and narrow.loss == pytest.approx(0.75)


def test_a_gpu_at_the_other_node_breaks_the_order():
    finding = named("device-out-of-place", at_nodes(0, 0, 1, 0, 1, 1, 1, 1))
    assert finding.devices == ("GPU2",) and "3 and 5 GPUs at NUMA nodes 0, 1" in finding.observation


def test_of_one_adapter_per_gpu_the_moved_one_is_found_by_the_order_of_the_gpus():
    each = {k: k for k in range(8)}
    finding = named("device-out-of-place", boards({**each, 5: 2}, switches=8))
    assert finding.devices == ("mlx5_5",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({2: {"size": "16 GB"}}, "Slot A3 (socket 1, channel 2) has 16 GiB; 11 other modules have 32 GiB."),
        ({2: {"rank": "1"}}, "Slot A3 (socket 1, channel 2) has 1 rank; 11 other modules have 2 ranks."),
        ({13: {"configured": "1866 MT/s"}}, "Slot B2 (socket 2, channel 1) has 1866 MT/s (configured speed)"),
        ({13: {"size": "No Module Installed"}}, "Slot B2 (socket 2, channel 1) is empty"),
    ],
)
def test_the_slot_of_an_odd_module_is_named(change, words):
    machine = server(change)
    (finding,) = [finding for finding in findings(machine, ()) if finding.severity is not Severity.INFO]
    assert finding.rule == "memory-unbalanced" and words in finding.observation
    slot = words.split()[1]
    assert f"slot {slot} first" in finding.remedy
    modules = {machine.device(name).name for name in finding.devices}
    assert modules == (set() if "empty" in words else {slot})


def test_odd_slots_are_kept_with_the_machine():
    from seatrial.model.machine.document import machine_document, machine_from_document

    machine = server({2: {"size": "16 GB"}})
    document = machine_document(machine)
    assert document["memory"]["odd_slots"][0]["slot"] == "A3"
    assert machine_from_document(document).memory == machine.memory
    assert "odd_slots" not in machine_document(server())["memory"]


def test_kernels_older_than_the_cpu_are_named_with_what_is_better():
    (finding,) = findings_of(of_gemm("Prescott", blas_own_core="SkylakeX"))
    assert "kernels for Prescott (SSE); this CPU has AVX-512" in finding.observation
    assert "3.6 % of its unconfirmed limit" in finding.observation and "would select SkylakeX" in finding.remedy
    (finding,) = findings_of(
        of_gemm("Haswell", blas_own_core="Haswell", blas_better="/lib/libopenblas.so (Cooperlake)")
    )
    assert "--set blas=/lib/libopenblas.so`" in finding.remedy
    (finding,) = findings_of(of_gemm("", "reference", blas_better="/lib/libopenblas.so (Cooperlake)"))
    assert "reference BLAS" in finding.observation and "libopenblas" in finding.remedy


@pytest.mark.parametrize("case", [of_gemm("SkylakeX"), of_gemm("Haswell", isa="avx avx2 fma sse2"), of_gemm("")])
def test_right_kernels_are_no_finding_but_a_figure_far_below_is(case):
    assert [finding.rule for finding in findings_of(case)] == ["far-below-limit"]


def findings_of(case: Case) -> list[Finding]:
    found = findings(case.machine, case.results, case.seen)
    return [finding for finding in found if finding.rule in OF_RESULTS]


_AT_CARDS = re.compile(r"\b(move|reseat|exchange|swap|replace) (the|an?) (card|adapter|GPU)|check the slot|free slot")


def on_modules(*adapters: int, other: str = "NODE") -> Machine:
    """Eight dies of MI250X modules; an adapter is at each of these dies, and `other` from the others."""
    dies = tuple(gpu(f"gpu-{k}", vendor_id="1002", device_id="7408") for k in range(8))
    nics = tuple(nic(f"hsn{k}", rate=25e9) for k in range(len(adapters)))
    classes = {(f"gpu-{die}", f"hsn{k}"): "PHB" for k, die in enumerate(adapters)}
    classes |= {(a.id, b.id): "XGMI" for k, a in enumerate(dies) for b in dies[k + 1 :]}
    return Machine("m", (*dies, *nics), paths=matrix([d.id for d in (*dies, *nics)], classes, other))


@pytest.mark.parametrize("other", ["NODE", "SYS"])
def test_nothing_is_moved_to_the_other_die_of_a_module(other):
    finding = named("adapter-far-from-gpu", on_modules(1, 3, 5, 7, other=other))
    assert finding.devices == ("gpu-0", "gpu-2", "gpu-4", "gpu-6") and finding.severity is Severity.INFO
    assert not _AT_CARDS.search(finding.remedy) and "the board fixes it" in finding.remedy
    assert "Use gpu-1, gpu-3, gpu-5, gpu-7" in finding.remedy
    assert "device-out-of-place" not in [f.rule for f in findings(on_modules(1, 3, 5, 3), ())]
    cards = replace(
        on_modules(1, 3, 5, 7), devices=(*(gpu(f"gpu-{k}") for k in range(8)), *on_modules(1, 3, 5, 7).devices[8:])
    )
    assert _AT_CARDS.search(named("adapter-far-from-gpu", cards).remedy)


def test_in_a_guest_nobody_is_asked_to_move_a_card():
    narrow = gpu("gpu-0", pcie_lanes=4, pcie_max_lanes=16, pcie_GTps=16.0, pcie_max_GTps=16.0)
    lanes = Machine("m", (narrow,), links=(link("port", narrow, GEN3_X16, GEN3_X16 / 4),))
    far = (gpu("GPU0"), gpu("GPU1"), nic("mlx5_0"))
    distant = Machine("m", far, paths=matrix([d.id for d in far], {("GPU0", "mlx5_0"): "PIX"}))
    machines = [*(fires for fires, _ in CASES.values()), lanes, distant]
    at_cards = set()
    for one in machines:
        at_cards |= {finding.rule for finding in findings(one, ()) if _AT_CARDS.search(finding.remedy)}
        guest = replace(one, facts=facts(hypervisor="kvm"))
        for finding in findings(guest, ()):
            assert not _AT_CARDS.search(finding.remedy), finding
            assert finding.severity is Severity.INFO or finding.rule not in at_cards, finding
    assert at_cards == {"link-below-capability", "adapter-far-from-gpu", "device-out-of-place", "link-unlike-siblings"}
