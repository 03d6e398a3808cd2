"""Quotients of work and time are the same from columns and from samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from seatrial.model.benchmark.quotients import TimePerWork, WorkRate
from seatrial.model.results.sample import Sample, SampleColumns, values_of
from seatrial.store.stored_samples import decoded_groups

QUOTIENTS: Sequence[WorkRate | TimePerWork] = (WorkRate("ops"), TimePerWork("ops"))
GROUP = b'[{"series":"a","point":{},"rank":0,"n":3,"i":[0,1,2],"elapsed_s":%s,"work":%s,"extra":{"x":[1,2,3]}}]'


def group(elapsed_s: bytes, work: bytes) -> SampleColumns:
    (found,) = decoded_groups(GROUP % (elapsed_s, work))
    return found


def outcome(of: Callable[[], list[float]]) -> str:
    try:
        return repr(of())
    except (KeyError, TypeError, ZeroDivisionError) as error:
        return repr(error)


@pytest.mark.parametrize("quotient", QUOTIENTS, ids=repr)
@pytest.mark.parametrize("elapsed_s", [b"[0.1,0.3,1]", b'{"all":7}', b"[0,1,2]", b"[1,null,2]", b'{"all":null}'])
@pytest.mark.parametrize(
    "work", [b'{"ops":[3,1e-300,9007199254740993]}', b'{"ops":{"all":3}}', b'{"ops":[1,0,2]}', b'{"bytes":[1,2,3]}']
)
def test_columns_give_what_samples_give(quotient: WorkRate | TimePerWork, elapsed_s: bytes, work: bytes) -> None:
    columns: SampleColumns = group(elapsed_s, work)

    def one_by_one(sample: Sample) -> float:  # not known as a quotient
        return quotient(sample)

    assert outcome(lambda: quotient.of_columns(columns)) == outcome(lambda: values_of(one_by_one, columns))


def test_a_figure_sees_each_sample_in_turn() -> None:
    columns = group(b"[1,2,3]", b'{"ops":[4,5,6],"bytes":{"all":7}}')
    rows = [(s.i, s.elapsed_s, dict(s.work), dict(s.extra)) for s in _seen(columns)]
    assert rows == [(k, k + 1, {"ops": k + 4, "bytes": 7}, {"x": k + 1}) for k in range(3)]


def _seen(columns: SampleColumns) -> list[Sample]:
    found: list[Sample] = []

    def value(sample: Sample) -> float:
        work, extra = dict(sample.work), dict(sample.extra)
        found.append(Sample(sample.series, sample.i, sample.elapsed_s, work, sample.rank, sample.point, extra))
        return 0.0

    assert values_of(value, columns) == [0.0] * 3
    return found
