"""Layouts of ranks: no CPU twice, whole cores, beside the GPU, nothing left over."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.made_up_nodes import beside, cpu_tree, gpu, matrix, nic
from hypothesis import assume, given
from hypothesis import strategies as st

from seatrial.analysis.rank_layout import RankLayout, rank_layout, usable_cores
from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.machine.machine import DeviceKind, Machine


def cores_of(machine: Machine) -> dict[str, set[int]]:
    """Core -> its CPUs that may be used."""
    found: dict[str, set[int]] = {}
    for cpu, pu in machine.pus.items():
        if not machine.allowed_cpus or cpu in machine.allowed_cpus:
            found.setdefault(pu.parent or "", set()).add(cpu)
    return found


@st.composite
def machines(draw: st.DrawFn, *, with_gpus: bool) -> Machine:
    nodes, cores = draw(st.integers(1, 4)), draw(st.integers(1, 6))
    packages = draw(st.integers(1, nodes))
    tree = cpu_tree(nodes, cores, draw(st.integers(1, 3)), packages=packages, interleaved=draw(st.booleans()))
    places = draw(st.lists(st.integers(0, nodes - 1), min_size=1, max_size=6)) if with_gpus else []
    machine = Machine("m", (*tree, *(gpu(f"gpu-{k}", place) for k, place in enumerate(places))))
    numbers = sorted(machine.pus)
    allowed = draw(st.one_of(st.just([]), st.lists(st.sampled_from(numbers), min_size=1, unique=True)))
    return replace(machine, allowed_cpus=tuple(sorted(allowed)))


def check_whole(machine: Machine, layout: RankLayout, n: int) -> None:
    """What holds for every layout."""
    assert [place.rank for place in layout.places] == list(range(n))
    seen: set[int] = set()
    whole = cores_of(machine)
    for place in layout.places:
        cpus = set(place.cpus)
        assert cpus and not cpus & seen, "no CPU twice"
        assert not machine.allowed_cpus or cpus <= set(machine.allowed_cpus)
        assert all(core <= cpus or not core & cpus for core in whole.values()), "siblings stay together"
        if place.numa is not None:
            assert all(machine.pus[cpu].numa == place.numa for cpu in cpus)
        seen |= cpus


@given(machines(with_gpus=False), st.integers(1, 12))
def test_without_gpus_every_core_is_used_once(machine: Machine, n: int) -> None:
    assume(n <= len(cores_of(machine)))
    layout = rank_layout(machine, n)
    check_whole(machine, layout, n)
    assert {cpu for place in layout.places for cpu in place.cpus} == set(machine.allowed_cpus or machine.pus)


@given(machines(with_gpus=True), st.integers(1, 12))
def test_with_gpus_every_rank_stands_on_the_node_of_its_gpu(machine: Machine, n: int) -> None:
    assume(n <= len(cores_of(machine)))
    gpus = {device.id: device.numa for device in machine.of_kind(DeviceKind.GPU)}
    try:
        layout = rank_layout(machine, n)
    except UsageError as error:
        assert "do not fit next to the GPUs" in str(error)
        return
    check_whole(machine, layout, n)
    used = [place.gpu for place in layout.places]
    if None in used:  # no CPU beside one of them may be used
        assert set(used) == {None} and "no GPU is assigned" in layout.how
        return
    assert len(set(used)) == min(n, len(gpus)), "each GPU before any is shared"
    for place in layout.places:
        assert place.gpu is not None and place.numa == gpus[place.gpu]
    nodes = [gpus[name] for name in used if name is not None]
    assert nodes == sorted(nodes, key=lambda number: (number is None, number)), "neighbours stand together"
    given_out = {cpu for place in layout.places for cpu in place.cpus}
    beside_them = {cpu for cpu, pu in machine.pus.items() if pu.numa in nodes}
    assert given_out == beside_them & set(machine.allowed_cpus or machine.pus), "no core is left idle there"


@given(machines(with_gpus=False), st.integers(1, 12))
def test_the_commands_say_what_the_places_say(machine: Machine, n: int) -> None:
    assume(n <= len(cores_of(machine)))
    layout = rank_layout(machine, n)
    cpus = [set(place.cpus) for place in layout.places]
    masks = re.search(r"mask_cpu:(\S+)", layout.srun or "")
    assert masks and [bits(int(mask, 16)) for mask in masks[1].split(",")] == cpus
    users = re.search(r"user:(\S+)", layout.mpich)
    assert users and [{int(cpu) for cpu in rank.split("+")} for rank in users[1].split(",")] == cpus
    each = layout.mpirun.removeprefix("mpirun --bind-to none ").split(" : ")
    nodes = {node.numa: node for node in machine.of_kind(DeviceKind.NUMA)}
    for command, own in zip(each, cpus, strict=True):
        words = shlex.split(command)
        assert words[:3] == ["-n", "1", "numactl"] and words[-1] == "PROGRAM"
        option, _, told = words[3].partition("=")
        if option == "--cpunodebind":
            assert {cpu for cpu, pu in machine.pus.items() if pu.numa == nodes[int(told)].numa} == own
        else:
            assert option == "--physcpubind" and numbers(told) == own


@given(machines(with_gpus=False), st.integers(1, 12))
def test_slots_of_a_rankfile_are_cores_in_the_order_of_the_tree(machine: Machine, n: int) -> None:
    assume(n <= len(cores_of(machine)))
    layout = rank_layout(machine, n)
    if machine.allowed_cpus and len(machine.allowed_cpus) < len(machine.pus):
        assert layout.rankfile is None, "Open MPI counts the cores that are left"
        return
    ids = [core.id for core in machine.of_kind(DeviceKind.CORE)]
    lines = (layout.rankfile or "").splitlines()
    assert lines[0].startswith(f"# mpirun -n {n} --rankfile")
    for place, line in zip(layout.places, lines[1:], strict=True):
        match = re.fullmatch(r"rank (\d+)=localhost slot=(\S+)", line)
        assert match and int(match[1]) == place.rank
        cores = {ids[slot] for slot in numbers(match[2])}
        assert {cpu for cpu, pu in machine.pus.items() if pu.parent in cores} == set(place.cpus)


def bits(mask: int) -> set[int]:
    return {bit for bit in range(mask.bit_length()) if mask >> bit & 1}


def numbers(told: str) -> set[int]:
    found: set[int] = set()
    for run in told.split(","):
        first, _, last = run.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def test_eight_gpus_of_two_sockets() -> None:
    gpus = [gpu(f"gpu-{k}", k // 4) for k in range(8)]
    adapters = [nic(f"mlx5_{k}") for k in range(4)]
    near = {(f"gpu-{k}", f"mlx5_{k // 2}"): "PIX" for k in range(8)}
    names = [device.id for device in (*gpus, *adapters)]
    node = Machine("m", (*cpu_tree(2, 16, 2), *gpus, *adapters), paths=matrix(names, near))
    places = rank_layout(node, 8).places
    assert [place.gpu for place in places] == [f"gpu-{k}" for k in range(8)]
    assert [place.adapter for place in places] == [f"mlx5_{k // 2}" for k in range(8)]
    assert places[0].cpus == (0, 1, 2, 3, 32, 33, 34, 35) and places[7].cpus == (28, 29, 30, 31, 60, 61, 62, 63)
    shared = rank_layout(node, 16).places
    assert [place.gpu for place in shared] == [f"gpu-{k // 2}" for k in range(16)]


def test_adapters_that_are_equally_near_take_turns() -> None:
    adapters = (nic("mlx5_0", 0), nic("mlx5_1", 0), nic("eth0", 0), nic("mlx5_2", 1))
    places = rank_layout(Machine("m", (*cpu_tree(2, 4, 1), *adapters)), 8).places
    assert [place.adapter for place in places] == [*["mlx5_0", "mlx5_1"] * 2, *["mlx5_2"] * 4]


def test_lists_that_overlap_share_their_cores_without_giving_one_twice() -> None:
    gpus = (gpu("gpu-0"), gpu("gpu-1"))
    near = (beside("gpu-0", (0, 1, 2, 3)), beside("gpu-1", (0, 1)))
    given_machine = Machine("m", (*cpu_tree(1, 4, 1), *gpus), affinity=near)
    check_whole(given_machine, rank_layout(given_machine, 2), 2)


def test_gpus_without_cpus_are_not_assigned() -> None:
    layout = rank_layout(Machine("m", (*cpu_tree(), gpu("gpu-0"))), 2)
    assert [place.gpu for place in layout.places] == [None, None] and "no GPU is assigned" in layout.how


def test_fewer_ranks_than_nodes_take_whole_nodes() -> None:
    places = rank_layout(Machine("m", cpu_tree(4, 2, 1, packages=2)), 2).places
    assert [place.cpus for place in places] == [(0, 1, 2, 3), (4, 5, 6, 7)]
    assert [place.numa for place in places] == [None, None]


def test_cpus_without_cores_are_cores_of_their_own() -> None:
    tree = tuple(replace(d, parent=None) for d in cpu_tree(1, 2, 2) if d.kind is DeviceKind.PU)
    bare = Machine("m", tree)
    assert [core.index for core in usable_cores(bare)] == [None] * 4
    assert rank_layout(bare, 4).rankfile is None


@pytest.mark.parametrize(
    ("machine", "n", "words"),
    [
        (Machine("m"), 1, "the CPUs of this machine are unknown"),
        (Machine("m", cpu_tree(1, 4, 2)), 5, "4 cores may be used"),
        (Machine("m", cpu_tree(1, 4, 2), allowed_cpus=(0, 1, 4)), 3, "2 cores may be used"),
        (Machine("m", cpu_tree()), 0, "at least 1 rank"),
        (Machine("m", (*cpu_tree(2, 2, 1), gpu("gpu-0", 0))), 3, "do not fit next to the GPUs"),
    ],
)
def test_what_does_not_fit_is_said(machine: Machine, n: int, words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        rank_layout(machine, n)
    assert caught.value.todo


TELL = """
import json, os, pathlib, sys
rank = os.environ["{rank}"]
pathlib.Path(sys.argv[1], rank).write_text(json.dumps([rank, sorted(os.sched_getaffinity(0))]))
"""
"""Each rank writes a file of its own: launchers pass on what ranks print as it comes, and not always by lines."""


def told_in(folder: Path) -> dict[int, list[int]]:
    """What the ranks wrote: rank -> CPUs."""
    return {int(rank): cpus for rank, cpus in (json.loads(file.read_text()) for file in folder.iterdir())}


@pytest.mark.real
@pytest.mark.parallel
@pytest.mark.parametrize(("library", "variable"), [("openmpi", "OMPI_COMM_WORLD_RANK"), ("mpich", "PMI_RANK")])
def test_the_launchers_put_each_rank_where_the_layout_says(library: str, variable: str, tmp_path: Path) -> None:
    launcher = shutil.which("mpirun.openmpi" if library == "openmpi" else "mpiexec.mpich")
    if launcher is None or (library == "openmpi" and shutil.which("numactl") is None):
        pytest.skip(f"needs {library} (and numactl for Open MPI) from Debian's packages")
    layout = rank_layout(discover_live(use_hwloc=False), min(2, len(usable_cores(discover_live(use_hwloc=False)))))
    command = shlex.split(layout.mpirun if library == "openmpi" else layout.mpich)
    program = [sys.executable, "-c", TELL.replace("{rank}", variable), str(tmp_path)]
    full = [word for given_word in command[1:] for word in (program if given_word == "PROGRAM" else [given_word])]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run([launcher, *full], capture_output=True, text=True, timeout=60, env={**os.environ, **as_root})
    if "set_mempolicy" in done.stderr:
        pytest.skip("this container may not bind memory")
    assert done.returncode == 0, done.stderr
    assert told_in(tmp_path) == {place.rank: list(place.cpus) for place in layout.places}


@pytest.mark.real
@pytest.mark.parallel
def test_open_mpi_reads_the_rankfile(tmp_path: Path) -> None:
    launcher = shutil.which("mpirun.openmpi")
    layout = rank_layout(discover_live(use_hwloc=False), 1)
    if launcher is None or layout.rankfile is None:
        pytest.skip("needs Open MPI, and all CPUs of the machine")
    file = tmp_path / "ranks"
    file.write_text(layout.rankfile, encoding="utf-8")
    told = tmp_path / "told"
    told.mkdir()
    program = [sys.executable, "-c", TELL.replace("{rank}", "OMPI_COMM_WORLD_RANK"), str(told)]
    as_root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(
        [launcher, "-n", "1", "--rankfile", str(file), *program],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **as_root},
    )
    assert done.returncode == 0, done.stderr
    assert told_in(told) == {0: list(layout.places[0].cpus)}
