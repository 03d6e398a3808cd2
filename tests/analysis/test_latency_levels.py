"""The ladder of latencies: which working set speaks for which level."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from made_up import facts, made_up_machine

from seatrial.analysis.roles import LatencyLevel, levels
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import FigureResult

KiB, MiB = 1 << 10, 1 << 20


def machine_with(l1: int | None, l2: int | None, l3: int) -> Machine:
    """One core below L3, L2, L1d and L1i; a size of None: not reported."""
    machine = made_up_machine(cores=1, l3_bytes=l3)
    sizes = {"l2-0": (2, "unified", l2), "l1d-0": (1, "data", l1), "l1i-0": (1, "instruction", 64 * KiB)}
    devices = [d for d in machine.devices if d.kind in (DeviceKind.PACKAGE, DeviceKind.CACHE)]
    parent = "l3-0"
    for name, (level, kind, size) in sizes.items():
        told = {} if size is None else {"size": size}
        devices.append(Device(name, DeviceKind.CACHE, name, parent, facts=facts(level=level, type=kind, **told)))
        parent = name
    devices += [replace(d, parent=parent) if d.id == "core-0" else d for d in machine.devices if d not in devices]
    return replace(machine, devices=tuple(devices))


ZEN = machine_with(48 * KiB, 1 * MiB, 32 * MiB)


def point(working_set_B: int, latency_s: float, ci95: tuple[float, float] | None = None) -> FigureResult:
    return FigureResult(
        "load", {"working_set_B": working_set_B}, "s", Better.LOWER, "one load", latency_s, ci95, 0, 1, 1, None, ()
    )


def staircase(steps: Mapping[int, float], beyond_s: float, largest_B: int) -> list[FigureResult]:
    """Sets of two in each octave; a set takes the latency of the first level that holds all of it."""
    sizes = sorted(
        {part << shift for shift in range(11, 40) for part in (2, 3) if 4 * KiB <= part << shift <= largest_B}
    )
    return [point(s, next((t for size, t in steps.items() if s <= size), beyond_s)) for s in sizes]


STEPS = {48 * KiB: 1e-9, 1 * MiB: 4e-9, 32 * MiB: 15e-9}


def test_each_level_speaks_from_well_inside_it() -> None:
    found = levels(ZEN, staircase(STEPS, 1e-7, 128 * MiB))
    assert [(level.name, level.working_set_B, level.latency_s) for level in found] == [
        ("L1", 24 * KiB, 1e-9),
        ("L2", 512 * KiB, 4e-9),
        ("L3", 16 * MiB, 15e-9),
        ("DRAM", 128 * MiB, 1e-7),
    ]


def test_a_level_of_which_less_is_there_than_told_speaks_from_what_is_there() -> None:
    """A virtual machine that gets 6 MiB of the 32 MiB of L3 that it is told of: beyond, loads wait for memory."""
    steps = {48 * KiB: 1e-9, 1 * MiB: 4e-9, 6 * MiB: 15e-9}
    found = {level.name: level for level in levels(ZEN, staircase(steps, 1.5e-7, 128 * MiB))}
    assert (found["L3"].working_set_B, found["L3"].latency_s) == (6 * MiB, 15e-9)


def test_points_may_come_in_any_order_and_carry_their_interval() -> None:
    points = [point(128 * MiB, 1e-7, (9e-8, 2e-7)), point(8 * KiB, 1e-9), point(512 * KiB, 4e-9)]
    assert levels(ZEN, points) == (
        LatencyLevel("L1", 8 * KiB, 1e-9, None),
        LatencyLevel("L2", 512 * KiB, 4e-9, None),
        LatencyLevel("DRAM", 128 * MiB, 1e-7, (9e-8, 2e-7)),
    )


def test_a_set_between_two_levels_speaks_for_none() -> None:
    edges = [48 * KiB, 64 * KiB, 768 * KiB, 1 * MiB, 24 * MiB, 64 * MiB, 96 * MiB]
    assert levels(ZEN, [point(size, 1e-9) for size in edges]) == ()


def test_memory_is_told_only_far_beyond_the_last_cache() -> None:
    assert [level.name for level in levels(ZEN, staircase(STEPS, 1e-7, 96 * MiB))] == ["L1", "L2", "L3"]


def test_a_level_hardly_greater_than_the_one_below_is_left_out() -> None:
    machine = machine_with(48 * KiB, 1 * MiB, 3 * MiB)
    assert [level.name for level in levels(machine, staircase(STEPS, 1e-7, 64 * MiB))] == ["L1", "L2", "DRAM"]


@pytest.mark.parametrize(
    ("machine", "names"),
    [
        (machine_with(48 * KiB, None, 32 * MiB), ["L1"]),
        (machine_with(None, 1 * MiB, 32 * MiB), []),
        (made_up_machine(l3_bytes=None), []),
        (Machine("nothing known"), []),
    ],
    ids=["no size of L2", "no size of L1", "no caches", "no CPU"],
)
def test_what_is_not_known_of_the_caches_tells_no_level_beyond(machine: Machine, names: list[str]) -> None:
    assert [level.name for level in levels(machine, staircase(STEPS, 1e-7, 128 * MiB))] == names


def test_the_caches_are_those_of_the_cpu_that_loaded() -> None:
    other = (
        Device("l3-9", DeviceKind.CACHE, "L3", "package-0", facts=facts(level=3, size=4 * MiB)),
        Device("core-9", DeviceKind.CORE, "core", "l3-9"),
        Device("pu-9", DeviceKind.PU, "CPU", "core-9", facts=facts(os_index=9)),
    )
    machine = replace(ZEN, devices=(*ZEN.devices, *other), allowed_cpus=(0, 9))
    points = [point(2 * MiB, 2e-9), point(16 * MiB, 3e-9)]
    assert [(level.name, level.working_set_B) for level in levels(machine, points, cpu=9)] == [
        ("L3", 2 * MiB),
        ("DRAM", 16 * MiB),
    ]
    assert [(level.name, level.working_set_B) for level in levels(machine, points)] == [("L3", 16 * MiB)]


def test_figures_of_other_benchmarks_are_no_points() -> None:
    other = replace(point(0, 1.0), point={"size_B": 8})
    assert levels(ZEN, [other]) == ()
