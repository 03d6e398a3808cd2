"""Nodes that lose packets: by counters of TCP beside each repeat, as a cluster of four nodes counted them."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

import pytest
from analysis.made_up_fleets import fleet
from msgspec.structs import replace

from seatrial.analysis.screening.columns import late_bursts
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome, Sample
from seatrial.model.study.screen import Screen
from seatrial.report.screen.words import headline
from seatrial.report.text.history import screen_text

SENT_AGAIN, NEEDLESSLY, AFTER_A_GAP = "TcpRetransSegs", "TcpExtTCPDSACKRecvSegs", "TcpExtTCPOFOQueue"
TO_N3 = {SENT_AGAIN: (184, 156, 8, 190), NEEDLESSLY: (14, 5, 8, 8), AFTER_A_GAP: (0, 1, 762, 0)}
"""One repeat of mpi.pairs, where one of a hundred packets to n3 was dropped."""
FROM_N3 = {SENT_AGAIN: (4, 6, 530, 9), NEEDLESSLY: (4, 6, 9, 9), AFTER_A_GAP: (250, 231, 0, 262)}
CLEAN = {SENT_AGAIN: (16, 7, 4, 4), NEEDLESSLY: (16, 7, 4, 4), AFTER_A_GAP: (0, 0, 0, 1)}
FULL = {SENT_AGAIN: (150, 130, 180, 160), NEEDLESSLY: (8, 5, 7, 9), AFTER_A_GAP: (300, 320, 290, 410)}


def counts(values: Mapping[str, Sequence[int]]) -> dict[str, dict[str, int]]:
    return {f"n{k + 1}": {name: own[k] for name, own in values.items() if own[k]} for k in range(4)}


def screened(*repeats: Mapping[str, Sequence[int]]) -> Screen:
    given = replace(fleet(random.Random(4), 4, 4), counts_of_repeats=tuple(map(counts, repeats)), switch_of={})
    return screen_cluster(given)


@pytest.mark.parametrize(("lossy", "counter"), [(TO_N3, AFTER_A_GAP), (FROM_N3, SENT_AGAIN)])
def test_the_node_whose_packets_are_lost_is_named(lossy: Mapping[str, Sequence[int]], counter: str) -> None:
    found = screened(lossy, lossy, CLEAN, lossy, lossy)
    (odd,) = found.odd
    assert (odd.what, odd.nodes, odd.figure) == ("link of n3", ("n3",), f"TCP {counter}")
    assert headline(found) == "1 odd in 4 nodes: link of n3"
    said = screen_text(found)
    assert "in 4 of 5 repeats" in said and "link link" not in said


@pytest.mark.parametrize(
    "repeats", [(CLEAN,) * 6, (FULL,) * 6, (CLEAN, TO_N3, CLEAN, CLEAN), (TO_N3, FULL, CLEAN, FULL)]
)
def test_nobody_is_named_without_losses_in_full_use_or_once(repeats: Sequence[Mapping[str, Sequence[int]]]) -> None:
    assert not screened(*repeats).odd


def visit(a: int, b: int, worst_s: float) -> Sample:
    return Sample("bandwidth", 0, 17.5e-3, {"ops": 2}, point={"a": a, "b": b}, extra={"worst_s": worst_s})


def repeat_of(visits: Sequence[Sample]) -> RepeatRecord:
    return RepeatRecord("e", 0, 0, 0.0, 1.0, Outcome.ok(), tuple(visits), (), {})


def test_late_bursts_of_the_pairs_of_one_node_name_it_without_tcp() -> None:
    visits = [visit(a, b, 0.22 if 2 in (a, b) else 18e-3) for a in range(4) for b in range(a + 1, 4)] * 2
    late = late_bursts(("n1", "n2", "n3", "n4"), repeat_of(visits))
    assert {one["host"]: one["grew_by"] for one in late} == {"n1": 2, "n2": 2, "n3": 6, "n4": 2}
    found = screened(*[{"late_bursts": (2, 2, 12, 2)}] * 3)
    assert [(one.what, one.figure) for one in found.odd] == [("link of n3", "messages late_bursts")]
    assert not screened(*[{"late_bursts": (2, 2, 2, 2)}] * 9).odd
