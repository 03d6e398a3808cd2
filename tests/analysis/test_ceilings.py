"""Measured ceilings: what stands in where a physical limit is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.test_rules_expectation import made, result

from seatrial.analysis.ceilings import with_ceilings
from seatrial.benchmarks import benchmark_named
from seatrial.model.limit import Basis


def test_a_ceiling_of_another_unit_is_of_the_best_of_its_roles() -> None:
    """HPCG moves 12 B for 2 flop: the best stream through memory gives its ceiling, in flop/s."""
    stream = benchmark_named("memory.stream")
    streams = [
        result(
            *(replace(made(rate, None, name=name), unit="B/s") for name, rate in (("copy", 24e9), ("triad", 12e9))),
            benchmark="memory.stream",
            **stream.point({"nontemporal": nontemporal}),
        )
        for nontemporal in (True, False)
    ]
    hpcg = benchmark_named("apps.hpcg")
    rated = result(replace(made(3e9, None, name="rating"), unit="flop/s"), benchmark="apps.hpcg", **hpcg.point({}))
    (figure,) = with_ceilings(hpcg, rated, streams).figures
    assert figure.limit is not None and figure.limit.basis is Basis.MEASURED
    assert figure.limit.value == pytest.approx(24e9 / 6) and figure.limit.unit == "flop/s"
    assert "best non-temporal rate of memory.stream measured here" in figure.limit.derivation
    (alone,) = with_ceilings(hpcg, rated, streams[1:]).figures
    assert alone.limit is None
