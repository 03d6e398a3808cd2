"""The profiler's library under real programs whose traffic is known in closed form: counts and bytes are exact."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import TRAFFIC, Seen, profiler, run, seen, traffic_program
from usual import usually

import seatrial
from seatrial.environments.compiler import compiler_named, find_compilers, first_compiler
from seatrial.environments.loader import c_compiler
from seatrial.model.environment.mpi import Mpi
from seatrial.profiler.capture.run import profiler_variables
from seatrial.profiler.capture.wrappers import wrapper_texts
from seatrial.profiler.tables.header import Family, ProcessState

pytestmark = [pytest.mark.real, pytest.mark.parallel]

NATIVE = Path(seatrial.__file__).parent / "profiler" / "native"
TWO = FOUR[:2]
EACH = usually(FOUR, lambda name: name in TWO)
"""Later versions of both, too: what they add has tests of its own, and point-to-point messages pass with each."""


def of(name: str, tmp_path: Path, part: str, *arguments: str, ranks: int = 2, may_fail: bool = False) -> list[Seen]:
    mpi = library(name)
    found = run(mpi, traffic_program(mpi), tmp_path / part, ranks, part, *arguments, may_fail=may_fail)
    assert [one.rank for one in found] == list(range(ranks))
    assert all(one.size == ranks and one.lost_calls == one.unknown_length == 0 for one in found)
    assert all(one.without_site == 0 for one in found) or part == "sizes"
    assert all(one.mpi_s > 0 and abs(one.over_time_s / one.mpi_s - 1) < 1e-9 for one in found)
    if not may_fail:
        assert {one.state for one in found} == {ProcessState.FINALIZED}
        assert all(one.calls.get("MPI_Finalize", (1, 0)) == (1, 0) for one in found)
    for i, sender in enumerate(found):
        for j, receiver in enumerate(found):
            assert sender.peers.get(j, (0,) * 4)[:2] == receiver.peers.get(i, (0,) * 4)[2:], (i, j)
    return found


@pytest.mark.parametrize("name", FOUR)
def test_point_to_point(name: str, tmp_path: Path) -> None:
    even, odd = of(name, tmp_path, "point_to_point")
    for one in (even, odd):
        assert one.calls["MPI_Sendrecv"] == (5, 280) and one.sizes["MPI_Sendrecv"] == {56: 5}
        assert one.calls["MPI_Sendrecv_replace"] == (1, 12) and one.calls["MPI_Barrier"] == (3, 0)
        assert one.calls["MPI_Comm_rank"] == one.calls["MPI_Comm_size"] == one.calls["MPI_Init"] == (1, 0)
    assert even.calls["MPI_Send"] == (4, 24) and even.sizes["MPI_Send"] == {8: 3, 0: 1}
    assert odd.calls["MPI_Send"] == (1, 0) and odd.calls["MPI_Recv"] == (3, 24)
    assert even.peers == {1: (9, 316, 6, 292)} and odd.peers == {0: (6, 292, 9, 316)}
    family = Family.OPENMPI if "openmpi" in name else Family.MPICH
    assert {one.family for one in (even, odd)} == {family}


@pytest.mark.parametrize("name", EACH)
@pytest.mark.parametrize("ranks", [2, 3])
def test_collectives(name: str, ranks: int, tmp_path: Path) -> None:
    total = 4 * ranks * (ranks + 1) // 2
    for r, one in enumerate(of(name, tmp_path, "collectives", ranks=ranks)):
        root = r == 0
        assert one.calls["MPI_Allreduce"] == (12, 10 * 4 + 24 + 8) and one.kinds["MPI_Allreduce"] == {1, 2}
        assert one.sizes["MPI_Allreduce"] == {4: 10, 24: 1, 8: 1}
        assert one.calls["MPI_Bcast"] == (1, 9 if r == 1 else 0) and one.calls["MPI_Reduce"] == (1, 8)
        assert one.calls["MPI_Gather"] == (1, 8) and one.calls["MPI_Gatherv"] == (1, 4 * (r + 1))
        assert one.calls["MPI_Scatter"] == (1, 16 * ranks * root) and one.calls["MPI_Scatterv"] == (1, total * root)
        assert one.calls["MPI_Allgather"] == (1, 20) and one.calls["MPI_Allgatherv"] == (1, 4 * (r + 1))
        assert one.calls["MPI_Alltoall"] == (1, 24 * ranks)
        assert one.calls["MPI_Alltoallv"] == (1, total) and one.calls["MPI_Alltoallw"] == (1, 2 * total)
        assert one.calls["MPI_Reduce_scatter"] == (1, total)
        assert one.calls["MPI_Reduce_scatter_block"] == (1, 8 * ranks) and one.calls["MPI_Scan"] == (1, 12)
        assert one.calls["MPI_Iallreduce"] == (1, 16) and one.calls["MPI_Wait"] == (1, 0)
        assert one.peers == {}, "what the library sends inside of a collective is none of the program's"


@pytest.mark.parametrize("name", EACH)
def test_requests_are_counted_where_they_complete(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "requests")):
        assert one.calls["MPI_Isend"] == (12, 240) and one.calls["MPI_Irecv"] == (14, 0)
        assert one.calls["MPI_Waitall"] == (1, 80) and one.calls["MPI_Waitany"] == (8, 80)
        assert one.calls["MPI_Waitsome"][1] == 80 and one.calls["MPI_Wait"] == (2, 0)
        assert one.sizes["MPI_Waitall"] == {20: 1}, "the size of one of its messages, not of all"
        assert max(one.sizes["MPI_Waitsome"]) <= 32
        assert one.peers == {1 - r: (12, 240, 12, 240)}


@pytest.mark.parametrize("name", EACH)
def test_persistent_and_matched_messages(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "persistent")):
        assert one.calls["MPI_Start"] == (2, 24) and one.calls["MPI_Startall"] == (4, 96)
        assert one.calls["MPI_Testall"][1] == 120 and one.peers == {1 - r: (5, 120, 5, 120)}
    for r, one in enumerate(of(name, tmp_path, "matched")):
        assert one.calls["MPI_Mrecv"] == (1, 12) and one.calls["MPI_Wait"] == (3, 12)
        assert one.peers == {1 - r: (2, 24, 2, 24)}


@pytest.mark.parametrize("name", EACH)
def test_ranks_of_communicators_become_ranks_of_the_world(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "reversed", ranks=3)):
        assert one.calls["MPI_Send"] == one.calls["MPI_Wait"] == (20, 80)
        others = sorted({0, 1, 2} - {r})
        assert one.peers == dict.fromkeys(others, (10, 40, 10, 40)), "10 times this way around, 10 times the other"
    for r, one in enumerate(of(name, tmp_path, "between_groups", ranks=3)):
        odd = r == 1
        assert one.calls["MPI_Isend"] == (1, 16) and one.calls["MPI_Alltoall"] == (1, 8 if not odd else 16)
        assert one.calls["MPI_Bcast"] == (1, 20 * (r == 0))
        expected = {1: {0: (1, 16, 1, 16), 2: (0, 0, 1, 16)}, 0: {1: (1, 16, 1, 16)}, 2: {1: (1, 16, 0, 0)}}
        assert one.peers == expected[r]


@pytest.mark.parametrize("name", EACH)
def test_datatypes_neighbours_windows_and_files(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "derived")):
        assert one.calls["MPI_Bcast"] == (3, 96 * (r == 0))
        assert one.calls["MPI_Neighbor_alltoall"] == (1, 16) and one.calls["MPI_Neighbor_allgather"] == (1, 8)
    for one in of(name, tmp_path, "one_sided"):
        assert one.calls["MPI_Put"] == (1, 88) and one.calls["MPI_Accumulate"] == (1, 12)
        assert one.calls["MPI_Get_accumulate"] == (1, 0) and one.calls["MPI_Fetch_and_op"] == (2, 4)
        assert one.calls["MPI_Get"] == (1, 16) and one.calls["MPI_Win_fence"] == (3, 0) and one.peers == {}
    for one in of(name, tmp_path, "file", str(tmp_path / "data")):
        assert one.calls["MPI_File_write_at_all"] == (1, 800) and one.calls["MPI_File_read_at"] == (1, 400)
        assert one.calls["MPI_File_iread_at"] == (1, 0) and one.calls["MPI_Wait"] == (1, 200)


@pytest.mark.parametrize("name", EACH)
def test_threads_that_call_at_once(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "threads")):
        assert one.calls["MPI_Send"] == one.calls["MPI_Wait"] == (2000, 500 * 4 * (1 + 2 + 3 + 4))
        assert one.calls["MPI_Irecv"] == (2000, 0) and one.peers == {1 - r: (2000, 20000, 2000, 20000)}


@pytest.mark.parametrize("name", FOUR[1::2])
def test_large_counts_partitions_and_sessions(name: str, tmp_path: Path) -> None:
    for r, one in enumerate(of(name, tmp_path, "partitioned")):
        assert one.calls["MPI_Start"] == one.calls["MPI_Wait"] == (6, 192)
        assert one.calls["MPI_Pready"] == (12, 0) and one.peers == {1 - r: (3, 192, 3, 192)}
    for r, one in enumerate(of(name, tmp_path, "session")):
        assert one.calls["MPI_Sendrecv"] == (2, 40) and one.peers == {1 - r: (2, 40, 2, 40)}
    for r, one in enumerate(of(name, tmp_path, "large")):
        assert one.calls["MPI_Sendrecv_c"] == (1, 56) and one.calls["MPI_Allgatherv_c"] == (1, 4 * (r + 1))
        assert one.calls["MPI_Scatterv_c"] == (1, 12 * (r == 0)) and one.peers == {1 - r: (1, 56, 1, 56)}


@pytest.mark.parametrize("name", EACH)
def test_a_kill_and_an_abort_lose_nothing(name: str, tmp_path: Path) -> None:
    for one in of(name, tmp_path, "killed", may_fail=True):
        assert one.calls["MPI_Allreduce"] == (1000, 8000) and one.state is ProcessState.INITIALIZED
        assert "MPI_Finalize" not in one.calls and one.wall_s > 0
    aborted = of(name, tmp_path, "aborted", may_fail=True)
    assert all(one.calls["MPI_Allreduce"] == (1000, 8000) for one in aborted)
    assert any(one.state is ProcessState.ABORTED for one in aborted)
    assert all(one.calls.get("MPI_Abort", (1, 0)) == (1, 0) for one in aborted), "in some libraries it returns"


def test_a_full_table_loses_detail_and_no_call(tmp_path: Path) -> None:
    for one in of("mpich", tmp_path, "sizes"):
        for call in ("Bcast", "Allreduce", "Reduce", "Scan", "Allgather"):
            assert one.calls[f"MPI_{call}"] == (1024, 1024 * 1025 // 2)
        assert one.without_site > 1000 and 0 in one.sites


IN_A_MODULE = """
#include <mpi.h>
void communicate(void) {
  double from = 1, to;
  MPI_Init(0, 0);
  for (int i = 0; i < 10; i++)
    MPI_Allreduce(&from, &to, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
}
"""
LOADER = """
#include <dlfcn.h>
#include <string.h>
int main(int argc, char** argv) {
  void* module = dlopen(argv[argc - 1], RTLD_NOW | RTLD_LOCAL);
  void (*communicate)(void);
  if (!module)
    return 2;
  void* symbol = dlsym(module, "communicate");
  memcpy(&communicate, &symbol, sizeof symbol);
  communicate();
  return 0;
}
"""


def compiled(folder: Path, name: str, text: str, *flags: str) -> Path:
    source, result = folder / f"{name}.c", folder / name
    source.write_text(text)
    subprocess.run([*c_compiler(first_compiler()), "-O1", str(source), "-o", str(result), *flags], check=True)
    return result


@pytest.mark.parametrize("name", EACH)
def test_a_library_of_mpi_that_was_loaded_for_one_module_alone(name: str, tmp_path: Path) -> None:
    """As interpreters load their modules: it stands in no order of the loader."""
    mpi = library(name)
    flags = ("-shared", "-fPIC", *mpi.compile_flags, *mpi.link_flags)
    module = compiled(tmp_path, "module.so", IN_A_MODULE, *flags)
    program = compiled(tmp_path, "program", LOADER, "-ldl")
    for one in run(mpi, program, tmp_path / "tables", 2, str(module)):
        assert one.calls["MPI_Allreduce"] == (10, 80) and one.state is ProcessState.FINALIZED


ANOTHER_TOOL = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
static int calls;
int MPI_Allreduce(const void* from, void* to, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  calls++;
  return PMPI_Allreduce(from, to, count, type, op, comm);
}
__attribute__((destructor)) static void tell(void) {
  FILE* file = calls > 0 ? fopen(getenv("TOOL"), "w") : NULL; /* not the children of the library */
  if (file) {
    fprintf(file, "%d", calls);
    fclose(file);
  }
}
"""


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("is_first", [True, False])
def test_another_tool_sees_every_call_too(name: str, is_first: bool, tmp_path: Path) -> None:
    mpi, output, tables = library(name), tmp_path / "output", tmp_path / "tables"
    tool = compiled(tmp_path, "tool.so", ANOTHER_TOOL, "-shared", "-fPIC", *mpi.compile_flags)
    tables.mkdir()
    variables = profiler_variables(profiler(), tables, {} if is_first else {"LD_PRELOAD": str(tool)})
    if is_first:
        variables["LD_PRELOAD"] = f"{tool}:{profiler()}"
    alone = [str(traffic_program(mpi)), "sizes"]
    environment = {**os.environ, **dict(mpi.variables), **variables, "TOOL": str(output)}
    subprocess.run(alone, env=environment, check=True, timeout=60)
    (one,) = map(seen, tables.iterdir())
    assert one.calls["MPI_Allreduce"] == (1024, 1024 * 1025 // 2) and output.read_text() == "1024"


OF_NOBODY = """
int MPI_Init(int* argc, char*** argv) { return 0 * (argc == 0) * (argv == 0); }
int MPI_Send(const void* buf, int count, long type, int dest, int tag, long comm) {
  return 0 * (buf == 0) * (count + type + dest + tag + comm);
}
int MPI_Recv(void* buf, int count, long type, int source, int tag, long comm, void* status) {
  return 0 * (buf == status) * (count + type + source + tag + comm);
}
int MPI_Finalize(void) { return 0; }
"""
WITH_NOBODY = """
int MPI_Init(int*, char***);
int MPI_Send(const void*, int, long, int, int, long);
int MPI_Recv(void*, int, long, int, int, long, void*);
int MPI_Finalize(void);
int main(void) {
  MPI_Init(0, 0);
  for (int i = 0; i < 7; i++) {
    MPI_Send(0, 3, 5, 1, 0, 9);
    MPI_Recv(0, 3, 5, 1, 0, 9, 0);
  }
  return MPI_Finalize();
}
"""


def test_an_unknown_library_is_counted_and_timed_only(tmp_path: Path) -> None:
    other = compiled(tmp_path, "libother.so", OF_NOBODY, "-shared", "-fPIC")
    program = compiled(tmp_path, "program", WITH_NOBODY, str(other))
    tables = tmp_path / "tables"
    tables.mkdir()
    subprocess.run([program], env={**os.environ, **profiler_variables(profiler(), tables, {})}, check=True)
    (one,) = map(seen, tables.iterdir())
    assert (one.family, one.rank, one.state) == (Family.UNKNOWN, -1, ProcessState.FINALIZED)
    assert one.calls["MPI_Send"] == one.calls["MPI_Recv"] == (7, 0) and one.peers == {}


@pytest.mark.parametrize("name", TWO)
def test_a_child_that_goes_on_alone_counts_nothing(name: str, tmp_path: Path) -> None:
    for one in of(name, tmp_path, "forking"):
        assert "MPI_Initialized" not in one.calls


FORTRAN = """
program traffic
  {use}
  implicit none
  {include}
  double precision :: out(64), in(64)
  integer :: r, n, e, i
  {request} :: both(2)
  out = 1
  call MPI_Init(e)
  call MPI_Comm_rank(MPI_COMM_WORLD, r, e)
  call MPI_Comm_size(MPI_COMM_WORLD, n, e)
  do i = 1, 5
    call MPI_Sendrecv(out, 7, MPI_DOUBLE_PRECISION, mod(r + 1, n), 0, in, 64, MPI_DOUBLE_PRECISION, &
      mod(r + n - 1, n), 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE, e)
  end do
  call MPI_Allreduce(MPI_IN_PLACE, in, 3, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, e)
  call MPI_Irecv(in, 64, MPI_INTEGER, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, both(1), e)
  call MPI_Isend(out, r + 1, MPI_INTEGER, mod(r + 1, n), 1, MPI_COMM_WORLD, both(2), e)
  call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, e)
  call MPI_Allgather(MPI_IN_PLACE, 0, MPI_INTEGER, in, 2, MPI_INTEGER, MPI_COMM_WORLD, e)
  call MPI_Finalize(e)
end program
"""
BINDINGS = {
    "mpif.h": {"use": "", "include": "include 'mpif.h'", "request": "integer"},
    "mpi": {"use": "use mpi", "include": "", "request": "integer"},
    "mpi_f08": {"use": "use mpi_f08", "include": "", "request": "type(MPI_Request)"},
}


def fortran_wrapper(mpi: Mpi) -> str:
    wrapper = shutil.which(f"mpifort.{mpi.family}")
    if wrapper is None or shutil.which("gfortran") is None:
        pytest.skip("needs gfortran and its bindings of MPI (apt install gfortran)")
    return wrapper


@pytest.mark.parametrize("name", TWO)
@pytest.mark.parametrize("binding", BINDINGS)
def test_fortran_is_counted_once_and_at_its_own_call_sites(name: str, binding: str, tmp_path: Path) -> None:
    mpi = library(name)
    source, program = tmp_path / "traffic.f90", tmp_path / "traffic"
    source.write_text(FORTRAN.format(**BINDINGS[binding]))
    command = [fortran_wrapper(mpi), "-fallow-argument-mismatch", "-w", str(source), "-o", str(program)]
    subprocess.run(command, check=True, cwd=tmp_path)
    for r, one in enumerate(run(mpi, program, tmp_path / "tables", 2)):
        assert one.calls == {
            "MPI_Init": (1, 0),
            "MPI_Comm_rank": (1, 0),
            "MPI_Comm_size": (1, 0),
            "MPI_Sendrecv": (5, 280),
            "MPI_Allreduce": (1, 24),
            "MPI_Irecv": (1, 0),
            "MPI_Isend": (1, 4 * (r + 1)),
            "MPI_Waitall": (1, 4 * (2 - r)),
            "MPI_Allgather": (1, 8),
            "MPI_Finalize": (1, 0),
        }
        own = [(begin, end) for begin, end, path in one.modules if path == str(program)]
        assert all(any(begin <= site < end for begin, end in own) for site in one.sites)


def test_a_program_without_mpi_leaves_nothing_and_notices_nothing(tmp_path: Path) -> None:
    variables = {**os.environ, "LD_PRELOAD": str(profiler()), "SEATRIAL_PROFILE_DIR": str(tmp_path)}
    ended = subprocess.run(["sh", "-c", "echo here; exit 3"], env=variables, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (3, "here\n", "") and not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", TWO)
def test_a_folder_that_is_not_there_costs_the_tables_only(name: str, tmp_path: Path) -> None:
    mpi = library(name)
    gone = f"SEATRIAL_PROFILE_DIR={tmp_path / 'gone'}"
    ended = subprocess.run(
        ["env", f"LD_PRELOAD={profiler()}", gone, str(traffic_program(mpi)), "collectives_of_none"],
        env={**os.environ, **dict(mpi.variables)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.returncode == 0, ended.stderr
    assert "is not recorded" in ended.stderr and "No such file" in ended.stderr


def test_nothing_is_newer_than_glibc_2_17_and_nothing_else_is_needed(need: Callable[[str, str], str]) -> None:
    objdump = need("objdump", "apt install binutils")
    symbols = subprocess.run([objdump, "-T", profiler()], check=True, capture_output=True, text=True).stdout
    versions = {tuple(map(int, found.split("."))) for found in re.findall(r"GLIBC_([\d.]+)", symbols)}
    assert versions and max(versions) <= (2, 17)
    exported = set(re.findall(r" g  +DF \.text\s+\w+\s+(?:Base\s+)?(\w+)", symbols))
    assert {"MPI_Send", "PMPI_Send", "mpi_send_", "mpi_send_f08ts_"} <= exported
    assert not {"MPI_Send_c", "MPI_Session_init", "MPI_Initialized", "MPI_Get_version", "PMPI_Send_c"} & exported
    others = {"ompt_start_tool", "seatrial_profiler_region_begin", "seatrial_profiler_region_end"}
    of_loader = {"dlsym", "dlvsym", "dlopen", "dlmopen"} if platform.machine() == "x86_64" else set()
    assert {name for name in exported if not re.match(r"P?MPI_|mpi_", name)} == others | of_loader
    headers = subprocess.run([objdump, "-p", profiler()], check=True, capture_output=True, text=True).stdout
    needed = set(re.findall(r"NEEDED\s+(\S+)", headers))
    assert all(re.match(r"lib(c|dl)\.so|ld-linux", name) for name in needed)


@pytest.mark.parametrize("name", ["g++", "clang++"])
def test_no_compiler_has_anything_to_say(name: str, tmp_path: Path) -> None:
    if not any(Path(compiler.command[0]).name == name for compiler in find_compilers()):
        pytest.skip(f"needs {name}")
    generated = [tmp_path / name for name in wrapper_texts()]
    for path, text in zip(generated, wrapper_texts().values(), strict=True):
        path.write_text(text)
    command = (*c_compiler(compiler_named(name)), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror")
    sources = (str(path) for path in (*generated, *NATIVE.glob("*.c")))
    subprocess.run([*command, "-fsyntax-only", f"-I{NATIVE}", *sources], check=True)


@pytest.mark.parametrize("part", ["point_to_point", "collectives", "requests", "persistent", "partitioned"])
def test_the_standard_binary_interface(part: str, tmp_path: Path) -> None:
    """MPICH 5 has it in a library of its own, which has no PMPI functions; what is counted is the same."""
    mpi = library("wheel mpich")
    prefix = mpi.library.parent.parent
    header = prefix / "include" / "mpi_abi.h"
    if not header.exists():
        pytest.skip("needs a wheel of MPICH with the standard binary interface")
    (tmp_path / "mpi.h").write_text(header.read_text())
    shutil.copy(prefix / "include" / "mpi_proto.h", tmp_path)
    program, own = tmp_path / "abi", [f"-I{tmp_path}", "-pthread", "-w"]
    link = [f"-L{prefix / 'lib'}", "-lmpi_abi", f"-Wl,-rpath,{prefix / 'lib'}"]
    command = [*c_compiler(first_compiler()), *own, str(TRAFFIC), "-o", str(program), *link]
    subprocess.run(command, check=True)
    expected = run(mpi, traffic_program(mpi), tmp_path / "legacy", 2, part)
    found = run(mpi, program, tmp_path / "standard", 2, part)
    assert {one.family for one in found} == {Family.STANDARD_ABI}
    for one, other in zip(found, expected, strict=True):
        assert (one.rank, one.peers) == (other.rank, other.peers)
        looked = {"MPI_Testall", "MPI_Test", "MPI_Parrived", "MPI_Iprobe", "MPI_Improbe", "MPI_Waitsome"}
        assert {k: v for k, v in one.calls.items() if k not in looked} == {
            k: v for k, v in other.calls.items() if k not in looked
        }


BOTH = """
#include <mpi.h>
int main(int count, char** words) {
  double out[4] = {0}, in[64];
  int rank;
  MPI_Request request;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 0; i < 3; i++) {
    MPI_Isendrecv(out, 4, MPI_DOUBLE, 1 - rank, 0, in, 64, MPI_DOUBLE, 1 - rank, 0, MPI_COMM_WORLD, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
  MPI_Finalize();
}
"""


def test_what_isendrecv_receives_is_unknown_where_its_status_is_unset(tmp_path: Path) -> None:
    mpi = library(next(name for name in FOUR if "mpich" in name))
    source, program = tmp_path / "both.c", tmp_path / "both"
    source.write_text(BOTH)
    command = [*c_compiler(first_compiler()), *mpi.compile_flags, str(source), "-o", str(program), *mpi.link_flags]
    subprocess.run(command, check=True)
    for r, one in enumerate(run(mpi, program, tmp_path / "tables", 2)):
        assert one.calls["MPI_Isendrecv"] == (3, 96) and one.unknown_length == 3
        assert one.peers == {1 - r: (3, 96, 0, 0)}, "what was sent is known"
