"""From records to figures: shares of limits, order of time, limits that became known later."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from made_up import made_up_machine

from seatrial.analysis.experiment_figures import figures_of, outcome_of
from seatrial.analysis.results import all_results, trials_of
from seatrial.benchmarks.cpu.peak import BENCHMARK as PEAK
from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.errors import ProtocolError
from seatrial.model.benchmark.benchmark import Benchmark, Better, Figure
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Sample, State
from seatrial.model.spelling import show
from seatrial.model.study.result import PerRepeat, RecordPlace
from seatrial.report.documents.results import results_document
from seatrial.report.studies.effect import RATIO_RULE, ratio_rule
from seatrial.report.text.results import results_text
from seatrial.store.contents import Contents


def of_the_run(machine: Machine, params: object, samples: list[Sample]) -> Limit:
    clock = samples[0].extra["clock"]
    return Limit(clock, "flop/s", f"at a clock of {clock:g}", Basis.PHYSICAL)


def clocked(better: Better = Better.HIGHER) -> Benchmark:
    figure = Figure("rate", "flop/s", better, WorkRate("flops"), "flop", limit=of_the_run)
    return replace(PEAK, figures=(figure,))


def record(repeat: int, value: float, clock: float = 1.0, *, t0: float | None = None, **more: object) -> RepeatRecord:
    sample = Sample("rate", 0, 1.0, {"flops": value}, extra={"clock": clock})
    given = {"outcome": Outcome.ok(), "samples": (sample,), **more}
    return RepeatRecord("e", repeat, repeat, float(repeat) if t0 is None else t0, 1.0, **given)


def figure(*records: RepeatRecord, better: Better = Better.HIGHER):
    (found,) = figures_of(clocked(better), Machine("m"), {}, records)
    return found


def test_each_repeat_is_held_against_the_clock_of_its_own_run():
    """A boost that comes and goes: value and clock rise together, so every repeat reaches 90 % of its own limit."""
    found = figure(*(record(k, 0.9 * clock, clock) for k, clock in enumerate((1.0, 4.0, 4.0, 1.0, 2.0))))
    assert found.fraction_of_limit == pytest.approx(0.9)
    mixed = figure(record(0, 0.5, 1.0), record(1, 1.8, 2.0), record(2, 2.4, 3.0))
    assert mixed.median == 1.8 and mixed.limit.value == 2.0, "the limit of the repeat with the median"
    assert mixed.fraction_of_limit == pytest.approx(0.9)


def test_a_figure_that_is_better_lower_turns_the_share_round():
    found = figure(record(0, 2.0, 1.0), record(1, 4.0, 3.0), record(2, 8.0, 2.0), better=Better.LOWER)
    assert found.fraction_of_limit == pytest.approx(0.75) and found.limit.value == 3.0


def number(text: str) -> float:
    """Of "58.2 GFLOP/s" or "99.3 %", in SI units."""
    value, _, unit = text.partition(" ")
    return float(value) * {"k": 1e3, "M": 1e6, "G": 1e9, "m": 1e-3, "µ": 1e-6, "%": 0.01}.get(unit[:1], 1.0)


@pytest.mark.parametrize("better", Better)
def test_what_is_printed_beside_each_other_divides(better: Better) -> None:
    """Random clocks: each repeat has its own limit, some have none; the value over the limit is the share, in digits
    as printed, on the terminal, in the table of the page and in JSON."""
    source = random.Random(39)
    for _ in range(60):
        n = source.randint(1, 9)
        clocks = [source.choice((1e9, 2.1e9, 3.7e9)) * source.uniform(0.97, 1.03) for _ in range(n)]
        shares = [source.uniform(0.2, 0.99) for _ in range(n)]
        rates = [c * s if better is Better.HIGHER else c / s for c, s in zip(clocks, shares, strict=True)]
        found = figure(*(record(k, *pair) for k, pair in enumerate(zip(rates, clocks, strict=True))), better=better)
        share = found.fraction_of_limit
        assert share is not None and found.limit.value is not None and min(shares) - 1e-9 <= share <= max(shares) + 1e-9
        result = ExperimentResult("0" * 16, Experiment("cpu.peak", {}, "", "p", "m"), "", Outcome.ok(), (found,))
        against = results_text([result]).splitlines()[-1].rpartition(f"n={n}  ")[2]
        printed, _, limit = against.partition(" of ")
        value, of = found.median, number(limit)
        assert number(show(value, "flop/s")) == pytest.approx(value, rel=6e-3)
        ratio = value / of if better is Better.HIGHER else of / value
        assert ratio == pytest.approx(number(printed), rel=6e-3, abs=6e-3), against
        one = results_document([result], {})["experiments"][0]["figures"][0]
        exact = one["median"] / one["limit"]["value"]
        exact = exact if better is Better.HIGHER else 1 / exact
        assert exact == pytest.approx(one["fraction_of_limit"])


def test_without_a_known_limit_there_is_no_share_but_a_reason():
    unknown = Limit.unknown("flop/s", "nobody knows")
    benchmark = clocked()
    benchmark = replace(benchmark, figures=(replace(benchmark.figures[0], limit=lambda *_: unknown),))
    (found,) = figures_of(benchmark, Machine("m"), {}, [record(0, 1.0)])
    assert found.fraction_of_limit is None and found.limit == unknown


def test_repeats_stand_in_order_of_time_and_not_of_their_numbers():
    recovered = [record(0, 0.1, t0=10.0), record(1, 0.2, t0=99.0), record(2, 0.3, t0=30.0), record(3, 0.4, t0=30.0)]
    assert [repeat.repeat for repeat in figure(*recovered).repeats] == [0, 2, 3, 1]
    crashed = replace(recovered[1], outcome=Outcome.invalid("sum", "3 differ"))
    assert outcome_of([recovered[0], crashed, *recovered[2:]])[0].state is State.INVALID


def streamed(rate: float, params: dict, repeat: int) -> RepeatRecord:
    key = Experiment("memory.stream", params, "", "", "m").id
    samples = tuple(Sample(name, 0, 1.0, {"bytes": rate}) for name in ("copy", "scale", "add", "triad"))
    return RepeatRecord(key, repeat, repeat, 100.0 - repeat, 1.0, Outcome.ok(), samples)


def contents(machine: Machine, *points: tuple[dict, tuple[float, ...]]) -> Contents:
    """A folder of memory.stream with these rates."""
    experiments, records, places = {}, {}, {}
    for params, rates in points:
        experiment = Experiment("memory.stream", params, "", "", "m")
        experiments[experiment.id] = experiment
        records[experiment.id] = tuple(streamed(rate, params, k) for k, rate in enumerate(rates))
        places[experiment.id] = {k: RecordPlace("records/x.jsonl", k + 1) for k in range(len(rates))}
    return Contents(experiments, records, PerRepeat(places), {"m": machine_document(machine)}, {})


PLAIN = {"threads": 2, "nontemporal": False, "huge_pages": True, "array_B": 128 << 20}
KNOWN = made_up_machine(channels=2)  # 51.2 GB/s
UNKNOWN = made_up_machine()


def test_repeats_beyond_a_limit_that_became_known_later_are_not_published():
    rates = (60e9, 50e9, 50e9)
    (before,) = all_results(contents(UNKNOWN, (PLAIN, rates)))
    assert before.outcome.is_ok and before.figures
    (after,) = all_results(contents(KNOWN, (PLAIN, rates)))
    assert after.outcome.state is State.INVALID and after.outcome.check == "limit" and after.figures == ()
    assert "1 of 3 repeats" in after.outcome.reason and "physically possible" in after.outcome.reason
    (trial,) = trials_of(contents(KNOWN, (PLAIN, rates)))
    assert "experiment-invalid" in {finding.rule for finding in trial.findings}


def test_repeats_within_a_limit_that_became_known_later_are_published_with_it():
    (result,) = all_results(contents(KNOWN, (PLAIN, (36e9,) * 6)))
    triad = next(figure for figure in result.figures if figure.name == "triad")
    assert result.outcome.is_ok and triad.fraction_of_limit == pytest.approx(36 / 51.2)


def test_a_sound_machine_is_not_called_a_defect_for_plain_stores():
    """93 % of the traffic that the memory can carry: 70 % of its limit are counted, and 62 % of copy."""
    data = contents(KNOWN, (PLAIN, (0.93 * 51.2e9 * 24 / 32,) * 8))
    (trial,) = trials_of(data)
    kept = [f for f in trial.results[0].figures if f.name in ("add", "triad")]
    assert [f.share_of_attainable for f in kept] == pytest.approx([0.93, 0.93])
    assert "below-physical-limit" not in {finding.rule for finding in trial.findings}


def test_the_factor_of_a_measured_ceiling_is_not_taken_twice():
    nontemporal = {**PLAIN, "nontemporal": True}
    found = all_results(contents(UNKNOWN, (PLAIN, (30e9,) * 6), (nontemporal, (40e9,) * 6)))
    plain = next(result for result in found if not result.experiment.parameters["nontemporal"])
    triad = next(figure for figure in plain.figures if figure.name == "triad")
    assert triad.limit.basis is Basis.MEASURED
    assert triad.fraction_of_limit == pytest.approx(1.0) and triad.share_of_attainable == pytest.approx(1.0)


def test_places_of_records_stand_in_order_of_time():
    (trial,) = trials_of(contents(KNOWN, (PLAIN, (30e9,) * 3)))
    assert [repeat for _, repeat in trial.places] == [2, 1, 0]


def test_what_a_figure_declares_reaches_its_result():
    (result,) = all_results(contents(KNOWN, (PLAIN, (30e9,))))
    for found in result.figures:
        declared = STREAM.figure(found.name)
        assert found.attainable == declared.attainable(PLAIN) and found.one_limit_over == declared.one_limit_over


LEVELS = (1.0, 1.05, 1.02, 1.07, 1.01, 1.06, 1.03, 1.04)


def stepped(repeat: int, value: float, *, extra: dict[str, object] | None = None, **seen: float) -> RepeatRecord:
    samples = tuple(Sample("rate", i, took, {"flops": value * took}, extra={"clock": 1.0, **(extra or {})})
                    for i, took in enumerate((2.0, 1.0, 4.0)))  # fmt: skip
    return RepeatRecord("e", repeat, repeat, float(repeat), 1.0, Outcome.ok(), samples, {}, seen)


def test_the_resolution_is_that_of_the_shortest_sample_of_the_coarsest_repeat() -> None:
    exact = figure(*(stepped(k, level) for k, level in enumerate(LEVELS)))
    assert exact.resolution == 0.0 and all(repeat.resolution == 0.0 for repeat in exact.repeats)
    found = figure(*(stepped(k, level, clock_step_s=0.02 if k == 3 else 0.001) for k, level in enumerate(LEVELS)))
    assert found.resolution == pytest.approx(0.02) and found.repeats[0].resolution == pytest.approx(0.001)
    assert [repeat.resolution for repeat in found.repeats[2:4]] == pytest.approx([0.001, 0.02])
    assert exact.ci95 is not None and found.ci95 is not None
    assert found.ci95 == (pytest.approx(0.99 * exact.ci95[0]), pytest.approx(1.01 * exact.ci95[1]))


def test_a_resolution_that_a_sample_states_counts_instead_of_the_clocks() -> None:
    found = figure(*(stepped(k, 1.0, extra={"resolution": 0.05}, clock_step_s=0.5) for k in range(6)))
    assert found.resolution == 0.05
    for wrong in (-0.1, float("inf"), "much", None):
        with pytest.raises(ProtocolError, match="cannot be computed"):
            figure(stepped(0, 1.0, extra={"resolution": wrong}))


def test_a_ratio_that_the_medians_beside_it_do_not_give_is_explained() -> None:
    assert ratio_rule([(0.777, 18.47, 25.02)]) == RATIO_RULE
    assert ratio_rule([(0.738, 18.47, 25.02), (None, 1.0, 2.0)]) == ""
