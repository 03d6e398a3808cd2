from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.program import parse_record

HELLO = {"ev": "hello", "v": 1, "program": "p", "build": "k", "rank": 0, "ranks": 1, "host": "h", "cpus": [[0], [1]]}
SAMPLE = {"ev": "sample", "series": "s", "rank": 0, "i": 0, "elapsed_s": 1e-3, "work": {"bytes": 8}, "clock": [1, 2]}


def lines(*events: object) -> bytes:
    return b"".join(json.dumps(event).encode() + b"\n" for event in events)


def test_a_whole_record() -> None:
    record = parse_record(
        lines(
            HELLO,
            SAMPLE,
            {"ev": "check", "name": "c", "value": 0},
            {"ev": "note", "key": "k", "value": "v"},
            {"ev": "end"},
        )
    )
    assert record.hello is not None and record.hello.cpus == ((0,), (1,))
    assert record.ended and record.checks == {"c": 0.0} and record.notes == {"k": "v"}
    assert record.samples[0].work == {"bytes": 8} and record.samples[0].extra == {"clock": [1, 2]}


def test_a_record_without_an_end_is_not_ended() -> None:
    assert not parse_record(lines(HELLO, SAMPLE)).ended


def test_a_skip_is_an_end_with_a_reason() -> None:
    record = parse_record(lines(HELLO, {"ev": "skip", "reason": "needs 3 GB"}))
    assert record.ended and record.skip == "needs 3 GB"


def test_an_incomplete_last_line_is_ignored() -> None:
    record = parse_record(lines(HELLO, SAMPLE) + b'{"ev":"en')
    assert len(record.samples) == 1 and not record.ended


def test_null_stands_for_values_that_are_not_finite() -> None:
    record = parse_record(lines(HELLO, {**SAMPLE, "elapsed_s": None}, {"ev": "check", "name": "c", "value": None}))
    assert math.isnan(record.samples[0].elapsed_s) and record.checks == {"c": None}


@pytest.mark.parametrize(
    "events",
    [
        [SAMPLE],
        [{**HELLO, "v": 2}],
        [HELLO, {"ev": "surprise"}],
        [HELLO, {"ev": "end"}, SAMPLE],
        [HELLO, {**SAMPLE, "elapsed_s": "soon"}],
        [HELLO, {"ev": "sample"}],
        [[]],
        [None],
    ],
)
def test_a_violation_of_the_protocol_is_reported_with_its_line(events: list[object]) -> None:
    with pytest.raises(ProtocolError, match=f"line {len(events)}|line 2|line 3"):
        parse_record(lines(*events))


@given(st.binary(max_size=200))
def test_any_bytes_give_a_record_or_a_protocol_error(data: bytes) -> None:
    with suppress(ProtocolError):
        parse_record(lines(HELLO) + data)
