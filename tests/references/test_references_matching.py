"""Which figures a reference speaks of, and what it is as a side of a comparison."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report.page_samples import experiment, figure, stream

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.results.history import Reference
from seatrial.model.results.sample import Outcome, Stage
from seatrial.references import figures_of_reference, reference_named, reference_side, references_for

TWO_PLAIN = {"threads": 2, "nontemporal": False, "huge_pages": True, "array_B": 1 << 28}
LATENCY = {"size_B": 8, "nodes": 1, "buffers": "host", "datatype": "MPI_CHAR"}


@pytest.fixture(autouse=True)
def no_own_file(monkeypatch, tmp_path):
    monkeypatch.delenv("SEATRIAL_REFERENCES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def ids(*asked) -> list[str]:
    return [reference.id for reference in references_for(*asked)]


def test_all_stated_parameters_are_the_same():
    both = ["levels.triad-stream", "levels.triad-babelstream"]
    assert ids("memory.stream", "triad", TWO_PLAIN, "B/s") == both
    assert ids("memory.stream", "triad", {**TWO_PLAIN, "nontemporal": True}, "B/s") == ["levels.triad-nontemporal"]
    assert ids("memory.stream", "triad", {**TWO_PLAIN, "threads": 64}, "B/s") == []
    assert ids("memory.stream", "triad", {"threads": 2}, "B/s") == []
    assert ids("memory.stream", "copy", TWO_PLAIN, "B/s") == []
    assert ids("memory.stream", "triad", TWO_PLAIN, "1") == []
    assert ids("no.such", "triad", TWO_PLAIN, "B/s") == []


def test_true_is_not_one():
    assert ids("memory.stream", "triad", {"threads": 2, "nontemporal": 0}, "B/s") == []


def test_what_was_sent_from_a_gpu_is_not_held_against_messages_of_the_host():
    host = ids("mpi.latency", "one_way", LATENCY, "s")
    assert host == ["levels.latency-osu-openmpi", "levels.latency-imb-openmpi", "levels.latency-mpich"]
    device = ids("mpi.latency", "one_way", {**LATENCY, "buffers": "device"}, "s")
    assert device == ["s5.latency-k80-gpu2-gpu3", "s5.latency-k80-gpu1-gpu2"]
    assert ids("mpi.latency", "one_way", {**LATENCY, "nodes": "unknown"}, "s") == []


def test_the_figures_of_a_folder_that_a_reference_speaks_of():
    plain, past_caches = stream(None, (38e9, 57e9), 2)
    failed = experiment("memory.stream", "", TWO_PLAIN, outcome=Outcome.failed(Stage.RUN, "it died"))
    reference = reference_named("levels.triad-stream")
    ((result, found),) = figures_of_reference(reference, [past_caches, failed, plain])
    assert result is plain and found.name == "triad"
    point = figure("one_way", 2e-7, None, unit="s", better=Better.LOWER, point={"size_B": 8})
    other = figure("one_way", 3e-7, None, unit="s", better=Better.LOWER, point={"size_B": 16})
    latency = experiment("mpi.latency", "", {"nodes": 1, "buffers": "host"}, [point, other])
    assert figures_of_reference(reference_named("levels.latency-mpich"), [latency]) == ((latency, point),)


def test_a_reference_that_states_nothing_speaks_of_every_point():
    files = experiment("io.file", "", {"direct": True}, [figure("read", 3e9, None, point={"file_B": 1, "record_B": 2})])
    assert len(figures_of_reference(reference_named("s1.flash-read"), [files])) == 1


def test_a_side_has_one_value_and_says_what_it_is():
    side = reference_side(reference_named("s2.hpl-4-v100"))
    assert side.is_reference and side.median == 20e12
    assert side.values == () and side.experiments == () and side.hosts == ()
    assert side.name == (
        "reference s2.hpl-4-v100: more than 20 TFLOP/s, Dell PowerEdge C4130 (other machine, no interval)"
    )
    bare = Reference("x.y", "b", "f", 2.0, "1", Better.HIGHER)
    assert reference_side(bare).name == "reference x.y: 2 (other machine, no interval)"
    assert reference_side(replace(bare, value=3.0)).median == 3.0
