"""Reduction operations of real programs (MPI_Op_create) are counted and timed exactly, and stay correct."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from environments.mpi_libraries import FOUR, library
from profiler.mpi_programs import built, run
from profiler.test_mpi_profiler import BINDINGS, fortran_wrapper
from profiler.test_node_real import profiled

pytestmark = [pytest.mark.real, pytest.mark.parallel]

PROGRAM = Path(__file__).with_name("mpi_operation_program.c")


def counted(text: str) -> list[tuple[int, float]]:
    """Calls and seconds of each function by the program's own counters, those that were called; no sum was wrong."""
    wrong, *lines = text.splitlines()
    assert wrong == "0"
    found = [(int(calls), int(ns) / 1e9) for calls, ns in map(str.split, lines)]
    return [one for one in found if one[0]]


@pytest.mark.parametrize("name", FOUR[:2])
@pytest.mark.parametrize("case", ["blocking", "freed", "many", "threads"])
def test_every_operation_is_counted_and_timed(name: str, case: str, tmp_path: Path) -> None:
    mpi = library(name)
    run(mpi, built(mpi, PROGRAM), tmp_path / "t", 2, case, str(tmp_path / "own"))
    own = counted((tmp_path / "own").read_text())
    profile = profiled(tmp_path / "t")
    found = sorted(one.count for one in profile.operations)
    if case == "many":  # 10 by themselves, 22 together, 7 not timed
        assert found == [2] * 10 + [44] and profile.untimed_operations == 2 * 7
    else:
        assert found == sorted(calls for calls, _ in own) and profile.untimed_operations == 0
        measured_s, own_s = sum(one.time_s for one in profile.operations), sum(time_s for _, time_s in own)
        assert own_s <= measured_s
    made = {one.call: one.count for one in profile.calls}["MPI_Op_create"]
    assert sum(one.made for one in profile.operations) + profile.untimed_operations == made
    in_calls_s = sum(one.operated_s for one in profile.calls)
    if case == "blocking":
        assert in_calls_s == pytest.approx(sum(one.operated_s for one in profile.per_rank), rel=1e-6)
        assert {one.call for one in profile.calls if one.operated_s} == {
            *("MPI_Allreduce", "MPI_Reduce", "MPI_Scan", "MPI_Reduce_local")
        }
    assert all(one.operated_s <= one.time_s * 1.000001 for one in profile.calls)


OPERATION = """
program reduction
  {use}
  implicit none
  {include}
  interface
    subroutine add(a, b, n, t)
      {use}
      implicit none
      {arguments}
    end subroutine
  end interface
  integer :: n, e, i
  integer :: mine(4), sums(4)
  {op} :: own
  call MPI_Init(e)
  call MPI_Comm_size(MPI_COMM_WORLD, n, e)
  call MPI_Op_create(add, .true., own, e)
  mine = (/ 1, 2, 3, 4 /)
  do i = 1, 20
    call MPI_Allreduce(mine, sums, 4, MPI_INTEGER, own, MPI_COMM_WORLD, e)
    if (any(sums /= n * mine)) call MPI_Abort(MPI_COMM_WORLD, 1, e)
  end do
  call MPI_Op_free(own, e)
  call MPI_Finalize(e)
end program

subroutine add(a, b, n, t)
  {use}
  implicit none
  {arguments}
  {body}
end subroutine
"""
OLD = {
    "op": "integer",
    "arguments": "integer :: n, t\n      integer :: a(n), b(n)",
    "body": "if (t /= 0) b = a + b",
}
NEW = {
    "op": "type(MPI_Op)",
    "arguments": (
        "type(c_ptr), value :: a, b\n      integer :: n\n      type(MPI_Datatype) :: t\n"
        "      integer, pointer :: x(:), y(:)"
    ),
    "body": "call c_f_pointer(a, x, (/ n /))\n  call c_f_pointer(b, y, (/ n /))\n  if (t == MPI_INTEGER) y = x + y",
}


@pytest.mark.parametrize(
    ("name", "binding"), [(FOUR[0], "mpi"), (FOUR[0], "mpi_f08"), (FOUR[1], "mpif.h"), (FOUR[1], "mpi_f08")]
)
def test_operations_of_fortran_are_timed(name: str, binding: str, tmp_path: Path) -> None:
    mpi = library(name)
    source, program = tmp_path / "reduction.f90", tmp_path / "reduction"
    of = {**BINDINGS[binding], **(NEW if binding == "mpi_f08" else OLD)}
    if binding == "mpi_f08":
        of["use"] += "\n  use, intrinsic :: iso_c_binding"
    source.write_text(OPERATION.format(**of))
    wrapper = fortran_wrapper(mpi)
    subprocess.run([wrapper, "-g", "-fallow-argument-mismatch", "-w", str(source), "-o", str(program)], check=True)
    run(mpi, program, tmp_path / "t", 2)
    profile = profiled(tmp_path / "t")
    (found,) = profile.operations
    assert found.made == 2 and 20 <= found.count <= 40 and found.time_s > 0 and profile.untimed_operations == 0
