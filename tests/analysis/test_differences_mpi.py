"""What two MPI libraries, and two settings of one, bring along; and what they do not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from analysis.test_differences import ENVIRONMENT, SEEN, named, side

from seatrial.analysis.fairness.differences import differences, intent
from seatrial.analysis.fairness.side import Noticed, SideFacts, SideGroup, Topic

OPENMPI = {"name": "openmpi", "family": "openmpi", "version": "4.1.4", "library": "/a/libmpi.so", "variables": {}}
MPICH = {
    "name": "mpich",
    "family": "mpich",
    "version": "4.0.2",
    "library": "/b/libmpich.so",
    "variables": {"MPICH_HOME": "/b"},
}
LIBM = {"libm.so.6": "aa" * 20, "libstdc++.so.6": "bb" * 20}


def seen(libs: Mapping[str, str], variables: Mapping[str, str] | None = None, **notes: Any) -> dict[str, Any]:
    return {
        **SEEN,
        "libs": {**LIBM, **libs},
        "variables": {**SEEN["variables"], **(variables or {})},
        "notes": {**SEEN["notes"], **notes},
    }


def found(axis: str, one: Mapping[str, Any], other: Mapping[str, Any], **documents: Any) -> dict[str, str]:
    """What differs -> intended ("yes"), following ("follows") or nobody asked for ("no")."""
    environments = [{**ENVIRONMENT, **document} for document in documents["documents"]]
    sides = [
        side(seen=records, environment=environment, program=program)
        for records, environment, program in zip((one, other), environments, documents["programs"], strict=True)
    ]
    listed = named(differences(*sides, axis))
    return {
        name: "no" if not item.intended else "follows" if item.follows_from else "yes" for name, item in listed.items()
    }


def test_another_library_brings_its_build_its_libraries_and_its_words() -> None:
    told = found(
        "environment.mpi",
        seen({"libmpi.so.40": "cc" * 20, "libopen-pal.so.40": "dd" * 20}, mpi_version="Open MPI v4.1.4"),
        seen({"libmpich.so.12": "ee" * 20}, {"MPICH_HOME": "/b"}, mpi_version="MPICH 4.0.2"),
        documents=({"mpi": OPENMPI}, {"mpi": MPICH}),
        programs=("build-1", "build-2"),
    )
    assert told["environment mpi version"] == "yes" and told["environment mpi library"] == "yes"
    assert told["note mpi_version"] == "follows" and told["build"] == "follows" if "build" in told else True
    assert {name for name, how in told.items() if how == "no"} == set(), told


@pytest.mark.parametrize(
    ("libs", "variables", "what"),
    [
        ({"libm.so.6": "ff" * 20}, {}, "libm.so.6"),
        ({"libstdc++.so.6": "ff" * 20}, {}, "libstdc++.so.6"),
        ({}, {"OMP_NUM_THREADS": "1"}, "OMP_NUM_THREADS"),
        ({}, {"UCX_TLS": "tcp"}, "UCX_TLS"),
    ],
)
def test_what_no_mpi_brings_along_is_still_seen(libs: dict[str, str], variables: dict[str, str], what: str) -> None:
    told = found(
        "environment.mpi",
        seen({"libmpi.so.40": "cc" * 20}),
        seen({"libmpich.so.12": "ee" * 20, **libs}, variables),
        documents=({"mpi": OPENMPI}, {"mpi": MPICH}),
        programs=("build-1", "build-2"),
    )
    assert [name for name, how in told.items() if how == "no"] == [name for name in told if what in name]
    assert any(what in name for name in told)


def test_a_setting_brings_its_variables_and_what_the_library_then_holds() -> None:
    variables = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,tcp"}
    told = found(
        "environment.transport",
        seen({"libmpi.so.40": "cc" * 20}),
        seen({"libmpi.so.40": "cc" * 20}, variables, control_variables=["btl=self,tcp", "pml=ob1"]),
        documents=({"mpi": OPENMPI}, {"mpi": OPENMPI, "settings": {"transport": "tcp"}, "variables": variables}),
        programs=("build-1", "build-1"),
    )
    assert told.pop("environment settings transport") == "yes"
    assert told and set(told.values()) == {"follows"}, told


def test_the_algorithm_of_a_collective_is_the_axis() -> None:
    told = found(
        "environment.collective_algorithm",
        SEEN,
        seen({}, control_variables=["coll_tuned_allreduce_algorithm=4 (ring)"]),
        documents=({"mpi": OPENMPI}, {"mpi": OPENMPI, "settings": {"collective_algorithm": "allreduce:ring"}}),
        programs=("build-1", "build-1"),
    )
    assert told == {"environment settings collective algorithm": "yes", "note control_variables": "follows"}


def test_a_setting_that_nobody_varied_is_a_difference() -> None:
    told = found(
        "environment.mpi",
        seen({"libmpi.so.40": "cc" * 20}),
        seen({"libmpich.so.12": "ee" * 20}, {"MPIR_CVAR_NOLOCAL": "1"}),
        documents=({"mpi": OPENMPI}, {"mpi": MPICH, "settings": {"transport": "ucx"}}),
        programs=("build-1", "build-2"),
    )
    assert told["environment settings transport"] == "no" and told["variable MPIR_CVAR_NOLOCAL"] == "no"


def test_what_the_machine_did_to_a_run_counts_only_where_it_is_clearly_apart() -> None:
    one, many = seen({}, missed_bursts=3), seen({}, missed_bursts=40)
    assert named(differences(side(seen=one, repeats=1), side(seen=many, repeats=1), "threads")) == {}
    assert "note missed_bursts" in named(differences(side(seen=one), side(seen=many), "threads"))
    facts = seen({}, pages=3), seen({}, pages=40)
    assert "note pages" in named(differences(*(side(seen=told, repeats=1) for told in facts), "threads"))


@pytest.mark.parametrize(
    ("axis", "item", "follows"),
    [
        ("ranks", ("mca_btl_vader.so", None, "e8"), True),  # one rank needs no transport between ranks
        ("nodes", ("mca_btl_tcp.so", None, "e8"), True),
        ("ranks", ("mca_btl_vader.so", "e7", "e8"), False),  # another version of it
        ("precision", ("mca_btl_vader.so", None, "e8"), False),
        ("ranks", ("libm.so.6", None, "e8"), False),
    ],
)
def test_more_ranks_load_modules_of_the_library(axis: str, item: tuple[str, str | None, str], follows: bool) -> None:
    group = SideGroup("apps.impact", SideFacts(), SideFacts())
    ((_, intended, cause),) = intent([Noticed(Topic.LIBRARY, *item)], group, axis)
    assert (intended, cause) == (follows, axis if follows else "")
