"""Input and output of a profile in sentences, on the page and in the document."""

from __future__ import annotations

import re

import pytest
from report.profile.profile_samples import crash, with_io

from seatrial.profiler.profile_io import IoSeries, IoTotals, ProfileIo, RankIo
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.io_words import io_lines
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text
from seatrial.stats.bursts import recurring

MIB = 1 << 20


def test_amounts_ranks_and_times() -> None:
    profile = with_io()
    assert profile.io is not None
    lines = io_lines(profile.io)
    assert lines[0].startswith("The ranks read 470 MB and wrote 67.1 MB; storage devices read 235 MB and wrote 67.1 MB")
    assert lines[1:] == [
        "All ranks read about the same amount",
        "100 % of the bytes are read in the first 400 ms",
        "Rank 0 wrote 100 % of all bytes",
        "Writes come in 4 bursts, 2.00 s apart",
        "The I/O of rank 3 is unknown: Permission denied",
    ]
    text = profile_text(profile)
    assert "Input and output over time\n  The ranks read 470 MB" in text and "Rank 0 wrote 100 %" in text


def test_the_page_has_it_on_the_time_axis_of_mpi() -> None:
    html = profile_page([with_io()])
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", html)
    assert titles.index("Input and output over time") == titles.index("Over time") + 1
    assert "Input and output by rank" in titles and "requested by rank 0" in html and "disks of the nodes" in html
    assert "Input and output" not in profile_page([crash()])


def test_the_document_has_it_or_null() -> None:
    assert profile_document(crash(4), 0)["io"] is None
    io = profile_document(with_io(), 0)["io"]
    first, unknown = io["per_rank"][0], io["per_rank"][3]
    assert first["written_bytes"] == 64 * MIB and unknown["written_bytes"] is None
    assert unknown["error"] == "Permission denied" and first["error"] is None
    assert sum(io["over_time"]["written_bytes"]) == pytest.approx(64 * MIB)
    assert io["nodes"][0]["nfs_read_bytes"] is None and len(io["nodes"][0]["disk_read_bytes"]) == 50


def of(written: list[list[float]], is_to_end: bool = True) -> ProfileIo:
    """Ranks by what they write in each second."""
    ranks = [
        RankIo(
            rank,
            "node1",
            IoTotals(0, int(sum(bins)), 0, 9, 0, 0, 0, is_to_end=is_to_end),
            IoSeries(*(type(IoSeries().read_B)("d", row) for row in ([0.0] * len(bins), bins, bins, bins))),
        )
        for rank, bins in enumerate(written)
    ]
    return ProfileIo(1.0, len(written[0]), tuple(ranks))


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ([[50 * MIB] * 20] * 4, "All ranks wrote about the same amount"),
        ([[50 * MIB] * 20, *[[10 * MIB] * 20] * 3], "Rank 0 wrote 62 % of all bytes"),
        ([[60 * MIB] * 20, [40 * MIB] * 20], None),
        ([[10.0] * 20, [0.0] * 20], None),
    ],
)
def test_who(written: list[list[float]], said: str | None) -> None:
    assert io_lines(of(written))[1:] == ([said] if said else [])


def test_a_killed_program_has_no_end() -> None:
    assert "MPI_Finalize was not reached" in io_lines(of([[50 * MIB] * 20], is_to_end=False))[-1]


@pytest.mark.parametrize(
    ("series", "expected"),
    [
        ([0, 9, 0, 0, 9, 0, 0, 9, 0], (3, 3.0)),
        ([0, 9, 8, 0, 0, 9, 9, 0, 0, 7, 0], (3, 4.0)),
        ([0, 9, 0, 0, 9, 0, 0, 0, 0, 0, 0, 9], None),
        ([9] * 9, None),
        ([0] * 9, None),
        ([9, 0, 9], None),
        ([], None),
    ],
)
def test_bursts(series: list[float], expected: tuple[int, float] | None) -> None:
    assert recurring(series) == expected
