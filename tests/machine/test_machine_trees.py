"""How parts nest: sub-NUMA clusters, shared nodes, memory without CPUs, sources that see different parts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.machine.cpu_tree import build_cpu_tree
from seatrial.machine.survey import CpuPart, FactBook, Survey
from seatrial.model.machine.fact import Facts
from seatrial.model.machine.machine import Device, DeviceKind


def _facts(**told: str | int) -> Facts:
    book = FactBook()
    for name, value in told.items():
        book.say(name, value, "test")
    return book.facts()


def _pus(*cpus: int) -> list[CpuPart]:
    return [CpuPart(DeviceKind.PU, frozenset({cpu}), cpu, facts=_facts(os_index=cpu)) for cpu in cpus]


def _cores(*cpus: int) -> list[CpuPart]:
    return [CpuPart(DeviceKind.CORE, frozenset({cpu}), cpu) for cpu in cpus]


def _package(number: int, *cpus: int) -> CpuPart:
    return CpuPart(DeviceKind.PACKAGE, frozenset(cpus), number)


def _node(number: int, *cpus: int, distances: str = "") -> CpuPart:
    facts = _facts(distances=distances) if distances else Facts()
    return CpuPart(DeviceKind.NUMA, frozenset(cpus), number, facts=facts)


def _l3(*cpus: int) -> CpuPart:
    return CpuPart(DeviceKind.CACHE, frozenset(cpus), None, 3, "l3", _facts(level=3))


def _tree(*surveys: list[CpuPart]) -> dict[str, Device]:
    devices = build_cpu_tree([Survey(f"source {n}", cpu_parts=tuple(parts)) for n, parts in enumerate(surveys)])
    assert len({device.id for device in devices}) == len(devices)
    return {device.id: device for device in devices}


def test_sub_numa_clusters_under_one_cache() -> None:
    tree = _tree([_package(0, 0, 1, 2, 3), _node(0, 0, 1), _node(1, 2, 3), _l3(0, 1, 2, 3), *_cores(0, 1, 2, 3)])
    assert (tree["l3-0"].parent, tree["numa-0"].parent, tree["numa-1"].parent) == ("package-0", "l3-0", "l3-0")
    assert (tree["core-3"].parent, tree["core-3"].numa, tree["l3-0"].numa) == ("numa-1", 1, None)


def test_caches_inside_nodes() -> None:
    tree = _tree([_package(0, 0, 1, 2, 3), _node(0, 0, 1), _node(1, 2, 3), _l3(0, 1), _l3(2, 3)])
    assert (tree["numa-1"].parent, tree["l3-1"].parent) == ("package-0", "numa-1")


def test_two_packages_in_one_node() -> None:
    tree = _tree([_package(0, 0, 1), _package(1, 2, 3), _node(0, 0, 1, 2, 3), *_cores(0, 1, 2, 3), *_pus(0, 1, 2, 3)])
    assert (tree["numa-0"].parent, tree["package-1"].parent) == (None, "numa-0")
    assert tree["pu-3"].parent == "core-3"


def test_packages_are_counted_in_order_not_by_firmware_number() -> None:
    tree = _tree([_package(3180, 2, 3), _package(36, 0, 1)])
    assert list(tree) == ["package-0", "package-1"]


def test_memory_without_cpus_is_a_sibling_of_the_nearest_node() -> None:
    tree = _tree([_package(0, 0), _package(1, 1), _node(0, 0), _node(1, 1), _node(8, distances="0:30 1:17 8:10")])
    assert tree["numa-8"].parent == "package-1"
    tied = _tree([_package(0, 0), _package(1, 1), _node(0, 0), _node(1, 1), _node(8, distances="0:20 1:20 8:10")])
    assert tied["numa-8"].parent is None


def test_hbm_and_dram() -> None:
    tree = _tree([_package(0, 0, 1), _node(0, 0, 1), _node(1, 0, 1), *_cores(0, 1)])
    assert (tree["numa-0"].parent, tree["numa-1"].parent) == ("package-0", "package-0")
    assert (tree["core-1"].parent, tree["core-1"].numa) == ("numa-0", 0)


def test_nodes_that_overlap_packages_become_leaves() -> None:
    tree = _tree([_package(0, 0, 1), _package(1, 2, 3), _node(0, 1, 2), *_cores(0, 1, 2, 3)])
    assert tree["numa-0"].parent is None
    assert tree["core-1"].parent == "package-0"


def test_a_second_source_adds_facts_and_no_parts() -> None:
    whole = [_package(0, 0, 1, 2, 3), *_cores(0, 1, 2, 3), *_pus(0, 1, 2, 3)]
    part = [CpuPart(DeviceKind.PACKAGE, frozenset({0, 1}), 0, facts=_facts(vendor="ACME")), *_cores(0, 1), *_pus(0, 1)]
    tree = _tree(whole, part)
    assert len(tree) == 9
    assert tree["package-0"].facts.text("vendor") == "ACME", "the cpuset hides half of it from the second source"


def test_a_second_source_adds_kinds_missing_from_the_first() -> None:
    tree = _tree([_package(0, 0, 1), *_cores(0, 1)], [_package(0, 0, 1), _l3(0, 1), *_cores(0, 1)])
    assert tree["core-0"].parent == "l3-0"


_PARTS = st.lists(
    st.one_of(
        st.builds(_package, st.integers(0, 3), *[st.integers(0, 5)] * 3),
        st.builds(_node, st.integers(0, 3), *[st.integers(0, 5)] * 2),
        st.builds(_l3, *[st.integers(0, 5)] * 2),
        st.builds(lambda cpu: _cores(cpu)[0], st.integers(0, 5)),
        st.builds(lambda cpu: _pus(cpu)[0], st.integers(0, 5)),
        st.builds(_node, st.integers(4, 6), distances=st.sampled_from(["", "0:10 1:20", "0:x", "1:5 9:9"])),
    ),
    max_size=20,
)


@given(_PARTS, _PARTS)
def test_any_parts_give_a_tree_with_unique_ids(first: list[CpuPart], second: list[CpuPart]) -> None:
    devices = build_cpu_tree([Survey("a", cpu_parts=tuple(first)), Survey("b", cpu_parts=tuple(second))])
    seen: set[str] = set()
    for device in devices:
        assert device.id not in seen
        assert device.parent is None or device.parent in seen
        seen.add(device.id)
