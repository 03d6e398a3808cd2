"""memory.latency: which sets it takes, the program for real, and a planted fault for each of its checks."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from benchmarks.numa_machines import numa_machine
from engine.harness import make_ready, run_one
from engine.planted_faults import with_fault
from made_up import facts, made_up_machine

from seatrial.benchmarks.memory.latency import BENCHMARK as LATENCY
from seatrial.benchmarks.memory.latency import cycles, working_sets
from seatrial.errors import Exit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Sample, State
from seatrial.plan.points import Point, plan_points
from seatrial.store.folder import ResultsFolder


def plan(machine: Machine, **settings: str) -> Point:
    (point,) = plan_points(["memory.latency"], {name: [value] for name, value in settings.items()}, machine)
    return point


def with_memory(machine: Machine, memory_B: int) -> Machine:
    return replace(machine, facts=facts(memory_total=memory_B))


def derived(check: str, samples: list[Sample], machine: Machine, **settings: str) -> tuple[float | None, bool]:
    """What a check makes of the samples, and whether it passes."""
    point = plan(machine, **settings)
    (found,) = (candidate for candidate in LATENCY.checks if candidate.name == check)
    assert found.derive is not None
    value = found.derive(machine, point.parameters, samples)
    low, high = found.bound(machine, point.parameters)
    return value, value is not None and low <= value <= high


def sample(working_set_B: int, load_cycles: float, astray: int = 0, looked_at: int = 100) -> Sample:
    """A million loads at 2 GHz; the second chain of additions was disturbed."""
    extra = {"add_ops": 1000, "add_s": [5e-7, 9e-7], "pages_looked_at": looked_at, "pages_astray": astray}
    return Sample("load", 0, load_cycles * 1e6 / 2e9, {"ops": 1e6}, point={"working_set_B": working_set_B}, extra=extra)


def test_sets_go_from_the_first_level_to_four_times_the_last() -> None:
    point = plan(made_up_machine(l3_bytes=32 << 20))
    sets = working_sets(point.parameters)
    assert (sets[0], sets[-1], point.parameters["largest_B"]) == (4096, 128 << 20, 128 << 20)
    assert all(1 < b / a <= 1.5 for a, b in pairwise(sets))
    assert {24 << 10, 32 << 10, 48 << 20} < set(sets)


@pytest.mark.parametrize("per_octave", [1, 2, 3, 4, 8])
@pytest.mark.parametrize("line", [64, 128, 256])
@pytest.mark.parametrize("largest", [4096, 5000, 1 << 20, 300 << 20])
def test_sets_are_whole_lines_in_order_and_each_once(per_octave: int, line: int, largest: int) -> None:
    settings = {"per_octave": str(per_octave), "line_B": str(line), "largest_B": str(largest)}
    point = plan(made_up_machine(), **settings)
    sets = working_sets(point.parameters)
    assert list(sets) == sorted(set(sets)) and all(size % line == 0 for size in sets)
    assert sets[0] >= 4096 and sets[-1] == largest // line * line


def test_one_repeat_takes_about_a_second_and_three_at_most() -> None:
    assert LATENCY.estimate_s(plan(made_up_machine(l3_bytes=32 << 20)).parameters) < 1.5
    huge = plan(with_memory(made_up_machine(l3_bytes=512 << 20), 1 << 40))
    assert huge.parameters["largest_B"] == 2 << 30
    assert sum(size > 256 << 20 for size in working_sets(huge.parameters)) == 1
    assert LATENCY.estimate_s(huge.parameters) < 6  # a virtual machine's slow first touch of 2 GiB is in it


@pytest.mark.parametrize(
    ("machine", "largest"),
    [
        (made_up_machine(l3_bytes=96 << 20), 384 << 20),
        (made_up_machine(l3_bytes=1 << 20), 64 << 20),
        (made_up_machine(l3_bytes=None), 256 << 20),
        (with_memory(made_up_machine(l3_bytes=96 << 20), 1 << 30), 128 << 20),
    ],
    ids=["four times the cache", "a small cache", "no cache told", "an eighth of little memory"],
)
def test_the_largest_set(machine: Machine, largest: int) -> None:
    assert plan(machine).parameters["largest_B"] == largest


def test_nodes_are_as_far_apart_as_the_longest_line() -> None:
    machine = made_up_machine()
    assert plan(machine).parameters["line_B"] == 64
    long = tuple(
        replace(d, facts=facts(level=3, size=1 << 25, line_size=128)) if d.id == "l3-0" else d for d in machine.devices
    )
    assert plan(replace(machine, devices=long)).parameters["line_B"] == 128


@pytest.mark.parametrize(
    ("settings", "cpu"),
    [({}, 0), ({"node": "1"}, 4), ({"cpu": "6"}, 6), ({"cpu": "6", "node": "1"}, 6), ({"cpu": "6", "memory": "0"}, 6)],
)
def test_the_cpu_is_the_one_asked_for(settings: dict[str, str], cpu: int) -> None:
    assert plan(numa_machine(), **settings).cpus == (cpu,)


def test_a_node_of_memory_alone_can_be_measured() -> None:
    point = plan(numa_machine(memory_B=[16 << 30]), memory="2")
    arguments = LATENCY.program.arguments(point.parameters)
    assert point.cpus == (0,) and arguments[arguments.index("--memory-node") + 1] == "2"
    assert "--memory-node" not in LATENCY.program.arguments(plan(numa_machine()).parameters)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"cpu": "8"}, "this process may not use CPU 8"),
        ({"cpu": "1", "node": "1"}, "CPU 1 is not on NUMA node 1"),
        ({"node": "2"}, "NUMA node 2 has no CPU"),
        ({"node": "9"}, "this machine has no NUMA node 9; known nodes: 0, 1, 2, 3"),
        ({"memory": "3"}, "NUMA node 3 has no memory"),
        ({"memory": "7"}, "this machine has no NUMA node 7"),
        ({"line_B": "96"}, "line_B=96"),
        ({"largest_B": "1PiB"}, "a working set of 1125899906842624 B"),
    ],
)
def test_what_means_nothing_is_skipped(settings: dict[str, str], reason: str) -> None:
    point = plan(numa_machine(memory_B=[1 << 30, 0]), **settings)
    assert point.refusal is not None and point.refusal.reason.startswith(reason)


def test_without_a_source_of_nodes_none_can_be_chosen() -> None:
    refusal = plan(made_up_machine(), node="0").refusal
    assert refusal is not None and "known nodes: none" in refusal.reason


def test_cycles_are_those_of_the_less_disturbed_chain() -> None:
    assert cycles(sample(4096, 4.0)) == pytest.approx(4.0)


def test_loads_that_did_not_wait_are_found() -> None:
    machine = made_up_machine()
    assert derived("fewest_cycles", [sample(4096, 4.0), sample(8192, 14.0)], machine) == (pytest.approx(4.0), True)
    overlapping = [sample(8192, 14.0), *(sample(4096, c) for c in (0.5, 0.5, 9.0))]
    assert derived("fewest_cycles", overlapping, machine) == (pytest.approx(0.5), False)
    one_lucky = [sample(4096, c) for c in (1.0, 4.0, 4.1)]
    assert derived("fewest_cycles", one_lucky, machine)[1]


def test_sets_that_are_missing_or_strange_are_counted() -> None:
    machine = made_up_machine(l3_bytes=16 << 20)
    sizes = working_sets(plan(machine).parameters)
    assert derived("sets_measured", [sample(size, 4) for size in sizes], machine)[1]
    assert not derived("sets_measured", [sample(size, 4) for size in sizes[1:]], machine)[1]
    assert not derived("sets_measured", [sample(size, 4) for size in (*sizes, 5000)], machine)[1]


def test_pages_on_another_node_are_found() -> None:
    machine = numa_machine(memory_B=[0])
    assert derived("pages_astray", [sample(4096, 4.0, astray=1)], machine) == (0.01, True)
    assert derived("pages_astray", [sample(4096, 4.0, astray=2)], machine) == (0.02, False)
    assert derived("pages_astray", [sample(4096, 4.0, astray=0, looked_at=0)], machine)[0] is None


def test_no_page_can_be_local_where_a_node_has_no_memory() -> None:
    machine = numa_machine()
    bare = tuple(
        replace(d, facts=facts(os_index=0, memory_total=0)) if d.id == "numa-0" else d for d in machine.devices
    )
    bare_machine = replace(machine, devices=bare)
    assert derived("pages_astray", [sample(4096, 4.0, astray=100)], bare_machine)[0] is None
    assert derived("pages_astray", [sample(4096, 4.0, astray=100)], bare_machine, memory="1") == (1.0, False)


@pytest.mark.real
@pytest.mark.parametrize("huge_pages", ["true", "false"])
def test_every_set_has_its_time(huge_pages: str, live_machine: Machine, folder: ResultsFolder) -> None:
    ready = make_ready(LATENCY, live_machine, folder, largest_B="8MiB", huge_pages=huge_pages)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome
    found = readings(LATENCY, live_machine, ready.point.parameters, record.samples)
    sizes = [reading.point["working_set_B"] for reading in found]
    assert sizes == list(working_sets(ready.point.parameters))
    assert all(1e-10 < reading.value < 1e-4 for reading in found)  # between half a cycle and a disk
    assert min(sample.elapsed_s for sample in record.samples) >= 1e-3
    assert record.seen["notes"]["page_nodes"] == "reported" or "move_pages" in record.seen["notes"]["page_nodes"]


@pytest.mark.real
def test_memory_of_a_node_that_is_asked_for(live_machine: Machine, folder: ResultsFolder) -> None:
    node = live_machine.pus[live_machine.allowed_cpus[0]].numa
    if node is None:
        pytest.skip("needs a kernel that tells of NUMA nodes")
    ready = make_ready(LATENCY, live_machine, folder, largest_B="4MiB", memory=str(node), node=str(node))
    record = run_one(ready, live_machine, folder)
    if record.outcome.state is State.SKIPPED:
        pytest.skip(record.outcome.reason)
    assert record.outcome.is_ok, record.outcome


@pytest.mark.real
def test_a_node_that_is_not_there_is_a_skip_of_the_program(
    live_machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    ready = make_ready(LATENCY, live_machine, folder)
    command = [str(ready.program.path), "--record", str(tmp_path), "--cpus", str(ready.point.cpus[0])]
    done = subprocess.run([*command, "--sizes", "4096", "--memory-node", "1000"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 0, done.stderr
    assert '"ev":"skip","reason":"cannot bind memory to NUMA node 1000' in (tmp_path / "rank-000000.jsonl").read_text()


@pytest.mark.real
@pytest.mark.parametrize(
    "arguments",
    [
        ["--sizes", ""],
        ["--sizes", "4096,"],
        ["--sizes", "8192,4096"],
        ["--sizes", "4096", "--line-bytes", "96"],
        ["--sizes", "4096", "--memory-node", "-2"],
        ["--sizes", "1e6"],
        [],
    ],
)
def test_arguments_that_make_no_sense_are_refused(
    arguments: list[str], live_machine: Machine, folder: ResultsFolder, tmp_path: Path
) -> None:
    ready = make_ready(LATENCY, live_machine, folder)
    command = [str(ready.program.path), "--record", str(tmp_path), "--cpus", str(ready.point.cpus[0])]
    done = subprocess.run([*command, *arguments], stderr=subprocess.PIPE, text=True)
    assert done.returncode == Exit.USAGE and "--" in done.stderr


FAULTS = {
    "two rings of half the lines each": (
        "*node(order_[step]) = node(order_[following(step)]);",
        "*node(order_[step]) = node(order_[step + 1 == lines_ / 2 ? 0 : following(step)]);",
        "broken_links",
    ),
    "a shuffle that forgets a line and has another twice": (
        "order_[lines_] = order_[other];",
        "order_[lines_] = order_[other / 2];",
        "broken_links",
    ),
    "a turn less": (
        "for (; turns != 0; --turns)",
        "for (turns -= PLANTED && turns != 0 ? 1 : 0; turns != 0; --turns)",
        "lost_loads",
    ),
    "an order that is not shuffled": ("random_.below(lines_ + 1)", "lines_", "predictable_steps"),
    "a thread elsewhere": ("is_bound_to(cpu) ? 0 : 1", "is_bound_to(cpu) ? 1 : 0", "moved_thread"),
    "a size that nobody asked for": (
        '.add("working_set_B", point.bytes)',
        '.add("working_set_B", point.bytes + (PLANTED ? 64 : 0))',
        "sets_measured",
    ),
    "loads that were not made": (
        '.add("ops", sample.loads)',
        '.add("ops", sample.loads * (PLANTED ? 8 : 1))',
        "fewest_cycles",
    ),
    "pages on another node": ("return found == node;", "return found != node;", "pages_astray"),
}


@pytest.mark.real
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(
    fault: str, live_machine: Machine, folder: ResultsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = {name: {"latency.cpp": (text, replacement)} for name, (text, replacement, _) in FAULTS.items()}
    broken = with_fault(LATENCY, fault, faults, tmp_path, monkeypatch)
    record = run_one(make_ready(broken, live_machine, folder, largest_B="1MiB"), live_machine, folder)
    check = FAULTS[fault][2]
    assert record.outcome.state is State.INVALID and record.outcome.reason.startswith(f"{check}: "), record.outcome
