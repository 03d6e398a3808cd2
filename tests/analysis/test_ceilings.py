"""Measured ceilings: what stands in where a physical limit is unknown."""

from __future__ import annotations

from dataclasses import replace

import pytest
from analysis.test_rules_expectation import made, result

from seatrial.analysis.roles import with_ceilings
from seatrial.benchmarks import benchmark_named
from seatrial.model.machine.limit import Basis


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


@pytest.mark.parametrize(
    ("rates", "lowest", "basis"),
    [
        ({"triad": 1e9, "one": 1e12, "all": 2e12}, 1e9 / 432, "triad"),
        ({"triad": 1e12, "one": 1e9, "all": 2e9}, 2 * 1e9 / 816, "one core"),
        ({"triad": 1e12, "one": 1e9, "all": 1.5e9}, 1.5e9 / 816, "all cores"),  # at a lower clock than one alone
        ({"all": 2e9}, 2e9 / 816, "all cores"),
    ],
)
def test_the_crash_code_has_the_lower_of_two_roofs(rates: dict[str, float], lowest: float, basis: str) -> None:
    impact, stream, peak = map(benchmark_named, ("apps.impact", "memory.stream", "cpu.peak"))
    of_streams = [
        result(
            replace(made(rates["triad"], None, name="triad"), unit="B/s"),
            benchmark=stream.name,
            **stream.point({"nontemporal": True, "threads": 2}),
        )
        for _ in range("triad" in rates)
    ]
    of_peaks = [
        result(
            replace(made(rates[cores], None, name="fma"), unit="flop/s"),
            benchmark=peak.name,
            **peak.point({"precision": "fp64", "cores": cores}),
        )
        for cores in ("one", "all")
        if cores in rates
    ]
    point = impact.point({"ranks": 2, "nodes": 1, "elements": 1000, "steps": 100})
    updates = result(replace(made(1e3, None, name="element_updates"), unit="op/s"), benchmark=impact.name, **point)
    (figure,) = with_ceilings(impact, updates, [*of_streams, *of_peaks]).figures
    assert figure.limit is not None and figure.limit.value == pytest.approx(lowest)
    assert basis in figure.limit.derivation
    nodes = {**point, "ranks": 4, "nodes": 2}
    on_two = with_ceilings(impact, replace(updates, experiment=replace(updates.experiment, parameters=nodes)), of_peaks)
    if "all" in rates and basis == "all cores":
        assert on_two.figures[0].limit is not None
        assert on_two.figures[0].limit.value == pytest.approx(2 * lowest), "each node has its own cores"
