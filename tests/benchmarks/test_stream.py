"""memory.stream's declaration: what can be counted of what moves."""

from __future__ import annotations

import pytest
from made_up import made_up_machine

from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM

POINT = {"threads": 2, "nontemporal": False, "huge_pages": True, "array_B": 128 << 20}


@pytest.mark.parametrize(("name", "share"), [("copy", 16 / 24), ("scale", 16 / 24), ("add", 0.75), ("triad", 0.75)])
def test_plain_stores_cannot_count_all_that_moves(name: str, share: float) -> None:
    attainable = STREAM.figure(name).attainable(POINT)
    assert attainable.share == pytest.approx(share)
    assert attainable.why.startswith(f"plain stores: at most {round(share * 100)} % of it can be counted")
    assert STREAM.figure(name).attainable({**POINT, "nontemporal": True}).share == 1.0


def test_the_ceiling_and_the_attainable_share_speak_of_the_same_bytes() -> None:
    for figure in STREAM.figures:
        assert figure.ceiling is not None
        ceiling = figure.ceiling(POINT)
        assert ceiling is not None and ceiling.factor == pytest.approx(figure.attainable(POINT).share)


def test_all_settings_share_the_limit_of_the_memory() -> None:
    machine = made_up_machine(channels=2)
    for figure in STREAM.figures:
        assert set(figure.one_limit_over) == {parameter.name for parameter in STREAM.parameters}
        assert figure.limit is not None
        values = {figure.limit(machine, {**POINT, "nontemporal": nt, "threads": 1}, ()).value for nt in (True, False)}
        assert len(values) == 1
