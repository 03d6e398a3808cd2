"""`seatrial.profile/1`: valid against its schema, its sums agree, and the fast way writes the same."""

from __future__ import annotations

import json

import numpy as np
import pytest
from published_schemas import check
from report.profile.profile_samples import SAMPLES, crash

from seatrial.report.profile.document import number_rows, profile_document, profile_json


@pytest.mark.parametrize("name", SAMPLES)
def test_it_is_valid_and_written_alike_both_ways(name) -> None:
    profile = SAMPLES[name]()
    document = profile_document(profile, 0)
    check(document, "profile-1")
    text = "".join(profile_json(profile, 0))
    assert json.loads(text, parse_constant=pytest.fail) == document


def test_its_sums_agree() -> None:
    document = profile_document(crash(), 3)
    assert document["exit_status"] == 3 and document["complete"] and document["overflow"] == 0
    assert document["mpi_s"] == pytest.approx(sum(call["time_s"] for call in document["calls"]))
    assert document["mpi_s"] == pytest.approx(sum(rank["mpi_s"] for rank in document["per_rank"]))
    assert document["wall_s"] == pytest.approx(sum(rank["wall_s"] for rank in document["per_rank"]))
    assert document["mpi_s"] == pytest.approx(sum(document["over_time"]["mpi_s"]), rel=0.5)
    for call in document["calls"]:
        own = [size for size in document["sizes"] if size["call"] == call["call"]]
        places = [site for site in document["callsites"] if site["call"] == call["call"]]
        for field in ("count", "bytes"):
            assert call[field] == sum(one[field] for one in own) == sum(one[field] for one in places)
    for end, field in (("src", "sent_bytes"), ("dst", "recv_bytes")):
        for rank in document["per_rank"]:
            assert rank[field] == sum(pair["bytes"] for pair in document["matrix"] if pair[end] == rank["rank"])


def test_an_incomplete_profile_is_marked() -> None:
    document = profile_document(crash(incomplete=True), None)
    assert not document["complete"] and document["exit_status"] is None and document["overflow"] == 31 * 12
    assert document["trust"]["missing_ranks"] == [3] and document["trust"]["unfinished_ranks"] == [7]
    assert document["ranks"] == 32 and len(document["per_rank"]) == 31


def test_rows_of_numbers() -> None:
    columns = {"a": np.array([0, 7, 10, 2**64 - 1], np.uint64), "b": np.array([0, 0, 0, 0], np.uint64)}
    rows = json.loads(f"[{''.join(number_rows(columns))}]")
    assert rows == [{"a": 0, "b": 0}, {"a": 7, "b": 0}, {"a": 10, "b": 0}, {"a": 2**64 - 1, "b": 0}]
    many = np.arange(200_000, dtype=np.uint64)
    assert [row["n"] for row in json.loads(f"[{''.join(number_rows({'n': many}))}]")] == list(range(200_000))
