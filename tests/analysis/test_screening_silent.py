"""Nodes with which there are no messages: by `mpi.pairs` on two nodes at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from analysis.made_up_fleets import fleet
from analysis.made_up_folders import MadeUpFolder, noisy
from msgspec.structs import replace

from seatrial.analysis.screening.inputs import pair_alone, was_tried
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.analysis.screening.silent import next_pairs
from seatrial.jobs.screen import screen
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Stage, State
from seatrial.model.study.screen import NodePair, Screen
from seatrial.report.documents.history import screen_document
from seatrial.report.screen.article import cluster_page
from seatrial.report.screen.words import headline
from seatrial.report.text.history import screen_text
from seatrial.store.writers import RecordWriter

LATE = "timed out: ended after 30 s"


def measured(silent: set[str], number: int, bad_pairs: frozenset[NodePair] = frozenset()) -> dict[NodePair, str]:
    """What the rounds of a screen find where nodes of `silent` exchange no messages."""
    nodes, tried = [f"n{k + 1}" for k in range(number)], dict[NodePair, str]()
    while pairs := next_pairs(nodes, tried, [("n1", "n3"), ("n2", "n4")]):
        assert len({node for pair in pairs for node in pair}) == 2 * len(pairs), "each node is in one pair at a time"
        tried |= {pair: LATE if silent & set(pair) or pair in bad_pairs else "" for pair in pairs}
    return tried


def screened(tried: Mapping[NodePair, str]) -> Screen:
    return screen_cluster(replace(fleet(random.Random(4), 4, 4), tried_pairs=tried, switch_of={}))


@pytest.mark.parametrize("number", [3, 4, 5, 33])
@pytest.mark.parametrize("node", ["n1", "n3"])
def test_the_node_that_pairs_without_a_result_have_in_common_is_named(number: int, node: str) -> None:
    tried = measured({node}, number)
    assert len(tried) <= number + 2
    found = screened(tried)
    (odd,) = found.odd
    assert (odd.kind.value, odd.what, odd.nodes, odd.value) == ("link", f"link of {node}", (node,), 2.0)
    assert headline(found).endswith(f"link of {node}")
    said = " ".join(screen_text(found).split())
    assert f"had no result on any of 2 pairs with {node}" in said and LATE in said
    assert "2 pairs" in cluster_page(found) and f"any of 2 pairs with {node}" in cluster_page(found)
    assert f"any of 2 pairs with {node}" in json.dumps(screen_document(found)["odd"])


def test_two_silent_nodes_of_eight_are_both_named() -> None:
    assert {one.what for one in screened(measured({"n3", "n4"}, 8)).odd} == {"link of n3", "link of n4"}


@pytest.mark.parametrize(
    ("tried", "said"),
    [
        (measured(set(), 4), "each of 2 pairs of nodes had a result by itself"),
        (measured({"n1", "n2", "n3", "n4"}, 4), "no node is common to the pairs without a result"),
        (measured(set(), 4, frozenset({("n1", "n2")})), "measured two nodes at a time: n1 - n2 (timed out"),
    ],
)
def test_where_no_node_is_in_common_the_screen_says_so(tried: Mapping[NodePair, str], said: str) -> None:
    found = screened(tried)
    assert not found.odd
    (text,) = [text for text in found.not_screened if "no node is common" in text]
    assert said in text and text in " ".join(screen_text(found).split()) and "no node is common" in cluster_page(found)


def test_only_what_ran_or_met_nodes_that_do_not_answer_counts() -> None:
    left_out = "node_placement: n3 cannot be used: n3 is left out (srun: error: Communication connection failure)"
    other = "nodes=2: Slurm job 1 has 1 like this one; left out: n3 (64 instead of 32 CPUs)"
    assert was_tried(Outcome(State.SKIPPED, left_out)) and not was_tried(Outcome(State.SKIPPED, other))
    assert was_tried(Outcome.timed_out(30.0, "")) and was_tried(Outcome.ok())
    assert not was_tried(Outcome.failed(Stage.LAUNCH, "place: cannot bind the rank")) and not was_tried(
        Outcome.unsupported("mpi", "no MPI library")
    )
    assert pair_alone({"node_placement": "n1+n3"}) == pair_alone({"node_placement": "n[1,3]"}) == ("n1", "n3")
    for placement in ("auto", "packed", "n1+n2+n3", "n1+n1"):
        assert pair_alone({"node_placement": placement}) is None


def test_pairs_without_results_in_a_folder_name_their_node(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path / "results")
    for k in range(1, 5):
        made.add(noisy(1e9, 6, seed=k), host=f"n{k}")
    for k, (pair, why) in enumerate({**measured({"n3"}, 4), ("n1", "n2", "n3", "n4"): LATE}.items()):
        several: dict[str, Any] = {"nodes": 4} if len(pair) > 2 else {"nodes": 2, "node_placement": "+".join(pair)}
        experiment = Experiment("mpi.pairs", {"ranks": len(pair), **several}, "env", "program", "machine-n1")
        made.folder.put("experiments", experiment.id, experiment.document())
        writer = RecordWriter(made.folder, pair[0])
        outcome = Outcome(State.TIMED_OUT, why.partition(": ")[2]) if why else Outcome.ok()
        seen = {"host": pair[0], "hosts": list(pair)}
        writer.append(RepeatRecord(experiment.id, 0, 0, 1.8e9 + k, 0.3, outcome, (), {}, seen))
        writer.close()
    found = screen([made.folder.path])
    assert [one.what for one in found.odd] == ["link of n3"]
    (failed,) = [text for text in found.not_screened if "timed out" in text]
    assert failed == "mpi.pairs timed out on n1, n2, n3, n4: ended after 30 s", "the finding has the others"
