"""The references that ship: all of the published values, each with its source, contradictions on both sides."""

from __future__ import annotations

import pytest

from seatrial.benchmarks import registry
from seatrial.errors import UsageError
from seatrial.model.results.history import Qualifier, Reference
from seatrial.references.loader import shipped_references
from seatrial.references.words import ANOTHER_MACHINE, configuration_text, machine_of, source_text, value_text

COORDINATES = {"size_B", "working_set_B", "file_B", "record_B", "cpu_a", "cpu_b"}

# What the reports print, in SI and in the order of the report: nothing may be lost, nothing may slip a digit.
PUBLISHED = {
    "s1": (
        "5.5e12 665e9 6e9 177e9 48e9 2.8e9 3e9 2.4e9 2.8e9 3.1e9 2.8e9 2 2.2e12 0.40 7 8 1.0e12 1.5e12 13000 1e9 1e9"
    ),
    "s2": (
        "18.3e9 36.5e9 47.9e9 143.7e9 150e9 0.958 231e9 355e9 726e9 0.76 0.95 1.30 20e12 1.44 1.71 1.81 1.05 "
        "1.05 1.78 1.23"
    ),
    "s3": "0.678 0.93 0.93 3 8 12 1.48 1.5 1.7 1.8 2.4 2.61 2.65 2.87 2.82 2.12 1.80 1.90",
    "s4": "1.368e-6 312.5e6 5.33 1.33 3e9 12e9 1.16 23 25 4 1.15 1850 1 1.05 1.05 1.10 1.16 1.30",
    "s5": (
        "2.82e-6 3.18e-6 2.27e-6 2.47e-6 2.43e-6 2.17e-6 2.35e-6 373 188 107 101.51 67.03 33.99 7.07e6 "
        "11864.57e6 6.8e9 72 4 200e9 100e9"
    ),
    "s6": (
        "8.01 1.98 6.64 2.29 2.62 2.78 0.33 0.71 0.93 2.31 9.57 32 16 16 16 16 4 1.08 1.10 1.09 1.08 1.11 "
        "0.77 1.49 2.7e9 2.8e9 1.54 0.71 0.60 0.13 0.12 0.03 0.24 0.04 0.04 0.01 64e3 4 224 15e9 30e9 7e9 "
        "30e9 2e12"
    ),
    "s7": "0.35 0.65 0.93 0.90 0.91",
    "s8": "0.05 8000 0.90 0.83 0.76 15.4 13.8 14.8 13.6 1.63 1.83 1.50 1.64 1.29",
    "s9": "0.02 0.02 0.005",
    "levels": (
        "118.2e9 59.1e9 38.5e9 41.3e9 57e9 109e9 0.92 53.8e9 99e9 109e9 39e9 86e9 94.6e9 3.46e9 0.14e-6 "
        "0.13e-6 0.17e-6 13.2e9 12.7e9 0.22e-6 0.21e-6 0.17e-6 25e-9"
    ),
    "collectives": (
        "479.9e9 485.1e9 487.87e9 338.57e9 79.11e9 337.09e9 189.27e9 40.16e9 882.51e9 609.28e9 568.66e9 923.32e9 "
        "698.74e9 678.57e9 304e9 330e9 350e9 45e9 50e9 513e9"
    ),
}


def by_id() -> dict[str, Reference]:
    return {reference.id: reference for reference in shipped_references()}


def value(name: str) -> float:
    return by_id()[name].value


def test_every_published_value_ships_and_no_other():
    found: dict[str, list[float]] = {}
    for reference in shipped_references():
        found.setdefault(reference.id.split(".")[0], []).append(reference.value)
    assert found.keys() == PUBLISHED.keys()
    for study, values in PUBLISHED.items():
        assert found[study] == pytest.approx([float(value) for value in values.split()], rel=1e-12), study


def test_each_has_a_source_a_machine_and_an_id_of_its_own():
    references = shipped_references()
    assert len(by_id()) == len(references)
    for reference in references:
        assert reference.source and machine_of(reference), reference.id
        assert reference.year is None or 2012 <= reference.year <= 2026, reference.id
        assert reference.source.split(",")[0] in (
            "CSCS",
            "Dell",
            "SDSC",
            "HPC Advisory Council",
            "the seatrial project",
            "NVIDIA",
            "NVIDIA Cluster Readiness Engine",
            "AMD",
            "Intel",
        )


def test_contradictions_are_stated_on_both_sides_and_in_words():
    known = by_id()
    for reference in known.values():
        for other in reference.contradicts:
            assert reference.id in known[other].contradicts
            assert reference.source == known[other].source
        if reference.contradicts:
            assert reference.remark, reference.id


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("s4.transfer-k-printed", "s4.copy-time-k"),
        ("s4.transfer-k-printed", "s4.copy-rate-k"),
        ("s4.hpl-4-time-low", "s4.hpl-4-copying-saved"),
        ("s4.hpl-4-time-high", "s4.hpl-4-copying-saved"),
        ("s5.bandwidth-virtual-64k", "s5.fdr"),
        ("s6.allreduce-of-mpi", "s6.allreduce-of-mpi-other-slide"),
        ("s6.fdr-over-10gbe", "s6.summary-fdr-over-10gbe"),
        ("s6.fdr-over-10gbe", "s6.summary-fdr-over-40gbe"),
        ("s6.fdr-over-10gbe", "s6.implied-fdr-over-10gbe"),
        ("s6.fdr-over-1gbe", "s6.implied-fdr-over-1gbe"),
        ("s6.hybrid-fdr-over-1gbe", "s6.implied-fdr-over-1gbe"),
    ],
)
def test_the_known_contradictions_are_marked(one, other):
    assert other in by_id()[one].contradicts


def test_values_that_follow_from_others_do():
    shares = {net: 1 - value(f"s6.communication-{net}") for net in ("fdr", "10gbe", "1gbe")}
    assert shares["fdr"] / shares["10gbe"] == pytest.approx(value("s6.implied-fdr-over-10gbe"), abs=0.005)
    assert shares["fdr"] / shares["1gbe"] == pytest.approx(value("s6.implied-fdr-over-1gbe"), abs=0.005)
    assert 16e9 / value("s4.copy-time-k") == pytest.approx(value("s4.copy-rate-k"), rel=0.005)
    assert 16e9 / value("s4.copy-time-m") == pytest.approx(value("s4.copy-rate-m"), rel=0.005)
    assert value("s2.p2p-v100-sum") / value("s2.nvlink-v100") == pytest.approx(value("s2.p2p-v100-share"), abs=5e-4)
    assert value("s1.nbody-1024k") / value("s1.peak-node-fp64") == pytest.approx(
        value("s1.nbody-1024k-share"), abs=5e-3
    )
    assert value("levels.dgemm") / value("levels.fma-two-cores") == pytest.approx(value("levels.dgemm-share"), abs=5e-3)
    assert {r.id for r in shipped_references() if r.qualifier is Qualifier.IMPLIED} == {
        *("s4.copy-rate-k", "s4.copy-rate-m", "s6.implied-fdr-over-10gbe", "s6.implied-fdr-over-1gbe")
    }


def test_a_figure_of_ours_has_our_unit_direction_and_settings():
    """A quotient or a share has a name of its own, which none of our figures has."""
    met = set()
    for reference in shipped_references():
        benchmark = registry().get(reference.benchmark)
        if benchmark is None:
            continue
        declared = {figure.name: figure for figure in benchmark.figures}
        if reference.figure not in declared:
            is_a_share = reference.unit == "1" and reference.figure.endswith(("_ratio", "_share"))
            # Reports on applications and GPUs give more than the figures that ours are compared by: crossovers.
            assert is_a_share or benchmark.name.startswith(("apps.", "gpu.")), reference.id
            continue
        figure = declared[reference.figure]
        assert (reference.unit, reference.better) == (figure.unit, figure.better), reference.id
        settings = {parameter.name: parameter for parameter in benchmark.parameters}
        for name, given in reference.parameters.items():
            if name in settings:
                assert settings[name].value_of(given) == given, reference.id
        if reference.parameters.keys() <= settings.keys() | COORDINATES:
            met.add(reference.id)
    assert {"levels.triad-stream", "levels.dgemm", "levels.fma-one-core", "levels.cache-line"} <= met


def test_a_range_has_both_ends_in_order():
    known = by_id()
    lowest = [r for r in known.values() if r.qualifier is Qualifier.LOWEST]
    assert len(lowest) == sum(r.qualifier is Qualifier.HIGHEST for r in known.values()) >= 10
    for low in lowest:
        high = known[low.id.removesuffix("-low") + "-high"]
        assert high.qualifier is Qualifier.HIGHEST and high.value > low.value
        assert (high.unit, high.parameters, high.contradicts) == (low.unit, low.parameters, low.contradicts)


def test_ratios_say_what_is_over_what():
    for reference in shipped_references():
        if reference.figure.endswith("_ratio") and "not stated" not in reference.remark:
            assert {"of", "over"} <= reference.configuration.keys(), reference.id


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        ("s1.peak-node-fp64", "about 5.5 TFLOP/s"),
        ("s1.dgemm-blocks", "up to 1.5 TFLOP/s"),
        ("s1.nbody-1024k", "nearly 2.2 TFLOP/s"),
        ("s2.hpl-4-v100", "more than 20 TFLOP/s"),
        ("s2.p2p-v100-sum", "143.7 GB/s"),
        ("s4.p2p-latency-saved", "1.368 µs"),
        ("s5.neuron-192", "373 s"),
        ("s5.psdns-32", "101.51 s"),
        ("s5.bandwidth-virtual-64k", "11.86457 GB/s"),
        ("s9.lsdyna-container-1", "within 0.02"),
        ("s2.p2p-diagonal-p100-low", "231 GB/s (lowest of a range)"),
        ("s8.largest-global-batch", "up to 8000"),
    ],
)
def test_values_are_spelled_with_the_digits_that_were_published(name, spelled):
    assert value_text(by_id()[name]) == spelled


def test_words_of_a_reference():
    ratio = by_id()["s2.hpl-v100-over-p100"]
    assert configuration_text(ratio) == "V100 over P100; gpus: 1, 2 and 4"
    assert configuration_text(ratio, without=("gpus",)) == "V100 over P100"
    assert configuration_text(by_id()["s3.hpl-efficiency-2"]) == "over Rpeak"
    assert source_text(ratio).count("2017") == 1
    assert ANOTHER_MACHINE == "another machine, no interval"


def test_looking_for_a_value_that_is_not_there(monkeypatch, tmp_path):
    from seatrial.references import reference_named

    monkeypatch.delenv("SEATRIAL_REFERENCES", raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert reference_named("s2.p2p-v100").value == 47.9e9
    with pytest.raises(UsageError, match=r"did you mean s2\.p2p-v100"):
        reference_named("s2.p2p-v10")
