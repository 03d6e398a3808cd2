"""Folding of identical parts; the terminal and the page print the same folds."""

from __future__ import annotations

from made_up import made_up_machine
from report.page_samples import server_machine, vm_machine

from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.report.folded_tree import fold, walk
from seatrial.report.panels.node import _devices, _tree
from seatrial.report.text.machine import machine_text


def lines_of(machine: Machine) -> list[tuple[int, int, str, str]]:
    return [(line.depth, line.number, line.what, line.about) for line in _tree(fold(machine))]


def test_like_parts_are_one_with_their_number():
    assert lines_of(made_up_machine(packages=2, cores=4, threads=2)) == [
        (0, 2, "CPU", "CPUs 0-15"),
        (1, 1, "L3 32 MiB", ""),
        (2, 4, "core", "2 threads"),
    ]


def test_parts_that_differ_stay_apart():
    machine = made_up_machine(packages=1, cores=2)
    more = Device("pu-9", DeviceKind.PU, "CPU", "core-1")
    lines = lines_of(Machine("m", (*machine.devices, more)))
    assert [(number, about) for _, number, what, about in lines if what == "core"] == [
        (1, "1 thread; CPU 0"),
        (1, "2 threads; CPU 1"),
    ]


def test_terminal_and_page_tell_the_same():
    for machine in (vm_machine(), server_machine()):
        text = machine_text(machine)
        for _, number, what, about in lines_of(machine):
            assert what.rstrip("0123456789 ") in text or what == "core"
            assert what != "core" or f"{number} cores x {about.partition('; CPU')[0]} each" in text


def test_devices_outside_the_processors_are_not_folded_and_bridges_with_one_device_are_left_out():
    machine = server_machine()
    table = _devices(machine, fold(machine))
    names = [row[0].text for row in table.rows]
    assert sum("H100" in name for name in names) == 4 and not any("bridge" in name for name in names)
    assert {part.number for _, part, _ in walk(fold(machine)) if part.first.kind is DeviceKind.GPU} == {1}


def test_unfolded_nodes_are_numbered_as_the_devices_refer_to_them():
    assert [what for _, _, what, _ in lines_of(server_machine()) if "NUMA" in what] == ["NUMA node 0", "NUMA node 1"]


def test_a_part_whose_parent_is_missing_is_not_lost():
    lost = Machine("m", (Device("core-0", DeviceKind.CORE, "core", "nowhere"),))
    assert lines_of(lost) == [(0, 1, "core", "0 threads")]
