"""Tables in the node's folder and the collector, which moves them to their target however the program ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import Seen, profiler, seen

import seatrial
from seatrial.diagnosis.diagnose import diagnosed_profiles as profiles
from seatrial.environments.compiler import compiler_named, find_compilers, first_compiler
from seatrial.environments.loader import build_program, c_compiler
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import SHARED_SOURCES, build_collector, profiler_variables
from seatrial.profiler.tables.header import ProcessState
from seatrial.profiler.tables.io_samples import read_io_samples
from seatrial.profiler.tables.process_table import read_table
from seatrial.stats.bursts import recurring
from seatrial.store.cache import cache_folder

pytestmark = pytest.mark.real

NATIVE = Path(seatrial.__file__).parent / "profiler" / "native"
SOURCE = Path(__file__).with_name("mpi_node_program.c")
TWO = FOUR[:2]
ROOT_MAY = {f"OMPI_ALLOW_RUN_AS_ROOT{confirm}": "1" for confirm in ("", "_CONFIRM")}
ENDED_S = 8.0
"""The collector waits for three seconds for another program, and looks twice a second."""
HURRIED = {"grace_s = 3;": "grace_s = 0.6;", "max_wait_s = 0.5;": "max_wait_s = 0.1;"}


@cache
def collector() -> Path:
    return build_collector(first_compiler())


@cache
def hurried_collector() -> Path:
    """One that waits less, where how long it waits is not the point."""
    folder = Path(shutil.copytree(NATIVE / "collector", cache_folder() / f"hurried-collector-{os.getpid()}"))
    text = (folder / "collector.c").read_text()
    for usual, less in HURRIED.items():
        assert text.count(usual) == 1
        text = text.replace(usual, less)
    (folder / "collector.c").write_text(text)
    shared = (path for path in NATIVE.glob("*.c") if path.name in SHARED_SOURCES)
    return build_program("seatrial-collector", first_compiler(), [*sorted(folder.glob("*.c")), *shared])


@cache
def program(mpi: Mpi) -> Path:
    made = cache_folder() / f"node-{mpi.build_id.replace(':', '-')}-{os.getpid()}"
    command = (*c_compiler(first_compiler()), "-O1", "-w", *mpi.compile_flags, str(SOURCE))
    subprocess.run([*command, "-o", str(made), *mpi.link_flags], check=True)
    return made


class Node:
    """A folder on the node's memory file system, and the one where tables belong."""

    def __init__(self, tmp_path: Path) -> None:
        self.collector = hurried_collector()
        self.final = tmp_path / "final"
        self.final.mkdir()
        self.folder = Path(f"/dev/shm/seatrial-test-{os.getpid()}-{time.monotonic_ns()}")

    def command(self, mpi: Mpi, *arguments: str, ranks: int = 2, io_s: float = 0.0, **changed: str) -> list[str]:
        variables = profiler_variables(
            profiler(), self.final, {}, node_folder=str(self.folder), collector=self.collector, io_s=io_s
        )
        preload = [f"{name}={value}" for name, value in {**variables, **changed}.items()]
        alone = [shutil.which("env") or "env", *preload, str(program(mpi)), *arguments]
        return alone if ranks == 0 else [str(mpi.launcher), "-n", str(ranks), *alone]

    def run(self, mpi: Mpi, *arguments: str, may_fail: bool = False, ranks: int = 2, **changed: str) -> str:
        command = self.command(mpi, *arguments, ranks=ranks, **changed)
        ended = subprocess.run(command, env=environment(mpi), capture_output=True, text=True, timeout=60)
        assert may_fail or ended.returncode == 0, ended.stderr
        return ended.stdout + ended.stderr

    def wait(self) -> None:
        """Until the collector has ended, which takes the folder away."""
        until(lambda: not self.folder.exists() and not self.collectors(), ENDED_S)
        assert not list(self.final.glob("*.collecting")) and not list(self.final.glob(".*"))

    def collectors(self) -> list[int]:
        return [pid for pid in numbers() if str(self.folder) in arguments_of(pid) and "collector" in arguments_of(pid)]

    def tables(self) -> list[Seen]:
        return sorted((seen(path) for path in self.final.glob("*.mpi")), key=lambda one: one.rank)


def environment(mpi: Mpi) -> dict[str, str]:
    return {**os.environ, **ROOT_MAY, "OMPI_MCA_rmaps_base_oversubscribe": "1", **dict(mpi.variables)}


def numbers() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def arguments_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0", 3)[0:2].__repr__()
    except OSError:
        return ""


def until(is_so: Callable[[], bool], limit_s: float) -> None:
    end = time.monotonic() + limit_s
    while not is_so():
        assert time.monotonic() < end, "it did not come in time"
        time.sleep(0.02)


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    made = Node(tmp_path)
    yield made
    if made.folder.is_symlink():
        made.folder.unlink()
    shutil.rmtree(made.folder, ignore_errors=True)


@pytest.mark.parametrize("name", FOUR)
def test_finished_tables_are_where_they_belong(name: str, node: Node) -> None:
    if name == FOUR[0]:
        node.collector = collector()  # as everybody has it
    node.run(library(name), "plain")
    for one in node.tables():  # at once: the ranks themselves brought them
        assert one.calls["MPI_Allreduce"] == (1000, 8000) and one.state is ProcessState.FINALIZED
        assert one.calls["MPI_Finalize"] == one.calls["MPI_Finalized"] == (1, 0), "what came after it too"
    assert [one.rank for one in node.tables()] == [0, 1]
    node.wait()
    assert len(list(node.final.iterdir())) == 2


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("way", ["killed", "aborted", "left", "killed_late"])
def test_no_end_of_a_program_loses_a_call(name: str, way: str, node: Node) -> None:
    node.run(library(name), way, may_fail=True)
    node.wait()
    assert [one.rank for one in node.tables()] == [0, 1]
    states = {one.state for one in node.tables()}
    for one in node.tables():
        assert one.calls["MPI_Allreduce"] == (1000, 8000)
        assert way != "killed_late" or one.calls["MPI_Finalized"] == (1, 0)
    expected = {
        "killed": {ProcessState.INITIALIZED},
        "left": {ProcessState.INITIALIZED},
        "killed_late": {ProcessState.FINALIZED},
    }
    assert states == expected.get(way, states) and (way != "aborted" or ProcessState.ABORTED in states)


@pytest.mark.parametrize("name", TWO)
def test_a_rank_that_waits_for_all_its_children_does_not_meet_the_collector(name: str, node: Node) -> None:
    said = node.run(library(name), "waiting")
    assert said.count("1 children, No child processes") == 2
    node.wait()


def test_one_collector_a_node_which_copies_when_asked_to_end(node: Node) -> None:
    mpi = library("mpich")
    with subprocess.Popen(node.command(mpi, "resting", "2.5"), env=environment(mpi)) as running:
        until(lambda: len(list(node.folder.glob("*.mpi"))) == 2 and bool(list(node.final.glob("*.collecting"))), 20)
        until(lambda: len(node.collectors()) == 1, 5)
        (first,) = node.collectors()
        status = Path(f"/proc/{first}/status").read_text()
        assert os.getsid(first) == first and "\nTracerPid:\t0" in status
        assert Path(f"/proc/{first}/stat").read_text().rsplit(")", 1)[1].split()[16] == "10", "a low priority"
        targets = {str(Path(f"/proc/{first}/fd/{n}").readlink()) for n in (0, 1, 2)}
        assert targets == {"/dev/null"}, "it holds no end of the program's pipes"
        again = [str(node.collector), str(node.folder), str(node.final), "60", "0"]
        assert subprocess.run(again, timeout=10).returncode == 1 and node.collectors() == [first]
        assert not list(node.final.glob("*.mpi"))
        os.kill(first, signal.SIGTERM)
        until(lambda: len(list(node.final.glob("*.mpi"))) == 2, 2)
        assert {one.state for one in node.tables()} == {ProcessState.INITIALIZED} and node.collectors() == [first]
        assert running.wait(30) == 0
    node.wait()
    assert {one.state for one in node.tables()} == {ProcessState.FINALIZED}
    assert all(one.calls["MPI_Finalized"] == (1, 0) for one in node.tables()), "the last word is that of the process"


def test_a_collector_that_was_killed_is_followed_by_another(node: Node) -> None:
    mpi = library("mpich")
    with subprocess.Popen(node.command(mpi, "resting", "1"), env=environment(mpi)) as running:
        until(lambda: len(node.collectors()) == 1, 20)
        os.kill(node.collectors()[0], signal.SIGKILL)
        assert running.wait(30) == 0
    (lock,) = node.folder.glob("*.collector")
    os.utime(lock, (1, 1))
    node.run(mpi, "killed", may_fail=True)
    node.wait()
    assert len(node.tables()) == 4


def test_a_folder_taken_away_ends_the_collector(node: Node) -> None:
    mpi = library("mpich")
    with subprocess.Popen(node.command(mpi, "resting", "1"), env=environment(mpi)) as running:
        until(lambda: len(node.collectors()) == 1 and len(list(node.folder.glob("*.mpi"))) == 2, 20)
        shutil.rmtree(node.folder)
        until(lambda: not node.collectors(), 3)
        assert running.wait(30) == 0
    # The ranks have their tables in memory. One that ends late starts a collector anew, which may still be at work.
    until(lambda: {one.state for one in node.tables()} == {ProcessState.FINALIZED}, 20)
    until(lambda: not list(node.final.glob("*.collecting")), 20)


def test_programs_that_follow_each_other_in_one_process_stay_apart(node: Node) -> None:
    node.run(library("mpich"), "followed", ranks=0)
    node.wait()
    assert sorted(path.stem.count("-") for path in node.final.glob("*.mpi")) == [1, 2]
    assert all(one.calls["MPI_Allreduce"] == (1000, 8000) for one in node.tables())


def unusable(kind: str, node: Node, tmp_path: Path) -> str:
    if kind == "link":
        node.folder.symlink_to(tmp_path)
    elif kind == "open to others":
        node.folder.mkdir()
        node.folder.chmod(0o777)
    elif kind == "another user's":
        if os.geteuid() != 0:
            pytest.skip("needs root, to give a folder away")
        node.folder.mkdir(mode=0o700)
        os.chown(node.folder, 65534, 65534)
    elif kind == "no folder":
        node.folder.write_text("")
    else:
        node.folder = Path("/proc/seatrial")
    return {"no parent": "No such file or directory"}.get(kind, "Operation not permitted")


@pytest.mark.parametrize("kind", ["link", "open to others", "another user's", "no folder", "no parent"])
def test_without_the_nodes_folder_tables_live_where_they_belong(kind: str, node: Node, tmp_path: Path) -> None:
    reason = unusable(kind, node, tmp_path)
    folder = node.folder
    said = node.run(library("mpich"), "plain")
    assert said.count("seatrial: cannot use") == 1 and f"cannot use {folder}: {reason}" in said
    assert [one.state for one in node.tables()] == [ProcessState.FINALIZED] * 2
    if kind != "no parent":
        folder.chmod(0o700) if folder.is_dir() and not folder.is_symlink() else folder.unlink()


@pytest.mark.parametrize("options", ["size=200k", "ro"])
def test_a_full_or_read_only_folder_is_not_used(options: str, node: Node, tmp_path: Path) -> None:
    mounted = tmp_path / "node"
    mounted.mkdir(mode=0o700)
    node.folder = mounted
    mount = f'mount -t tmpfs -o mode=700,{options} none {mounted} && exec "$@"'
    alone = ["unshare", "-m", "sh", "-c", mount, "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    command = [*alone, *node.command(library("mpich"), "plain")]
    ended = subprocess.run(command, env=environment(library("mpich")), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0 and ended.stderr.count("cannot use") == 1, ended.stderr
    assert [one.calls["MPI_Allreduce"] for one in node.tables()] == [(1000, 8000)] * 2


def test_what_cannot_be_delivered_stays_and_is_said(node: Node) -> None:
    mpi = library("mpich")
    with subprocess.Popen(
        node.command(mpi, "resting", "1"), env=environment(mpi), stderr=subprocess.PIPE, text=True
    ) as running:
        until(lambda: len(list(node.folder.glob("*.mpi"))) == 2, 20)
        shutil.rmtree(node.final)
        said = running.communicate(timeout=30)[1]
    assert running.returncode == 0 and said.count("stays in") == 2
    until(lambda: not node.collectors(), ENDED_S)
    assert len(list(node.folder.glob("*.mpi"))) == 2
    node.final.mkdir()


def test_a_collector_that_is_not_there_is_said_and_costs_nothing(node: Node, tmp_path: Path) -> None:
    said = node.run(library("mpich"), "plain", SEATRIAL_PROFILE_COLLECTOR=str(tmp_path / "none"))
    assert 1 <= len(re.findall(r"cannot start .*: No such file", said)) <= 2  # two ranks may try at the same time
    assert len(node.tables()) == 2 and not list(node.folder.iterdir()) and len(list(node.final.iterdir())) == 2


def test_a_limit_on_files_costs_the_table_and_not_the_program(node: Node) -> None:
    command = ["sh", "-c", 'ulimit -f 120000; exec "$@"', "sh", *node.command(library("mpich"), "limited")]
    ended = subprocess.run(command, env=environment(library("mpich")), capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    assert "is not recorded" in ended.stderr and "File too large" in ended.stderr


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_no_compiler_has_anything_to_say_of_the_collector(name: str) -> None:
    if not any(Path(compiler.command[0]).name == name for compiler in find_compilers()):
        pytest.skip(f"needs {name}")
    command = (*c_compiler(compiler_named(name)), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")
    sources = (str(path) for path in (NATIVE / "collector").glob("*.c"))
    subprocess.run([*command, "-fsyntax-only", f"-I{NATIVE}", *sources], check=True)


@pytest.mark.quiet
@pytest.mark.parametrize("name", TWO)
def test_input_and_output_over_time(name: str, node: Node, tmp_path: Path) -> None:
    """All read 8 MiB at the start, and rank 0 writes 1 MiB five times."""
    file, mib = tmp_path / "data", 1 << 20
    file.write_bytes(os.urandom(8 * mib))
    command = node.command(library(name), "files", str(file), "5", "0.4", io_s=0.05)
    subprocess.run(command, env=environment(library(name)), check=True, timeout=60)
    node.wait()
    names = function_names()
    tables = [read_table(path, len(names)) for path in node.final.glob("*.mpi")]
    (samples,) = (read_io_samples(path) for path in node.final.glob("*.io"))
    assert {(one.pid, one.rank) for one in samples.ranks} == {(one.pid, one.rank) for one in tables}
    io = profiles(tables, names, samples=[samples])[0].io
    assert io is not None and io.bins > 20 and len(io.nodes) == 1
    for rank, totals in io.known:
        assert totals.is_to_end and totals.start_read_B > 1000
        assert 8 * mib <= totals.read_B < 8 * mib + 100_000, "the profiler's own copy is not in it"
        assert 5 * mib * (rank == 0) <= totals.written_B < 5 * mib * (rank == 0) + 100_000
    assert sum(io.over_time("written_B")) == pytest.approx(io.total("written_B"), abs=1)
    apart = recurring(io.over_time("written_B"))
    assert apart is not None and apart[0] == 5 and apart[1] * io.width_s == pytest.approx(0.4, abs=0.15)


def test_samples_halve_when_there_is_no_more_room(node: Node) -> None:
    mpi = library("mpich")
    subprocess.run(node.command(mpi, "resting", "7", io_s=0.01), env=environment(mpi), check=True, timeout=60)
    node.wait()
    (samples,) = (read_io_samples(path) for path in node.final.glob("*.io"))
    # 700 samples; half as many on a machine so busy that each is late by a period, more where the ranks start slowly.
    assert samples.period_s in (0.02, 0.04) and 256 <= len(samples.at_s) < 512
    gaps = samples.at_s[1:] - samples.at_s[:-1]
    assert (gaps > 0).all() and sorted(gaps)[len(gaps) // 2] > 0.7 * samples.period_s
    known = [one.counters[:, 0][~(one.counters[:, 0] != one.counters[:, 0])] for one in samples.ranks]
    assert all(len(read) > 200 and (read[1:] >= read[:-1]).all() for read in known)


def test_counters_that_may_not_be_read_are_said(node: Node) -> None:
    """As in containers and with hidepid: here nothing at all is in that file."""
    mpi = library("mpich")
    alone = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /proc/$$/io && exec "$@"', "sh"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode != 0:
        pytest.skip("may not mount")
    command = [*alone, *node.command(mpi, "plain", ranks=0, io_s=0.05)]
    subprocess.run(command, env=environment(mpi), check=True, timeout=60)
    (table,) = (read_table(path, len(function_names())) for path in node.final.glob("*.mpi"))
    io = profiles([table], function_names())[0].io
    assert io is not None and io.ranks[0].totals is None and io.ranks[0].error


@pytest.mark.parametrize("way", ["plain", "killed"])
def test_a_trace_goes_the_way_of_its_table(way: str, node: Node) -> None:
    node.run(library("mpich"), way, may_fail=way == "killed", SEATRIAL_PROFILE_TRACE="1000000")
    node.wait()
    assert sorted(path.stem for path in node.final.glob("*.trace")) == [
        p.stem for p in sorted(node.final.glob("*.mpi"))
    ]
    for path in node.final.glob("*.trace"):
        assert path.stat().st_size > 900_000 and path.stat().st_blocks * 512 < 500_000, "without its holes"
        assert len(path.read_bytes().rstrip(b"\0")) > 50_000, "a thousand calls"
