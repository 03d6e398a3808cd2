"""Faults planted into real dumps: the right device or slot is named in at least nine of ten, and never another one.

The samples are other people's data and stay outside the repository: without them these tests are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pytest
from analysis.planted import (
    Matrix,
    Planted,
    hwloc_narrow,
    hwloc_without_a_gpu,
    matrix_fewer_links,
    matrix_moved,
    matrix_without_a_gpu,
    matrix_wrong_node,
    missing_modules,
    modules_of_one_rank,
    modules_without_ecc,
    nccl_moved,
    nccl_narrow,
    nccl_without_a_gpu,
    shrunken_modules,
    slow_modules,
)
from shared_samples import DUMPS, TOPOLOGY

from seatrial.analysis.rules import findings
from seatrial.machine.assemble import assemble
from seatrial.machine.dumps import Dump, survey_dumps
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.machine.machine import Machine

NAMED = 0.9
PLACED = frozenset({"device-out-of-place", "paths-contradict-numa"})
WIDTHS = frozenset({"link-unlike-siblings", "uplink-unlike-siblings", "link-below-capability"})
LINKS = frozenset({"gpu-link-missing", "gpu-links-fewer"})
MODULES = (shrunken_modules, slow_modules, modules_of_one_rank, modules_without_ecc, missing_modules)

WITH_SIBLINGS = ("aws_p4de", "azure_ndv4", "4p4h", "8p_90a", "8p_940vm", "8p_pcie_2nic", "8p6l_6nic", "8p_ts1_n4")
EIGHT = (*WITH_SIBLINGS, "azure_ndv2", "8p_rome_n4")
REGULAR = ("aws_p4de", "azure_ndv4", "8p_940vm", "8p6l_6nic")
MATRICES = ("a100_hgx_10nic", "h100_hgx_8nic", "v100_dgx1_4xmlx5")
SWITCHED = ("a100_hgx_10nic", "h100_hgx_8nic")


def read(kind: str, data: bytes) -> Machine:
    return assemble(survey_dumps([Dump(kind, "planted", data)]))


def samples(kind: str, names: Iterable[str]) -> Iterator[bytes]:
    files = [file for file in DUMPS[kind] if any(name in file for name in names)]
    missing = [file for file in files if not (TOPOLOGY / file).is_file()]
    if missing:
        pytest.skip(f"needs {TOPOLOGY / missing[0]}, which is not part of the repository")
    assert files
    yield from ((TOPOLOGY / file).read_bytes() for file in files)


def ids(machine: Machine, planted: Planted) -> set[str]:
    """The right device, by the ids and names that it has in the machine."""
    right = {name.lower() for name in planted.right}
    return {device.id for device in machine.devices if {device.id.lower(), (device.pci or "").lower()} & right}


def check(kind: str, faults: Iterable[Planted], rules: frozenset[str], healthy: Machine) -> None:
    """At least nine of ten are named, by these rules, and no other device is."""
    before = {(finding.rule, finding.devices) for finding in findings(healthy, ())}
    hits = total = 0
    for planted in faults:
        machine = read(kind, planted.data)
        new = [f for f in findings(machine, ()) if f.rule in rules and (f.rule, f.devices) not in before]
        right = ids(machine, planted)
        total += 1
        hits += any(right & set(finding.devices) for finding in new)
        wrong = [finding for finding in new if finding.devices and not right & set(finding.devices)]
        assert not wrong, (planted.what, wrong)
    assert total and hits >= NAMED * total, f"{hits} of {total} named"


@pytest.mark.parametrize(
    ("kind", "plant", "names", "rules"),
    [
        ("nccl-xml", nccl_narrow, ("aws_p4de", "azure_ndv4", "4p4h", "8p_90a", "8p_940vm", "8p6l_6nic"), WIDTHS),
        ("nccl-xml", lambda data: nccl_moved(data, "nic"), REGULAR, PLACED),
        ("nccl-xml", lambda data: nccl_moved(data, "gpu"), (*REGULAR, "8p_pcie_2nic"), PLACED),
        ("hwloc-xml", hwloc_narrow, ("nvidiaDGX2",), WIDTHS),
        ("nvidia-smi-topo", matrix_moved, MATRICES, PLACED),
        ("nvidia-smi-topo", matrix_wrong_node, (*MATRICES, "v100_8x_NIC0"), PLACED),
        ("nvidia-smi-topo", matrix_fewer_links, SWITCHED, LINKS),
    ],
)
def test_a_device_unlike_its_like_is_named(
    kind: str, plant: Callable[[bytes], Iterator[Planted]], names: tuple[str, ...], rules: frozenset[str]
) -> None:
    for data in samples(kind, names):
        check(kind, plant(data), rules, read(kind, data))


@pytest.mark.parametrize(
    ("kind", "plant", "names"),
    [
        ("nccl-xml", nccl_without_a_gpu, EIGHT),
        ("hwloc-xml", lambda data: hwloc_without_a_gpu(data, "10de:1db8"), ("nvidiaDGX2",)),
        ("nvidia-smi-topo", matrix_without_a_gpu, (*MATRICES, "v100_8x_NIC0")),
    ],
)
def test_a_gpu_that_is_gone_is_missed(
    kind: str, plant: Callable[[bytes], Iterator[Planted]], names: tuple[str, ...]
) -> None:
    for data in samples(kind, names):
        assert "gpu-missing" not in {finding.rule for finding in findings(read(kind, data), ())}
        for planted in plant(data):
            machine = read(kind, planted.data)
            assert "gpu-missing" in {finding.rule for finding in findings(machine, ())}, planted.what


@pytest.mark.parametrize("plant", MODULES)
def test_the_slot_of_an_odd_module_is_named_and_no_other(plant: Callable[[bytes, int], Iterator[Planted]]) -> None:
    hits = total = 0
    for data in samples("dmidecode", ("dmi_",)):
        assert read("dmidecode", data).memory.odd_slots == ()
        for planted in plant(data, 3):
            machine = read("dmidecode", planted.data)
            slots = {odd.slot for odd in machine.memory.odd_slots}
            assert slots <= set(planted.right), planted.what
            serious = [finding for finding in findings(machine, ()) if finding.severity is not Severity.INFO]
            total += 1
            hits += any(_names(machine, finding, planted.right[0]) for finding in serious)
    assert total and hits >= NAMED * total, f"{hits} of {total} named"


def _names(machine: Machine, finding: Finding, slot: str) -> bool:
    modules = [machine.device(name) for name in finding.devices]
    return f"lot {slot} " in finding.observation or any(m is not None and m.name == slot for m in modules)


def test_the_matrix_of_the_samples_is_written_as_it_was_read() -> None:
    for data in samples("nvidia-smi-topo", MATRICES):
        assert read("nvidia-smi-topo", Matrix(data).data()).paths == read("nvidia-smi-topo", data).paths
