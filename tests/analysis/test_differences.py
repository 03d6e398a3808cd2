"""The fairness list: what is planted is listed, what nobody planted is not, and the axis covers only what it brings."""

from __future__ import annotations

import dataclasses
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given
from made_up import facts, made_up_machine

from seatrial.analysis.fairness.differences import SideFacts, differences, side_facts
from seatrial.analysis.fairness.side import Topic, share_below
from seatrial.benchmarks import benchmark_named, declare, know_stored
from seatrial.benchmarks.declared import declared_benchmark, know_declarations
from seatrial.model.benchmark.declaration import Declaration, parameters_in
from seatrial.model.benchmark.parameter import Parameter, Value
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.spelling import settings
from seatrial.model.study.comparison import Difference
from seatrial.plan.points import resolve
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

ENVIRONMENT = {
    "name": "gcc 12 -O3",
    "compiler": {"path": "/usr/bin/g++-12", "family": "gcc", "version": "g++ 12.2.0"},
    "flags": ["-std=c++20", "-O3", "-march=znver3", *(f"-mfeature{n}" for n in range(80))],
    "target": {"march": "-march=znver3", "isa": ["avx2", "fma"], "resolution": "native", "cpu": ""},
    "libc": "glibc 2.36",
}
SEEN: dict[str, Any] = {
    "load_1m": 0.3,
    "steal_share": 0.001,
    "command": ["/cache/stream", "--record", "/r/artefacts/0123456789abcdef/0", "--cpus", "0,1", "--parent", "7"],
    "budget_s": 20.0,
    "variables": {"OMP_NUM_THREADS": "2"},
    "notes": {"huge_pages": "granted", "huge_page_fraction": 1.0, "seed": 1},
    "host": "n1",
    "affinity": [[0], [1]],
    "libs": {"libm.so.6": "aa" * 20, "libstdc++.so.6": "bb" * 20},
}


def machine(**machine_facts: str | int) -> Machine:
    base = made_up_machine(cores=2)
    return replace(base, facts=facts(**{"kernel": "6.1.0", "thp_enabled": "madvise", "load": 1, **machine_facts}))


def side(
    *,
    parameters: Mapping[str, Value] | None = None,
    benchmark: str = "memory.stream",
    on: Machine | None = None,
    environment: Mapping[str, Any] = ENVIRONMENT,
    program: str = "build-1",
    t0: float = 0.0,
    seen: Sequence[Mapping[str, Any]] | Mapping[str, Any] = SEEN,
    outcome: Outcome | None = None,
    repeats: int = 6,
) -> SideFacts:
    """One experiment with repeats that are a minute apart; `seen` for all of them, or one each."""
    on = on or machine()
    point = resolve(benchmark_named(benchmark), parameters or {}, on, named=True)
    experiment = Experiment(benchmark, point.parameters, "environment", program, "machine")
    each = [seen] * repeats if isinstance(seen, Mapping) else seen
    records = tuple(
        RepeatRecord(experiment.id, n, n, t0 + 60.0 * n, 1.0, outcome or Outcome.ok(), seen=own)
        for n, own in enumerate(each)
    )
    document = {"identity": "machine", **machine_document(on)}
    contents = Contents(
        {experiment.id: experiment},
        {experiment.id: records},
        machines={"machine": document},
        environments={"environment": environment},
    )
    return side_facts(contents, [experiment.id, "no such experiment"])


def named(found: Sequence[Difference]) -> dict[str, Difference]:
    names = {difference.what: difference for difference in found}
    assert len(names) == len(found)
    return names


def notes(**changed: Any) -> dict[str, Any]:
    return {**SEEN, "notes": {**SEEN["notes"], **changed}}


def test_a_side_is_like_itself() -> None:
    assert differences(side(), side(t0=5.0), None) == ()


def test_other_allowed_cpus_are_one_change_with_what_follows() -> None:
    """A taskset: fewer threads on fewer CPUs, and the command line that says so."""
    one = replace(machine(), allowed_cpus=(0,))
    few = {**SEEN, "affinity": [[0]], "command": [*SEEN["command"][:4], "0", *SEEN["command"][5:]]}
    found = named(differences(side(), side(on=one, seen=few), None))
    roots = [what for what, each in found.items() if each.is_unintended_cause]
    assert roots == ["fact allowed CPUs"]
    follows = {what for what, each in found.items() if each.follows_from == "fact allowed CPUs"}
    assert {"affinity", "parameter threads", "command line"} <= follows
    apart = named(differences(side(), side(seen=few), None))
    assert apart["affinity"].is_unintended_cause, "the machine allows both"
    library = {**few, "libs": {**SEEN["libs"], "libm.so.6": "cc" * 20}}
    found = named(differences(side(), side(on=one, seen=library), None))
    assert found["library libm.so.6"].is_unintended_cause and found["command line"].is_unintended_cause


def test_what_programs_inherit_is_compared() -> None:
    usual = {"nice": 0, "policy": "other", "stack_B": 8 << 20, "locked_B": None}
    other = {"nice": 5, "policy": "batch", "stack_B": None, "locked_B": None}
    found = named(differences(*(side(seen={**SEEN, "scheduling": own}) for own in (usual, other)), None))
    assert set(found) == {"scheduling nice", "scheduling class", "scheduling stack limit"}
    assert (found["scheduling stack limit"].baseline, found["scheduling stack limit"].candidate) == (
        "8 MiB",
        "unlimited",
    )
    assert differences(side(), side(seen={**SEEN, "scheduling": other}), None) == (), "an older record"


def test_the_key_of_a_build_says_nothing_beside_its_files() -> None:
    """The key of a command holds its input files: an edited script is one difference."""
    scripts = [notes(input_files={"in.txt": {"id": content}}) for content in ("aa", "bb")]
    sides = [side(seen=seen, program=f"build-{n}") for n, seen in enumerate(scripts)]
    assert set(named(differences(*sides, None))) == {"input file in.txt"}
    assert set(named(differences(side(), side(program="build-2"), None))) == {"program build"}


def test_one_neighbour_on_a_large_node_is_a_difference() -> None:
    """One CPU of 64: a small share, and yet a part of the memory bandwidth."""

    def beside(cpus: float) -> dict[str, Any]:
        used = {"others_share": cpus / 64, "others_s": cpus, "cpu_window_s": 64.0}
        return {**SEEN, **used, "busy_s": {str(cpu): 0.1 for cpu in range(64)}}

    found = named(differences(side(seen=beside(0.0)), side(seen=beside(1.0)), None))
    assert set(found) == {"CPUs used by other processes"}
    assert differences(side(seen=beside(0.0)), side(seen=beside(0.3)), None) == ()


def test_what_was_not_measured_tells_nothing() -> None:
    assert differences(side(), side_facts(Contents(), ["none"]), "threads") == ()


def test_a_side_that_was_refused_has_no_values_in_place_of_words() -> None:
    """placement=far where every node has an adapter: nodes=all was not resolved to nodes=1."""
    near, far = (side(benchmark="mpi.latency", parameters={"placement": word}) for word in ("near", "cores"))
    (experiment,) = far.experiments.values()
    refused = dataclasses.replace(experiment, parameters={**experiment.parameters, "placement": "far", "nodes": "all"})
    lost = tuple(
        dataclasses.replace(record, experiment=refused.id, outcome=Outcome.skipped("no such node"))
        for record in far.records[experiment.id][:1]
    )
    far = dataclasses.replace(far, experiments={refused.id: refused}, records={refused.id: lost})
    found = named(differences(near, far, "placement"))
    assert found["parameter placement"].intended and "parameter nodes" not in found and "outcome" in found


def test_what_changes_by_itself_is_no_difference() -> None:
    spread = random.Random(5)

    def noisy(n: int) -> list[dict[str, Any]]:
        return [
            {
                **notes(seed=spread.randrange(1 << 40), clock_Hz=spread.gauss(3e9, 1e7)),
                "load_1m": spread.uniform(0.2, 2.5),
                "steal_share": spread.uniform(0.0, 0.1),
                "command": [*SEEN["command"][:2], f"/r/artefacts/0123456789abcdef/{k}", *SEEN["command"][3:6], str(k)],
                "variables": {**SEEN["variables"], "SLURM_JOB_ID": str(k)},
            }
            for k in range(n)
        ]

    volatile = Facts({"memory_available": (Fact(1 << 30, "/proc/meminfo", volatile=True),)})
    later = Facts({"memory_available": (Fact(5 << 30, "/proc/meminfo", volatile=True),)})
    first = side(on=replace(machine(), facts=volatile), seen=noisy(10))
    assert differences(first, side(on=replace(machine(), facts=later), seen=noisy(12), t0=7.0), None) == ()


@pytest.mark.parametrize("number", [1, 6])
def test_another_library_is_always_found(number: int) -> None:
    other = {**SEEN, "libs": {**SEEN["libs"], "libm.so.6": "cc" * 20}}
    (found,) = differences(side(repeats=number), side(seen=other, repeats=number), None)
    assert found == Difference("library libm.so.6", "a" * 12, "c" * 12, False)


def test_a_library_without_a_build_id_is_another_one() -> None:
    other = {**SEEN, "libs": {**SEEN["libs"], "libm.so.6": ""}}
    (found,) = differences(side(), side(seen=other), None)
    assert (found.what, found.candidate) == ("library libm.so.6", "no id")


@pytest.mark.parametrize(
    "axis", ["threads", "huge_pages", "environment.compiler", "environment.OMP_NUM_THREADS", "label"]
)
def test_no_axis_covers_a_library_that_it_does_not_bring(axis: str) -> None:
    other = {**SEEN, "libs": {**SEEN["libs"], "libm.so.6": "cc" * 20}}
    (found,) = differences(side(), side(seen=other), axis)
    assert not found.intended


@pytest.mark.parametrize(
    ("axis", "name", "follows"),
    [
        ("environment.LD_LIBRARY_PATH", "libm.so.6", True),
        ("environment.LD_PRELOAD", "libm.so.6", True),
        ("environment.compiler", "libstdc++.so.6", True),
        ("environment.OMP_NUM_THREADS", "libstdc++.so.6", False),
    ],
)
def test_libraries_follow_from_what_chooses_them(axis: str, name: str, follows: bool) -> None:
    other = {**SEEN, "libs": {**SEEN["libs"], name: "cc" * 20}}
    (found,) = differences(side(), side(seen=other), axis)
    assert (found.intended, found.follows_from) == (follows, axis if follows else "")


def test_an_invalid_repeat_is_evidence() -> None:
    other = {**SEEN, "libs": {**SEEN["libs"], "libm.so.6": "cc" * 20}}
    found = named(
        differences(side(), side(seen=other, outcome=Outcome.invalid("library", "libm.so.6 was loaded")), None)
    )
    assert (found["outcome"].baseline, found["outcome"].candidate) == ("ok", "invalid (library)")
    assert found["library libm.so.6"].candidate == "c" * 12


def test_a_repeat_that_died_early_tells_only_that() -> None:
    died = side(seen={"load_1m": 0.3, "notes": {}}, outcome=Outcome.failed(Stage.RUN, "killed"))
    assert [difference.what for difference in differences(side(), died, None)] == ["outcome"]


def test_an_added_library_is_found_and_a_moment_is_not() -> None:
    added = {**SEEN, "libs": {**SEEN["libs"], "libhook.so": "dd" * 20}}
    (found,) = differences(side(), side(seen=added), None)
    assert (found.what, found.baseline, found.candidate) == ("library libhook.so", None, "d" * 12)
    assert differences(side(), side(seen=[added, *[SEEN] * 5]), None) == ()


def test_files_of_a_program_that_is_not_ours() -> None:
    def command(path: str, key: str) -> SideFacts:
        libraries = {"libX.so": {"path": path, "id": key}}
        return side(benchmark="command", seen=notes(libraries=libraries, libraries_seen=True))

    (found,) = differences(
        command("/a/libX.so", "aa" * 20), command("/b/libX.so", "bb" * 20), "environment.LD_LIBRARY_PATH"
    )
    assert found == Difference(
        "library libX.so",
        "/a/libX.so (aaaaaaaaaaaa)",
        "/b/libX.so (bbbbbbbbbbbb)",
        True,
        "environment.LD_LIBRARY_PATH",
    )
    assert differences(command("/a/libX.so", "aa" * 20), command("/b/libX.so", "aa" * 20), None) == ()
    assert differences(command("/a/libX.so", ""), command("/b/libX.so", ""), None)
    assert differences(command("/a/libX.so", ""), command("/a/libX.so", "aa" * 20), None) == ()  # once unreadable


ONE = {**SEEN, "affinity": [[0]], "command": [*SEEN["command"][:4], "0"]}


def test_equal_machine_code_is_said_of_programs_that_differ() -> None:
    def of(name: str, key: str, code: str | None) -> SideFacts:
        entry = {"path": f"/opt/{name}", "id": key} | ({"code": code} if code is not None else {})
        return side(benchmark="command", seen=notes(programs={name: entry}))

    rebuilt = named(differences(of("x", "1", "c"), of("x", "2", "c"), None))["program x"]
    assert (rebuilt.baseline, rebuilt.candidate) == ("/opt/x (1)", "/opt/x (2), equal machine code")
    for codes in (("c", "d"), (None, None), ("c", None)):
        other = named(differences(of("x", "1", codes[0]), of("x", "2", codes[1]), None))["program x"]
        assert other.candidate == "/opt/x (2)"
    moved = named(differences(of("x", "1", "c"), of("y", "2", "c"), None))
    assert moved["program x"].baseline == "/opt/x (1), equal machine code as y"
    assert moved["program y"].candidate == "/opt/y (2), equal machine code as x"
    assert named(differences(of("x", "1", "c"), of("y", "2", "d"), None))["program y"].candidate == "/opt/y (2)"
    hostile = side(benchmark="command", seen=notes(programs={"x": {"path": "/opt/x", "id": "2", "code": [3]}}))
    assert named(differences(of("x", "1", "c"), hostile, None))["program x"].candidate == "/opt/x (2)"


def test_one_thread_fewer_by_parameter() -> None:
    found = named(differences(side(), side(parameters={"threads": 1}, seen=ONE), "threads"))
    assert found["parameter threads"] == Difference("parameter threads", "2", "1", True)
    assert (found["affinity"].baseline, found["affinity"].candidate) == ("2 on CPUs 0-1", "1 on CPUs 0")
    assert found["affinity"].intended and found["affinity"].follows_from == "threads"
    assert found["command line"].follows_from == "threads"


@pytest.mark.parametrize("benchmark", ["mpi.allreduce", "mpi.barrier"])
def test_one_rank_more_by_parameter(benchmark: str) -> None:
    """Parameters that a benchmark drops, such as `ranks_per_node`, hide nothing that follows from the axis."""
    one, two = ({"ranks": 2, "nodes": 1}, {"ranks": 4, "nodes": 1})
    on = replace(made_up_machine(cores=4), facts=machine().facts)
    ours = side(benchmark=benchmark, parameters=one, on=on)
    more = side(benchmark=benchmark, parameters=two, on=on, seen={**SEEN, "affinity": [[0], [1], [2], [3]]})
    found = named(differences(ours, more, "ranks"))
    assert found["parameter ranks"].intended and found["affinity"].follows_from == "ranks"
    assert all(difference.intended for difference in found.values())


def test_one_thread_fewer_by_taskset() -> None:
    small = replace(machine(), allowed_cpus=(0,))
    for axis in (None, "nontemporal", "huge_pages"):
        found = named(differences(side(), side(on=small, seen=ONE), axis))
        assert {"parameter threads", "affinity", "fact allowed CPUs", "command line"} <= found.keys()
        assert not any(difference.intended for difference in found.values())


def test_an_axis_of_threads_does_not_cover_another_place() -> None:
    elsewhere = {**ONE, "affinity": [[1]]}
    found = named(differences(side(), side(parameters={"threads": 1}, seen=elsewhere), "threads"))
    assert not found["affinity"].intended and not found["command line"].intended


def test_huge_pages_off_by_parameter() -> None:
    without = side(parameters={"huge_pages": "false"}, seen=notes(huge_pages="not asked", huge_page_fraction=0.0))
    assert all(difference.intended for difference in differences(side(), without, "huge_pages"))
    found = named(differences(side(), without, "nontemporal"))
    assert not any(difference.intended for difference in found.values())
    assert found["note huge_pages"].candidate == "not asked"


def test_huge_pages_off_in_the_whole_system() -> None:
    refused = side(on=machine(thp_enabled="never"), seen=notes(huge_pages="refused", huge_page_fraction=0.0))
    found = named(differences(side(), refused, "threads"))
    assert found.keys() == {"note huge_pages", "note huge_page_fraction", "fact thp_enabled"}
    assert not any(difference.intended for difference in found.values())


def test_a_note_counts_when_most_repeats_say_so() -> None:
    granted, refused = notes(), notes(huge_pages="refused")
    assert differences(side(seen=[granted] * 6), side(seen=[refused, *[granted] * 5]), None) == ()
    (found,) = differences(side(seen=[granted] * 6), side(seen=[granted] * 2 + [refused] * 4), None)
    assert found.candidate == "refused in 4 of 6, granted in 2 of 6"


def with_governors(*governors: str) -> Machine:
    base = made_up_machine(cores=len(governors))
    given = iter(governors)
    devices = tuple(
        replace(device, facts=facts(governor=next(given))) if device.kind is DeviceKind.PU else device
        for device in base.devices
    )
    return replace(base, devices=devices)


def test_another_governor() -> None:
    first, second = with_governors("performance", "performance"), with_governors("performance", "powersave")
    (found,) = differences(side(on=first), side(on=second), None)
    assert found == Difference("fact governor (pu)", "performance", "performance: pu-0; powersave: pu-1", False)


@pytest.mark.parametrize(
    ("name", "value"),
    [("kernel", "6.1.1"), ("mitigations", "off"), ("bios_version", "2"), ("boost", 0), ("cgroup_cpu_limit", 1)],
)
def test_every_fact_of_the_machine_counts(name: str, value: str | int) -> None:
    first = machine(**({} if name == "kernel" else {name: "before" if isinstance(value, str) else 7}))
    (found,) = differences(side(on=first), side(on=machine(**{name: value})), "threads")
    assert found.what == f"fact {name}" and not found.intended


def test_what_only_root_can_read_is_not_another_machine() -> None:
    def seen_by(who: str, **more: Fact) -> Machine:
        return replace(
            machine(),
            facts=Facts({"privileges": (Fact(who, "/proc/self/status"),), **{k: (v,) for k, v in more.items()}}),
        )

    root = seen_by("root", bios_version=Fact("1", "/sys/firmware/dmi"), modules=Fact("x", "dmidecode 3.4"))
    assert differences(side(on=root), side(on=seen_by("user")), None) == ()
    (found,) = differences(
        side(on=seen_by("root", governor=Fact("x", "/sys/devices/system/cpu"))), side(on=seen_by("root")), None
    )
    assert (found.what, found.baseline, found.candidate) == ("fact governor", "x", None)


def test_another_machine() -> None:
    other = replace(made_up_machine(cores=4), name="n2", facts=machine().facts)
    gpu = Device("gpu-0", DeviceKind.GPU, "H200")
    found = named(differences(side(), side(on=replace(other, devices=(*other.devices, gpu))), None))
    assert found["host"].candidate == "n2"
    assert found["fact devices (core)"].candidate == "4 x core"
    assert (found["fact devices (gpu)"].baseline, found["fact devices (gpu)"].candidate) == (None, "1 x H200")


def test_other_flags_are_shown_by_what_differs() -> None:
    flags = [*ENVIRONMENT["flags"][:40], "-ffast-math", *ENVIRONMENT["flags"][41:]]
    found = named(differences(side(), side(environment={**ENVIRONMENT, "flags": flags}, program="build-2"), None))
    assert found["environment flags"] == Difference("environment flags", "… -mfeature37", "… -ffast-math", False)
    assert not found["program build"].intended


def test_a_compiler_brings_its_flags_and_its_build_but_no_other_libc() -> None:
    clang = {
        **ENVIRONMENT,
        "compiler": {"path": "/usr/bin/clang-14", "family": "clang", "version": "clang 14"},
        "flags": ["-O3", "-march=native"],
        "libc": "glibc 2.37",
    }
    found = named(differences(side(), side(environment=clang, program="build-2"), "environment.compiler"))
    assert found.keys() == {
        *(f"environment {name}" for name in ("compiler path", "compiler family", "compiler version", "flags", "libc")),
        "program build",
    }
    assert {name for name, difference in found.items() if not difference.intended} == {"environment libc"}
    assert found["environment flags"].follows_from == "environment.compiler"
    assert found["environment compiler family"].follows_from == ""
    first, *_ = differences(side(), side(environment=clang, program="build-2"), "environment.compiler")
    assert first.what == "environment libc"  # what nobody asked for comes first


def test_variables() -> None:
    other = {**SEEN, "variables": {"OMP_NUM_THREADS": "1", "MALLOC_ARENA_MAX": "1"}}
    chosen = {**ENVIRONMENT, "variables": {"OMP_NUM_THREADS": "1"}}
    found = named(differences(side(), side(seen=other, environment=chosen), "environment.OMP_NUM_THREADS"))
    assert found["variable OMP_NUM_THREADS"] == Difference("variable OMP_NUM_THREADS", "2", "1", True)
    assert found["variable MALLOC_ARENA_MAX"] == Difference("variable MALLOC_ARENA_MAX", None, "1", False)


@pytest.mark.parametrize(
    ("key", "low", "high", "what"),
    [
        ("load_1m", 0.3, 4.0, "load"),
        ("steal_share", 0.0, 0.2, "steal"),
        ("others_share", 0.0, 0.2, "CPU time of other processes"),
    ],
)
def test_load_and_steal_count_when_they_lie_apart(key: str, low: float, high: float, what: str) -> None:
    def at(level: float) -> list[dict[str, Any]]:
        return [{**SEEN, key: level * (1 + 0.1 * (n % 3))} for n in range(6)]

    (found,) = differences(side(seen=at(low)), side(seen=at(high)), None)
    assert found.what == what and not found.intended
    assert differences(side(seen=at(low)[:2]), side(seen=at(high)[:2]), None) == ()  # two cannot tell
    half = [*at(low)[:3], *at(high)[3:]]
    assert differences(side(seen=half), side(seen=half[::-1]), None) == ()


def test_a_program_that_is_blocked_on_one_side() -> None:
    def at(cpu_s: float, delay_s: float) -> list[dict[str, Any]]:
        used = {"cpu_s": cpu_s, "leader_cpu_s": cpu_s, "leader_delay_s": delay_s}
        return [{**SEEN, "program_s": 1.0 + 0.001 * n, "used": used} for n in range(6)]

    (found,) = differences(side(seen=at(0.98, 0.0)), side(seen=at(0.7, 0.0)), None)
    assert found.what == "time blocked (files, sockets, sleep)" and not found.intended
    assert found.candidate is not None and found.candidate.startswith("median 30 %")
    kinds = named(differences(side(seen=at(0.98, 0.0)), side(seen=at(0.7, 0.28)), None))
    assert list(kinds) == ["waiting for a CPU"]  # it could have run


def test_sides_that_were_measured_one_after_the_other() -> None:
    (found,) = differences(side(), side(t0=86400.0), "threads")
    assert found.what == "time of measurement" and not found.intended
    assert found.baseline == "1970-01-01 00:00:00 to 00:05:00 UTC (6 repeats)"
    assert differences(side(), side(t0=30.0), None) == ()  # side by side
    assert differences(side(repeats=1), side(repeats=1, t0=60.0), None) == ()  # one pair, one right after the other
    assert differences(side(repeats=1), side(repeats=1, t0=86400.0), None)


def test_a_parameter_that_the_axis_brings_along() -> None:
    big = made_up_machine(cores=4)

    def at(threads: int, **more: int) -> SideFacts:
        seen = {**SEEN, "affinity": [[cpu] for cpu in range(threads)]}
        return side(benchmark="cpu.linebounce", parameters={"threads": threads, **more}, on=big, seen=seen)

    found = named(differences(at(2), at(4), "threads"))
    assert (found["parameter pairs"].candidate, found["parameter pairs"].follows_from) == ("6", "threads")
    found = named(differences(at(2), at(4, pairs=3), "threads"))
    assert not found["parameter pairs"].intended


def test_what_is_intended_at_one_point_covers_nothing_at_another() -> None:
    def both(second: Mapping[str, Any]) -> SideFacts:
        parts = [side(parameters={"nontemporal": "false"}), side(parameters={"nontemporal": "true"}, seen=second)]
        return SideFacts(
            {key: item for part in parts for key, item in part.experiments.items()},
            {key: item for part in parts for key, item in part.records.items()},
            parts[0].environments,
            parts[0].machines,
        )

    other = {**SEEN, "libs": {**SEEN["libs"], "libm.so.6": "cc" * 20}}
    (found,) = differences(both(SEEN), both(other), "threads")
    assert found.what == "library libm.so.6"
    swapped = side(parameters={"nontemporal": "true"})
    assert any(
        d.what == "experiment memory.stream" or d.what == "parameter nontemporal"
        for d in differences(both(SEEN), swapped, None)
    )


def test_hostile_and_damaged_records_do_no_harm() -> None:
    odd: dict[str, Any] = {
        "notes": {"huge_pages": {"a": [1, {"b": None}]}, "libraries": "no mapping", "programs": {"x": 5}},
        "affinity": "none",
        "command": "text",
        "variables": {"OMP_PLACES": "<script>" * 500},
        "load_1m": None,
        "libs": {},
    }
    found = differences(side(), side(seen=odd), "threads")
    assert found and all(len(text) <= 110 for d in found for text in (d.baseline, d.candidate) if text)
    broken = side()
    broken = replace(broken, machines={"machine": {"schema": "nonsense"}}, environments={})
    differences(side(), broken, "threads")


# --- real runs -----------------------------------------------------------------------------------------------------


def run(folder: Path, *arguments: str, before: Sequence[str] = (), **variables: str) -> SideFacts:
    """What `seatrial run` leaves in a folder, as a side."""
    command = [*before, sys.executable, "-m", "seatrial", "run", *arguments, "--results", str(folder)]
    subprocess.run(command, check=False, capture_output=True, timeout=300, env={**os.environ, **variables})
    contents = read_contents(ResultsFolder.existing(folder))
    assert contents.experiments
    return side_facts(contents, contents.experiments)


@pytest.mark.real
@pytest.mark.lab
def test_real_runs_differ_in_time_alone_or_not_at_all(tmp_path: Path) -> None:
    first, second = (run(tmp_path / name, "command", "--budget", "1s") for name in "ab")
    changing = {Topic.TIME, Topic.LOAD, Topic.STEAL, Topic.OTHERS, Topic.OTHERS_CPUS, Topic.DELAY, Topic.BLOCKED}
    assert {difference.what for difference in differences(first, second, None)} <= {topic.value for topic in changing}


@pytest.mark.real
@pytest.mark.lab
def test_a_real_library_by_its_path(tmp_path: Path, live_machine: Machine) -> None:
    library = next(
        Path(line.split()[2])
        for line in subprocess.run(["ldd", sys.executable], capture_output=True, text=True).stdout.splitlines()
        if "libm.so" in line
    )
    (tmp_path / "other").mkdir()
    planted = tmp_path / "other" / library.name
    shutil.copy(library, planted)
    subprocess.run(["objcopy", "--remove-section=.note.gnu.build-id", str(planted)], check=True)
    first = run(tmp_path / "a", "cpu.peak", "--budget", "1s")
    second = run(tmp_path / "b", "cpu.peak", "--budget", "1s", LD_LIBRARY_PATH=str(planted.parent))
    found = named(differences(first, second, None))
    assert not found["library libm.so.6"].intended
    assert found["outcome"].candidate == "invalid (library)"
    assert found["variable LD_LIBRARY_PATH"].candidate is not None


@pytest.mark.real
@pytest.mark.lab
def test_a_real_taskset(tmp_path: Path, live_machine: Machine, need: Any) -> None:
    if len(live_machine.allowed_cpus) < 2:
        pytest.skip("needs two CPUs")
    taskset = need("taskset", "apt install util-linux")
    first = run(tmp_path / "a", "command", "--budget", "1s")
    second = run(tmp_path / "b", "command", "--budget", "1s", before=(taskset, "-c", str(live_machine.allowed_cpus[0])))
    found = named(differences(first, second, "argv"))
    assert not any(found[what].intended for what in ("affinity", "parameter cpus", "fact allowed CPUs"))


@given(*(st.lists(st.integers(0, 5).map(float), min_size=1, max_size=9) for _ in range(2)))
def test_the_share_below_counts_ties_half(first: list[float], second: list[float]) -> None:
    pairs = [(a < b) + (a == b) / 2 for a in first for b in second]
    assert share_below(first, second) == pytest.approx(sum(pairs) / len(pairs))


def test_the_share_below_of_very_many_repeats_makes_no_list_of_pairs() -> None:
    assert share_below([0.0] * 200_000, [0.0, 1.0] * 100_000) == 0.75


@pytest.fixture(params=["declared", "stored"])
def chosen(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A benchmark of the user whose program, variable and arguments depend on a parameter."""
    declaration = Declaration(
        "st",
        "How fast?",
        ("./st-{flags}", "in-{flags}.dat"),
        (Parameter.text("flags", "O2", "of the compiler"), Parameter.text("other", "a", "nothing")),
        variables=(("SPEED", "{flags}"), ("FIXED", "1")),
    )
    if request.param == "declared":
        declare([declared_benchmark(declaration, tmp_path)])
    else:
        know_declarations([{"declaration": declaration.stored()}])
    yield declaration.full_name
    declare([])
    know_stored([])


def _started(flags: str) -> dict[str, Any]:
    words = ["--words", "2", "--word-0", f"/home/me/st-{flags}", "--word-1", f"in-{flags}.dat"]
    files = {
        "programs": {f"st-{flags}": {"path": f"/home/me/st-{flags}", "id": flags * 8}},
        "libraries": {f"lib{flags}.so": {"path": f"/lib/lib{flags}.so", "id": flags * 9}},
        "input_files": {f"in-{flags}.dat": {"path": f"in-{flags}.dat", "id": flags * 7}},
    }
    return {
        **SEEN,
        "command": ["/cache/command", "--record", "/r/artefacts/0123456789abcdef/0", *words],
        "variables": {"SPEED": flags, "OMP_NUM_THREADS": "2"},
        "notes": {**SEEN["notes"], **files},
    }


def test_what_follows_from_a_parameter_in_the_command_is_intended(chosen: str) -> None:
    first, second = (
        side(benchmark=chosen, parameters={"flags": flags}, program=f"build-{flags}", seen=_started(flags))
        for flags in ("O0", "O2")
    )
    found = named(differences(first, second, "flags"))
    assert {"program st-O0", "library libO2.so", "input file in-O2.dat"} < set(found)
    assert [one.what for one in found.values() if not one.intended] == []
    assert found["variable SPEED"].follows_from == "flags"
    command = found["command line"]
    assert (command.baseline, command.candidate) == ("./st-O0 in-O0.dat", "./st-O2 in-O2.dat")  # as declared
    by_other = named(differences(first, second, "other"))
    assert not by_other["program st-O2"].intended and not by_other["variable SPEED"].intended


def test_commands_are_printed_as_typed() -> None:
    one, other = (
        side(benchmark="command", parameters={"argv": ("./app", words)}, seen=_started("O2"), t0=n)
        for n, words in enumerate(("a b", "c"))
    )
    assert "command line" not in named(differences(one, other, None))  # the program itself was started alike
    assert settings({"argv": ("./app", "a b"), "warmup": 1}) == "warmup=1 -- ./app 'a b'"


def test_a_stored_command_may_be_damaged() -> None:
    assert parameters_in(["./st-{flags}", "{a}-{open", "}", "{{x}}"]) == {"flags", "a"}
