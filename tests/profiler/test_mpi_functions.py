"""The table of MPI functions: the traffic statements use only functions and arguments that exist."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

from seatrial.errors import BuildError
from seatrial.profiler.capture import run
from seatrial.profiler.capture.functions import function_names, functions
from seatrial.profiler.capture.wrappers import fortran_names, has_name, is_often, wrapped, wrapper_texts
from seatrial.profiler.tables.traffic import _TRAFFIC, traffic_of

C_WORDS = frozenset(
    (
        "struct",
        "const",
        "word",
        "int",
        "own",
        "waiting",
        "statuses",
        "bytes",
        "size",
        "matched",
        "root",
        "proc_null",
        "no_op",
    )
)
"""What statements hold beside arguments: C's words, their own variables, constants of MPI."""
BY_NAME = {function.name: function for function in functions()}


def test_functions_are_there_once_and_in_order() -> None:
    names = function_names()
    assert len(set(names)) == len(names) < 2**16
    small = [name for name in names if not BY_NAME[name].is_large]
    assert small == sorted(small) and {"MPI_Send", "MPI_Session_init", "MPI_Pready", "MPI_T_pvar_read"} <= set(small)
    assert {"MPI_Send_c", "MPI_Alltoallw_c", "MPI_Type_size_c"} <= set(names) and "MPI_Barrier_c" not in names


def test_arguments_are_those_of_the_standard() -> None:
    receive = BY_NAME["MPI_Irecv"].parameters
    assert [p.name for p in receive] == ["buf", "count", "datatype", "source", "tag", "comm", "request"]
    assert [p.is_written for p in receive] == [True, False, False, False, False, False, True]
    assert [p.name for p in receive if p.is_wider] == ["count"]
    contents = [p.name for p in BY_NAME["MPI_Type_get_contents"].parameters]
    assert "max_large_counts" not in contents
    assert "max_large_counts" in [p.name for p in BY_NAME["MPI_Type_get_contents_c"].parameters]


def test_timers_and_tools_are_left_alone() -> None:
    names = {function.name for _, function in wrapped()}
    assert names.isdisjoint(
        {"MPI_Wtime", "MPI_Wtick", "MPI_Pcontrol", "MPI_Aint_add", "MPI_Comm_f2c", "MPI_T_init_thread"}
    )
    assert all(function_names()[number - 1] == function.name for number, function in wrapped())


def test_traffic_is_said_of_functions_that_have_wrappers() -> None:
    bases = {function.base for _, function in wrapped()}
    assert {f"MPI_{name}" for name in _TRAFFIC} <= bases
    for _, function in wrapped():
        traffic = traffic_of(function.base)
        named = re.sub(r"\bseatrial_\w+|\bSEATRIAL_\w+", "", traffic.before + traffic.after)
        used = set(re.findall(r"\b[a-z_]{3,}\b", named)) - C_WORDS
        known = {parameter.name for parameter in function.parameters}
        assert used <= known, function.name


def test_only_what_every_library_of_mpi_3_1_has_is_wrapped_by_name() -> None:
    """Programs ask by weak symbols and dlsym what there is: a wrapper's name must not be the answer."""
    named = {function.name for _, function in wrapped() if has_name(function)}
    newer = "MPI_Send_c MPI_Session_init MPI_Psend_init MPI_Allreduce_init MPI_Neighbor_alltoallv_init MPI_Isendrecv"
    newer += (
        " MPI_Abi_get_version MPI_Comm_attach_buffer MPI_Buffer_flush MPI_Status_get_tag MPI_Group_from_session_pset"
    )
    assert named.isdisjoint({*newer.split(), "MPI_Initialized", "MPI_Finalized", "MPI_Get_version"})
    old = "MPI_Send MPI_Send_init MPI_Comm_create_group MPI_Mprobe MPI_Ineighbor_alltoall MPI_Win_allocate_shared"
    old += (
        " MPI_Buffer_attach MPI_Request_get_status MPI_File_iread_all MPI_Status_set_cancelled MPI_Type_create_struct"
    )
    assert named >= set(old.split())
    assert len([name for name in named if name.endswith("_c")]) == 0


def test_every_wrapper_is_in_the_text_with_its_number() -> None:
    text = "".join(wrapper_texts().values())
    exported = Counter(re.findall(r"^SEATRIAL_EXPORT word (\w+)\([^)]*\) {", text, re.MULTILINE))
    unnamed = Counter(re.findall(r"^word seatrial_unnamed_(\w+)\([^)]*\) {", text, re.MULTILINE))
    numbers = set(re.findall(r"seatrial_leave(?:_sized|_asking)?(?:_slowly)?\((\d+),", text))
    numbers.update(re.findall(r"SEATRIAL_SITE, (\d+), \w+\);", text))
    for number, function in wrapped():
        names = (function.name, f"P{function.name}")
        assert [exported[name] for name in names] == [has_name(function)] * 2
        assert [unnamed[name] for name in names] == [not has_name(function)] * 2
        assert all(exported[name] == 1 for name in fortran_names(function))
        assert str(number) in numbers
    assert fortran_names(BY_NAME["MPI_Send"]) == ("mpi_send_", "mpi_send_f08_", "mpi_send_f08ts_")
    assert fortran_names(BY_NAME["MPI_Status_c2f"]) == ()


def test_calls_that_communicate_have_their_body_in_each_wrapper() -> None:
    text = "".join(wrapper_texts().values())
    often = "Send Recv Isend Irecv Sendrecv Wait Waitall Testsome Start Startall Probe Iprobe Mprobe Improbe Mrecv Put"
    often += (
        " Get Accumulate Win_flush Win_fence Allreduce Ibcast Neighbor_alltoallw Comm_rank Comm_size Send_c Bcast_c"
    )
    for name in often.split():
        assert is_often(BY_NAME[f"MPI_{name}"])
        assert f"SEATRIAL_BODY body_MPI_{name}(" in text
    seldom = (
        "Comm_dup Type_commit Info_set Send_init Allreduce_init File_open File_write_at Win_create Init Session_init"
    )
    for name in seldom.split():
        assert not is_often(BY_NAME[f"MPI_{name}"])
        assert f"SEATRIAL_BODY body_MPI_{name}(" not in text


def test_units_are_alike_in_size() -> None:
    sizes = [len(text) for name, text in wrapper_texts().items() if name.startswith("wrappers_")]
    assert len(sizes) == 8 and max(sizes) < 1.1 * min(sizes)


def test_wrappers_are_not_generated_from_other_files_than_those_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_LOADED_FROM", ())
    with pytest.raises(BuildError, match="have changed since"):
        run._wrapper_texts()


def test_the_library_is_built_again_if_what_generates_its_wrappers_changes() -> None:
    """Whatever these modules import of the profiler is among them, but for the names of bounds."""
    folder = Path(run.__file__).parents[1]
    listed = {f"seatrial.profiler.{name.removesuffix('.py').replace('/', '.')}" for name in run.GENERATOR}
    for name in run.GENERATOR:
        assert (folder / name).is_file()
        if name.endswith(".py"):
            nodes = ast.walk(ast.parse((folder / name).read_text()))
            imported = {node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module}
            own = {module for module in imported if module.startswith("seatrial.")}
            assert own <= {*listed, "seatrial.model.frozen", "seatrial.profiler.profile"}, name
