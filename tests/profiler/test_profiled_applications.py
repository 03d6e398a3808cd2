"""Real applications from packages: profiled, they print the same results to the last digit."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, profiler

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark.benchmark import External
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import profiler_variables
from seatrial.profiler.tables.header import ProcessState
from seatrial.profiler.tables.process_table import ProcessTable, read_table

pytestmark = [pytest.mark.real, pytest.mark.parallel]

Need = Callable[[str, str], str]


def both(
    tmp_path: Path, command: list[str], inputs: Mapping[str, bytes], variables: Mapping[str, str] | None = None
) -> tuple[tuple[str, Path], tuple[str, Path], list[ProcessTable]]:
    """(stdout, folder) without the profiler and with it, and the tables of the two ranks."""
    mpirun = str(library("openmpi").launcher)
    answers = []
    tables = tmp_path / "tables"
    tables.mkdir()
    for name in ("bare", "profiled"):
        folder = tmp_path / name
        folder.mkdir()
        for file, content in inputs.items():
            (folder / file).write_bytes(content)
        around = {**os.environ, **ROOT_MAY, "OMP_NUM_THREADS": "1", **(variables or {})}
        if name == "profiled":
            around |= profiler_variables(profiler(), tables, around)
        done = subprocess.run(
            [mpirun, "-n", "2", *command], cwd=folder, env=around, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
        assert "seatrial" not in done.stderr
        answers.append((done.stdout, folder))
    read = [read_table(path, len(function_names())) for path in sorted(tables.glob("*.mpi"))]
    assert sorted(table.rank for table in read if table.rank is not None) == [0, 1]
    assert {table.state for table in read} == {ProcessState.FINALIZED}
    return answers[0], answers[1], read


def calls(table: ProcessTable) -> Counter[str]:
    found: Counter[str] = Counter()
    for thread in table.threads:
        for row in thread.slots:
            found[function_names()[int(row["call"]) - 1]] += int(row["count"])
    return found


def peers_agree(tables: list[ProcessTable]) -> bool:
    """Whether what one sent point to point is what the other received."""
    rows = {
        table.rank: {int(peer): [int(n) for n in row] for peer, row in zip(table.peer_ranks, table.peers, strict=True)}
        for table in tables
    }
    none = [0, 0, 0, 0]
    return all(rows[i].get(j, none)[:2] == rows[j].get(i, none)[2:] for i in (0, 1) for j in (0, 1))


def test_lammps(tmp_path: Path, need: Need) -> None:
    lmp = need("lmp", "apt install lammps")
    program = benchmark_named("apps.lammps").program
    assert isinstance(program, External)
    ((name, content),) = program.inputs({"cells": 8, "steps": 100}).items()
    more = b"write_dump all custom end.txt id x y z vx vy vz modify sort id format float %.17g\n"
    bare, profiled, tables = both(tmp_path, [lmp, "-in", name, "-log", "none", "-nocite"], {name: content + more})

    def thermo(text: str) -> list[str]:
        return [line for line in text.splitlines() if re.fullmatch(r"\s*\d+(\s+[-+.e\d]+){3,}\s*", line)]

    assert thermo(bare[0]) == thermo(profiled[0]) != []
    assert (bare[1] / "end.txt").read_bytes() == (profiled[1] / "end.txt").read_bytes()
    assert peers_agree(tables) and all(calls(table)["MPI_Send"] > 100 for table in tables)


def test_hpcc(tmp_path: Path, need: Need) -> None:
    hpcc = need("hpcc", "apt install hpcc")
    lines = ["HPL", "small", "HPL.out", "8", "1", "240", "1", "32", "0", "1", "1", "2", "16.0", "1", "2", "1", "4"]
    lines += ["1", "2", "1", "1", "1", "0", "1", "0", "2", "64", "0", "0", "1", "8"]
    lines += ["##### This line (no. 32) is ignored #####", "0", "", "0", ""]
    bare, profiled, tables = both(tmp_path, [hpcc], {"hpccinf.txt": "\n".join(lines).encode() + b"\n"})

    def results(folder: Path) -> dict[str, str]:
        text = (folder / "hpccoutf.txt").read_text()
        printed = re.findall(r"^(\w+)=(\S+)$", text, re.MULTILINE)
        kept = re.compile(
            r"HPL_(?:N|NB|nprow|npcol|RnormI|Anorm1|AnormI|Xnorm1|XnormI)|PTRANS_(?:residual|n|nb)|CommWorldProcs"
        )
        return {name: value for name, value in printed if kept.fullmatch(name)}

    assert results(bare[1]) == results(profiled[1])
    assert results(bare[1])["CommWorldProcs"] == "2" and "HPL_RnormI" in results(bare[1])
    assert peers_agree(tables) and all(calls(table)["MPI_Send"] > 100 for table in tables)


def test_gromacs(tmp_path: Path, need: Need) -> None:
    gmx = need("gmx_mpi", "apt install gromacs")
    program = benchmark_named("apps.gromacs").program
    assert isinstance(program, External)
    params = {"edge": 2, "steps": 100, "threads": 1}
    made = tmp_path / "made"
    made.mkdir()
    for name, content in program.inputs(params).items():
        (made / name).write_bytes(content)
    for arguments in program.preparation(params):
        subprocess.run([gmx, *arguments], cwd=made, check=True, capture_output=True, env={**os.environ, **ROOT_MAY})
    command = [
        gmx,
        "mdrun",
        "-quiet",
        "-nobackup",
        "-s",
        "topol.tpr",
        "-reprod",
        "-notunepme",
        "-dlb",
        "no",
        "-ntomp",
        "1",
    ]
    command += ["-nb", "cpu", "-pin", "off", "-c", "end.gro", "-nsteps", "100"]
    bare, profiled, tables = both(tmp_path, command, {"topol.tpr": (made / "topol.tpr").read_bytes()})
    assert (bare[1] / "end.gro").read_bytes() == (profiled[1] / "end.gro").read_bytes()
    assert peers_agree(tables) and all(calls(table)["MPI_Sendrecv"] > 100 for table in tables)


MPI4PY = """
from mpi4py import MPI
import numpy
world = MPI.COMM_WORLD
rank, other = world.rank, 1 - world.rank
sent, received = numpy.full(100, float(rank)), numpy.empty(100)
for _ in range(10):
    world.Sendrecv(sent, other, 0, received, other, 0)
total = world.allreduce(rank + 1)
print(rank, total, received[7]) if rank == 0 else None
"""


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs mpi4py")
def test_mpi4py(tmp_path: Path) -> None:
    bare, profiled, tables = both(tmp_path, [sys.executable, "-c", MPI4PY], {}, {"MPI4PY_MPIABI": "openmpi"})
    assert bare[0] == profiled[0] == "0 3 1.0\n"
    assert peers_agree(tables) and all(calls(table)["MPI_Sendrecv"] == 10 for table in tables)
    assert all(calls(table)["MPI_Init_thread"] == calls(table)["MPI_Finalize"] == 1 for table in tables)


@pytest.mark.skipif(find_spec("mpi4py") is None, reason="needs mpi4py")
def test_mpi4py_calls_functions_of_large_counts_where_the_library_has_them(tmp_path: Path) -> None:
    mpi = library("mpich")
    folder = tmp_path / "libraries"
    folder.mkdir()
    (folder / "libmpi.so.12").symlink_to(mpi.library)  # the name under which the wheel asks for it
    around = {**os.environ, "LD_LIBRARY_PATH": str(folder), "MPI4PY_MPIABI": "mpich"}
    around |= profiler_variables(profiler(), tmp_path, around)
    command = [str(mpi.launcher), "-n", "2", sys.executable, "-c", MPI4PY]
    done = subprocess.run(command, env=around, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout == "0 3 1.0\n", done.stderr
    tables = [read_table(path, len(function_names())) for path in tmp_path.glob("*.mpi")]
    assert [calls(table)["MPI_Sendrecv_c"] for table in tables] == [10, 10] and peers_agree(tables)


NEURON = """
from neuron import h
h.nrnmpi_init()
context = h.ParallelContext()
me, number = int(context.id()), int(context.nhost())
h.load_file("stdrun.hoc")
cells = []
for gid in range(me, 8, number):
    soma = h.Section(name=f"soma{gid}")
    soma.L = soma.diam = 20
    soma.insert("hh")
    synapse = h.ExpSyn(soma(0.5))
    context.set_gid2node(gid, me)
    spikes = h.NetCon(soma(0.5)._ref_v, None, sec=soma)
    context.cell(gid, spikes)
    cells.append((gid, soma, synapse, spikes))
kept = []
for gid, soma, synapse, _ in cells:
    link = context.gid_connect((gid - 1) % 8, synapse)
    link.delay, link.weight[0] = 1, 0.05
    kept.append(link)
    if gid == 0:
        stimulus = h.NetStim()
        stimulus.number, stimulus.start = 1, 1
        first = h.NetCon(stimulus, synapse)
        first.delay, first.weight[0] = 1, 0.05
times, sources = h.Vector(), h.Vector()
context.spike_record(-1, times, sources)
context.set_maxstep(10)
h.finitialize(-65)
context.psolve(100)
everywhere = context.py_allgather(list(zip(times.to_python(), sources.to_python())))
if me == 0:
    print(number, sorted(spike for own in everywhere for spike in own))
context.barrier()
h.quit()
"""


@pytest.mark.skipif(find_spec("neuron") is None, reason="needs neuron")
def test_neuron(tmp_path: Path) -> None:
    variables = {"MPI_LIB_NRN_PATH": str(library("openmpi").library), "NEURON_MODULE_OPTIONS": "-nogui"}
    bare, profiled, tables = both(tmp_path, [sys.executable, "-c", NEURON], {}, variables)
    assert bare[0] == profiled[0] and re.search(r"^2 \[\(2\.", bare[0], re.MULTILINE)
    assert all(calls(table)["MPI_Allgather"] >= 100 for table in tables)


def test_a_program_that_asks_whether_mpi_is_there(tmp_path: Path) -> None:
    """By names that the profiler must not have: dlsym, and weak symbols that no library defines."""
    source, program = tmp_path / "asks.c", tmp_path / "asks"
    names = (
        "MPI_Initialized",
        "MPI_Finalized",
        "MPI_Get_version",
        "MPI_Abi_get_version",
        "MPI_Send_c",
        "MPI_Psend_init",
    )
    asked = " ".join(f'if (dlsym(RTLD_DEFAULT, "{name}")) return {k};' for k, name in enumerate(names, 1))
    weak = "extern int MPI_Send_c(void) __attribute__((weak)); extern int MPI_Session_init(void) __attribute__((weak));"
    source.write_text(
        f"#define _GNU_SOURCE\n#include <dlfcn.h>\n{weak}\nint main(void) {{ {asked} "
        "return MPI_Send_c || MPI_Session_init ? 99 : 0; }\n"
    )
    cc = shutil.which("cc") or "gcc"
    subprocess.run([cc, "-o", program, source, "-ldl"], check=True)
    around = {**os.environ, **profiler_variables(profiler(), tmp_path, os.environ)}
    assert subprocess.run([program], env=around, check=False).returncode == 0
    assert not list(tmp_path.glob("*.mpi"))
