"""Records: read back unchanged, or refused."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import ProtocolError
from seatrial.model.results.record import RepeatRecord, decode, encode
from seatrial.model.results.sample import Outcome, Sample, Stage, pack, unpack

finite = st.floats(allow_nan=False, allow_infinity=False)
samples = st.builds(
    Sample,
    series=st.sampled_from(["copy", "triad"]),
    i=st.integers(0, 1000),
    elapsed_s=finite,
    work=st.fixed_dictionaries({"bytes": finite}),
    rank=st.integers(0, 2),
    point=st.sampled_from([{}, {"size_B": 8}, {"size_B": 16}]),
    extra=st.fixed_dictionaries({"chain_s": st.lists(finite, max_size=2)}, optional={"max_rss_B": finite}),
)


def record(*measured: Sample) -> RepeatRecord:
    return RepeatRecord(
        "0123456789abcdef", 3, 17, 1.5e9, 0.25, Outcome.ok(), measured, {"mismatches": 0.0}, {"load_1m": 0.5}
    )


@given(st.lists(samples, max_size=20))
def test_a_record_reads_back_as_it_was_written(measured: list[Sample]) -> None:
    written = record(*measured)
    read = decode(encode(written)[:-1])
    assert sorted(read.samples, key=repr) == sorted(measured, key=repr)
    assert (read.experiment, read.repeat, read.order, read.t0) == (
        written.experiment,
        written.repeat,
        written.order,
        written.t0,
    )
    assert read.checks == written.checks and read.seen == written.seen and read.outcome == written.outcome


def test_a_line_is_one_line() -> None:
    line = encode(RepeatRecord("e", 0, 0, 0.0, 0.0, Outcome.failed(Stage.RUN, "a\nb", "c\nd\u2028")))
    assert line.count(b"\n") == 1 and line.endswith(b"\n")


def test_a_truncated_line_is_refused() -> None:
    line = encode(record(Sample("triad", 0, 1e-3, {"bytes": 1e6})))[:-1]
    for length in range(len(line)):
        with pytest.raises(ProtocolError):
            decode(line[:length])


def test_a_changed_byte_is_refused() -> None:
    line = encode(record(Sample("triad", 0, 1e-3, {"bytes": 1e6})))[:-1]
    for position in range(len(line)):
        broken = bytearray(line)
        broken[position] ^= 1
        with pytest.raises(ProtocolError):
            decode(bytes(broken))


def test_values_that_are_not_finite_are_written_as_null() -> None:
    line = encode(RepeatRecord("e", 0, 0, 0.0, 0.0, Outcome.ok(), (), {"residual": math.nan}, {"x": [math.inf]}))
    assert b'"residual":null' in line and b'"x":[null]' in line


@given(st.lists(samples, max_size=30))
def test_columns_contain_every_sample(measured: list[Sample]) -> None:
    assert sorted(unpack(pack(measured)), key=repr) == sorted(measured, key=repr)


def test_a_constant_column_is_one_value() -> None:
    columns = pack([Sample("triad", i, 1e-3, {"bytes": 24.0}) for i in range(1000)])
    assert columns[0]["work"] == {"bytes": {"all": 24.0}}


@pytest.mark.parametrize("broken", [[{}], [{"n": 2, "i": [1], "elapsed_s": [1.0]}], [3]])
def test_invalid_columns_are_refused(broken: list[object]) -> None:
    with pytest.raises(ProtocolError):
        unpack(broken)
