"""ABINIT: a real log of version 9.6.2 with two ranks, shortened; damaged ones; and a real run."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from applications.log_damage import figures, refused
from applications.result_texts import ABINIT
from engine.harness import make_ready, run_one

from seatrial.applications.abinit import BENCHMARK
from seatrial.applications.readers import reader_of
from seatrial.model.machine.machine import Machine
from seatrial.store.folder import ResultsFolder

LOG = ABINIT.encode()
INPUT = """\
acell 3*10.2
rprim 0 .5 .5 .5 0 .5 .5 .5 0
ntypat 1
znucl 14
natom 2
typat 1 1
xred 0 0 0 1/4 1/4 1/4
ecut 6
ngkpt 2 2 2
nshiftk 1
shiftk 0 0 0
nstep 20
pp_dirpath "."
toldfe 1.0d-6
pseudos "si.psp"
"""
# The parameters of Goedecker, Teter, Hutter, Phys. Rev. B 54, 1703 (1996).
SILICON = """\
GTH silicon
14 4 960513   zatom,zion,pspdat
2 1 1 1 2001 0.0   pspcod,pspxc,lmax,lloc,mmax,r2well
0.4400000 -7.3361030 0.0 0.0 0.0   rloc, c1, c2, c3, c4
0.4227381 5.9069283 3.2581962   rs, h1s, h2s
0.4842784 2.7270135   rp, h1p
1.36 .2 0.6   rcutoff, rloc
"""


def test_the_elapsed_time_is_that_of_a_rank_not_the_sum() -> None:
    assert figures("abinit", LOG) == {"wall": [3.7]}


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b"        7.4", b"       17.4", "are not the sum of 2 ranks of about 3.7 s each"),
        (b"mpi_nproc: 2", b"mpi_nproc: 1", "are not the sum of 1 ranks"),
        (b"+Overall", b"-Overall", "has not ended"),
        (b"- Proc.   0", b"- Proc.   1", "individual time"),
        (b" Calculation completed.", b"--- !ERROR", "ABINIT stopped here"),
    ],
)
def test_what_has_no_figure_is_refused(old: bytes, new: bytes, why: str) -> None:
    assert old in LOG
    refused("abinit", LOG.replace(old, new), why)


def test_stdout_states_the_threads_too() -> None:
    """Real, shortened: two datasets repeat what they state."""
    stdout = b"""\
.Version 9.6.2 of ABINIT
     natom =       2  nloc_mem =       1    nspden =       1   nspinor =       1
     natom =       2  nloc_mem =       1    nspden =       1   nspinor =       1
-   mpi_nproc: 2, omp_nthreads: -1 (-1 if OMP is not activated)
-   mpi_nproc: 2, omp_nthreads: -1 (-1 if OMP is not activated)
 Proc.   0 individual time (sec): cpu=          0.6  wall=          1.4
--- !FinalSummary
overall_cpu_time:           1.0
overall_wall_time:           2.6
mpi_procs: 2
omp_threads: 1
...
"""
    (experiment,) = reader_of("abinit").read(stdout).experiments
    assert [sample.elapsed_s for sample in experiment.samples] == [1.4]
    assert experiment.parameters == {"ranks": 2, "threads": 1, "atoms": 2} and experiment.remarks == ()
    refused("abinit", stdout.replace(b"mpi_procs: 2", b"mpi_procs: 3"), "another number of ranks")


def test_a_run_that_did_not_converge_is_remarked() -> None:
    text = b" scprqt:  WARNING -\n  nstep=    2 was not enough SCF cycles to converge;\n"
    (experiment,) = reader_of("abinit").read(LOG.replace(b"-\n", text, 1)).experiments
    assert "not enough SCF cycles" in experiment.remarks[0] and "same steps" in experiment.remarks[0]


def test_two_runs_in_one_file_are_two_experiments() -> None:
    assert len(reader_of("abinit").read(LOG * 2).runs) == 2


@pytest.mark.real
def test_it_measures(live_machine: Machine, tmp_path: Path) -> None:
    if shutil.which("abinit") is None:
        pytest.skip("needs abinit (apt install abinit)")
    given = tmp_path / "given"
    given.mkdir()
    (given / "si.abi").write_text(INPUT)
    (given / "si.psp").write_text(SILICON)
    folder = ResultsFolder.create(tmp_path / "results")
    ready = make_ready(BENCHMARK, live_machine, folder, inputs=str(given), input="si.abi", ranks=1)
    record = run_one(ready, live_machine, folder)
    assert record.outcome.is_ok, record.outcome.reason
    (sample,) = (sample for sample in record.samples if sample.series == "wall")
    assert 0 < sample.elapsed_s <= record.wall_s
