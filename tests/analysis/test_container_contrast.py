"""What a container changes: facts of both sides, and causes only where they can slow a figure down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from report.study_samples import comparison

from seatrial.analysis.container_contrast import MessagePaths, container_contrast, modules_of
from seatrial.analysis.fairness.differences import differences
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.model.study.comparison import (
    Breakdown,
    Change,
    ChangeDiagnosis,
    Comparison,
    ContainerContrast,
    ContainerCost,
    Cost,
    Verdict,
)
from seatrial.model.study.result import Compared
from seatrial.report.documents.compare import compare_document
from seatrial.report.studies.container_section import cost_lines
from seatrial.report.text.compare import compare_text

CONTAINER: Mapping[str, Any] = {
    "image": "app",
    "digest": f"sha256:{'a' * 64}",
    "kind": "folder",
    "runtime": "Charliecloud",
    "version": "0.31",
    "own_namespaces": ["mnt", "user"],
    "root": "ext4 (ro,relatime)",
    "variables": {"added": ["USER"], "removed": [], "changed": ["TMPDIR"]},
    "mpi": "outside",
    "ranks": {"world": 2, "user_namespaces": 2, "libraries": {"libmpi.so.40": ["aa"]}},
}
WITH = {"transport_cross_memory": "yes", "transport_single_copy": "1 (cma)", "mpi_version": "Open MPI v4.1.4, more"}
OFF = {**WITH, "transport_single_copy": "3 (none)"}
REFUSED = {**WITH, "transport_cross_memory": "no (Operation not permitted)", "transport_single_copy": "4 (emulated)"}
LIBS = {"libmpi.so.40": "aa", "libc.so.6": "cc"}
MODULES = ["mca_btl_vader.so", "mca_btl_self.so", "mca_pml_ob1.so", "libz.so.1"]


def side(number: int, seen: Mapping[str, Any], benchmark: str = "mpi.latency") -> SideFacts:
    """A side whose only experiment is that of `comparison`."""
    key = f"{number}" * 16
    record = RepeatRecord(key, 0, 0, 1.0, 1.0, Outcome.ok(), seen=seen)
    return SideFacts({key: Experiment(benchmark, {}, "", "", "")}, {key: (record,)})


def seen(
    notes: Mapping[str, Any] = WITH, *, inside: bool = False, modules: Sequence[str] = MODULES, **more: Any
) -> dict[str, Any]:
    found = {"notes": dict(notes), "libs": dict(LIBS), "added_libs": list(modules), **more}
    return {**found, "container": dict(CONTAINER)} if inside and "container" not in more else found


def latency(ratio: float, size_B: int, benchmark: str = "mpi.latency") -> Comparison:
    return comparison(
        "one_way", ratio, better=Better.LOWER, unit="s", parameters={"size_B": size_B}, benchmark=benchmark
    )


def contrast_of(
    first: dict[str, Any], second: dict[str, Any], *comparisons: Comparison, breakdowns: Sequence[Breakdown] = ()
) -> ContainerContrast:
    found = container_contrast(side(0, first), side(1, second), comparisons, breakdowns)
    assert found is not None
    return found


def costs_of(first: dict[str, Any], second: dict[str, Any], *comparisons: Comparison) -> list[ContainerCost]:
    return list(contrast_of(first, second, *comparisons).costs)


@pytest.mark.parametrize(
    ("notes", "words"), [(OFF, "does not use it: none"), (REFUSED, "no (Operation not permitted)")]
)
def test_lost_cross_memory_attach_is_named_for_large_messages_only(notes: dict[str, Any], words: str) -> None:
    large = latency(1.4, 4 << 20)
    small = comparison("one_way", 1.001, half=0.001, better=Better.LOWER, unit="s", parameters={"size_B": 8},
                       benchmark="mpi.latency")  # fmt: skip
    assert small.verdict is Verdict.SAME
    (cost,) = costs_of(seen(), seen(notes, inside=True), small, large)
    assert cost.cost is Cost.CROSS_MEMORY and cost.on == "candidate" and words in cost.candidate
    assert cost.figures == (large,) and cost.spared == (small,) and cost.baseline == "yes (cma)"
    (unknown,) = costs_of(seen(), seen(notes, inside=True), latency(1.4, 8))
    assert unknown.cost is Cost.NOT_KNOWN


def test_nothing_is_named_where_nothing_is_slower() -> None:
    found = contrast_of(seen(), seen(OFF, inside=True), comparison("one_way", 1.0, half=0.001, benchmark="mpi.latency"))
    assert not found.costs
    undecided = comparison("one_way", 1.05, half=0.2, benchmark="mpi.latency")
    assert not costs_of(seen(), seen(OFF, inside=True), undecided)


def test_the_slower_side_may_be_the_baseline() -> None:
    (cost,) = costs_of(seen(OFF, inside=True), seen(), latency(0.7, 4 << 20))
    assert cost.on == "baseline" and cost.cost is Cost.CROSS_MEMORY
    assert cost.candidate == "yes (cma)"


def test_what_is_not_recorded_is_no_evidence() -> None:
    """Records of earlier versions have no notes on transports."""
    old = {"mpi_version": "Open MPI v4.1.4"}
    (cost,) = costs_of(seen(old), seen(OFF, inside=True), latency(1.4, 4 << 20))
    assert cost.cost is Cost.NOT_KNOWN
    assert MessagePaths().copies_once is None and MessagePaths().copying == "not recorded"


def test_another_transport_and_another_library_are_named() -> None:
    other = seen(inside=True, modules=["mca_btl_tcp.so", "mca_pml_ob1.so"], libs={**LIBS, "libmpi.so.40": "bb"})
    found = {cost.cost: cost for cost in costs_of(seen(), other, latency(3.0, 8))}
    assert set(found) == {Cost.TRANSPORT, Cost.MPI_LIBRARY}
    assert (found[Cost.TRANSPORT].baseline, found[Cost.TRANSPORT].candidate) == ("btl vader", "btl tcp")
    assert modules_of(["libuct_cma.so.0", "libuct_ib.so.0", "libz.so"]) == ("uct cma", "uct ib")


def test_a_file_system_in_user_space_is_named_where_files_are_read() -> None:
    fuse = seen(container={**CONTAINER, "root": "fuse.squashfuse (ro,nosuid)"})
    start = comparison("start", 1.4, better=Better.LOWER, unit="s", parameters={}, benchmark="container.start")
    (cost,) = costs_of(seen(inside=True), fuse, start)
    assert cost.cost is Cost.USER_FILES and cost.candidate == "fuse.squashfuse"
    (other,) = costs_of(seen(inside=True), fuse, comparison("triad", 0.7, parameters={}))
    assert other.cost is Cost.NOT_KNOWN


def test_the_profile_says_how_much_is_in_the_calls() -> None:
    cause = ChangeDiagnosis(Change.TRANSFER, 0.8)
    breakdown = Breakdown("mpi.latency", {}, "a", "b", None, (), diagnoses=(cause,))
    (cost,) = contrast_of(seen(), seen(OFF, inside=True), latency(1.4, 4 << 20), breakdowns=[breakdown]).costs
    assert cost.share == 0.8


def test_the_facts_of_both_sides_stand_beside_each_other() -> None:
    found = {one.name: one for one in contrast_of(seen(), seen(inside=True)).facts}
    assert found["runs in"].baseline == "no container" and "Charliecloud 0.31" in str(found["runs in"].candidate)
    assert found["user namespaces"].candidate == "2 user namespaces for all ranks"
    assert "(outside)" in str(found["ranks"].candidate) and found["libraries"].baseline == found["libraries"].candidate
    assert not found["MPI library"].is_unlike and found["MPI library"].baseline == "Open MPI v4.1.4"
    other = seen(inside=True, libs={**LIBS, "libc.so.6": "dd"})
    found = {one.name: one for one in contrast_of(seen(), other).facts}
    assert (found["library libc.so.6"].baseline, found["library libc.so.6"].candidate) == ("cc", "dd")


def test_sides_without_containers_have_no_contrast() -> None:
    assert container_contrast(side(0, seen()), side(1, seen(OFF)), (), ()) is None
    assert container_contrast(side(0, {}), side(1, {"container": 7, "libs": 7, "notes": 7}), (), ()) is None


def test_words_and_document_agree() -> None:
    large = latency(1.4, 4 << 20)
    found = contrast_of(seen(), seen(REFUSED, inside=True), large)
    compared = Compared("no container", "container app", (large,), (), containers=found)
    (line,) = cost_lines(compared)
    assert "copied through shared memory, twice instead of once" in line and "40 % higher" in line
    (document,) = compare_document([compared])["containers"]
    assert document["costs"][0]["said"] == line and document["costs"][0]["cause"] == "cross-memory-attach-lost"
    assert document["costs"][0]["figures"][0]["size_B"] == 4 << 20
    text = " ".join(compare_text([compared]).split())
    assert "What the container changes: container app against no container" in text and "namespaces" in text


def test_the_runtime_before_a_program_is_no_other_command() -> None:
    """It was an unintended difference, as were the arguments that only a program without a parent states."""
    words = ["stream", "--record", "/x", "--cpus", "0", "--array-bytes", "64"]
    bare = {"command": ["/c/stream", *words[1:5], "--parent", "7", *words[5:]], "notes": {}}
    within = {"command": ["ch-run", "/app", "--", "/mnt/stream", *words[1:]], "notes": {"arguments": ["--array-bytes"]}}
    sides = side(0, bare, "memory.stream"), side(1, {**within, "container": dict(CONTAINER)}, "memory.stream")
    found = [one.what for one in differences(*sides, "environment.container") if not one.intended]
    assert not found
    other = {**within, "command": [*within["command"][:-1], "128"], "container": dict(CONTAINER)}
    sides = sides[0], side(1, other, "memory.stream")
    assert [one.what for one in differences(*sides, "environment.container") if not one.intended] == ["command line"]
