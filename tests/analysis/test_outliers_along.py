"""OutlyingValue nodes, ranks and repeats out of results and records."""

from __future__ import annotations

import json
import math
import random
import time
from dataclasses import replace

import jsonschema
import pytest
from analysis.made_up_sweeps import figure, noisy, result
from made_up import made_up_machine

from seatrial.analysis.outliers import Screened, by_node, by_rank, by_repeat, fleet_spreads, outliers, outliers_along
from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Better, Figure, elapsed
from seatrial.model.machine.document import machine_document
from seatrial.model.results.figure_result import ScreenResult
from seatrial.model.results.outcome import Outcome, Stage
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Sample
from seatrial.report.documents.compare import compare_document
from seatrial.report.schemas import schema
from seatrial.report.text.compare import compare_text
from seatrial.store.contents import Contents

PLAIN = {"threads": 2, "nontemporal": False, "huge_pages": True, "array_B": 128 << 20}


def screened(n: int, m: int, odd: dict[int, float], source: random.Random, name: str = "triad") -> Screened:
    values = tuple(tuple(noisy(odd.get(k, 1.0) * 3e10, m, 0.01, source)) for k in range(n))
    return Screened(tuple(f"n{k}" for k in range(n)), "memory.stream", name, {"threads": 2}, values)


def test_an_outlier_says_who_by_how_much_and_how_surely() -> None:
    source = random.Random(1)
    (found,) = outliers([screened(32, 8, {7: 0.9}, source), screened(32, 8, {}, source, "copy")])
    assert (found.what, found.benchmark, found.figure, found.parameters) == (
        "n7",
        "memory.stream",
        "triad",
        {"threads": 2},
    )
    assert found.ratio == pytest.approx(0.9, abs=0.01) and found.value == pytest.approx(2.7e10, rel=0.01)
    assert 0.95 <= found.sureness <= 1 and (found.false_alarm_rate, found.n) == (0.05, 32)


def test_the_rate_holds_over_all_figures_together() -> None:
    source = random.Random(2)
    alarms = sum(bool(outliers([screened(12, 7, {}, source) for _ in range(8)], margin=0.0)) for _ in range(150))
    assert alarms <= 15  # 5 % are 7.5; three standard errors above


def test_what_is_sure_enough_alone_may_not_be_among_many() -> None:
    values = (*((1.0, 1.001, 0.999, 1.002, 0.998, 1.0),) * 4, (2.0, 2.001, 1.999, 2.002, 1.998, 2.0))
    alone = Screened(tuple("abcde"), "b", "f", {}, values)
    like = [replace(alone, figure=f"f{k}", values=(values[0],) * 5) for k in range(400)]
    (odd,) = outliers([alone])
    (of_ten,) = outliers([alone, *like[:9]])
    assert 1 - of_ten.sureness == pytest.approx(10 * (1 - odd.sureness))
    assert outliers([alone, *like]) == ()


def test_within_the_margin_nothing_is_reported() -> None:
    one = screened(40, 30, {3: 1.015}, random.Random(3))
    assert outliers([one]) == () and [odd.what for odd in outliers([one], margin=0.005)] == ["n3"]


def test_too_few_and_values_that_are_not_positive_are_left_out() -> None:
    source = random.Random(4)
    few, sound = screened(3, 8, {1: 0.5}, source), screened(9, 8, {1: 0.5}, source)
    zero = replace(sound, values=((0.0,) * 8, *sound.values[1:]))
    assert outliers([few, zero]) == () and len(outliers([few, zero, sound])) == 1


def test_pairs_are_freed_from_what_is_common_to_a_repeat() -> None:
    source = random.Random(5)
    common = noisy(1.0, 8, 0.5, source)
    values = tuple(
        tuple(c * (0.9 if k == 2 else 1) * math.exp(source.gauss(0, 0.005)) for c in common) for k in range(16)
    )
    apart = Screened(tuple(map(str, range(16))), "b", "f", {}, values)
    assert outliers([apart]) == ()
    assert [odd.what for odd in outliers([replace(apart, is_paired=True)])] == ["2"]


def test_ten_thousand_nodes_with_eight_figures_take_seconds_at_most() -> None:
    source = random.Random(6)
    rows = [screened(10_000, 6, {77: 0.9, 4000: 0.93}, source, f"f{k}") for k in range(8)]
    start = time.process_time()
    found = outliers(rows)
    print(f"80,000 medians in {time.process_time() - start:.2f} s")
    assert {(odd.what, odd.figure) for odd in found} == {(w, f"f{k}") for w in ("n77", "n4000") for k in range(8)}


def test_nodes_are_told_by_the_hosts_of_their_repeats() -> None:
    """Also where one experiment was run on several, since like nodes may be one machine to the store."""
    source = random.Random(7)
    one = result(figure(noisy(1.0, 48, 0.005, source)), n=1)
    hosts = {(one.id, k): f"n{k % 8}" for k in range(48)}
    slow = result(figure(noisy(1.1, 6, 0.005, source)), n=1, machine="other")
    hosts |= {(slow.id, k): "n8" for k in range(6)}
    unknown = result(figure([9.0] * 6), n=1, machine="unknown")
    other_point = result(figure([5.0] * 6), n=2)
    rows = by_node([one, slow, unknown, other_point], hosts)
    assert [len(row.what) for row in rows] == [9] and {len(own) for own in rows[0].values} == {6}
    (odd,) = outliers(rows)
    assert odd.what == "n8" and odd.ratio == pytest.approx(1.1, rel=0.01) and odd.parameters == {"n": 1}


def test_points_and_environments_of_nodes_are_kept_apart() -> None:
    runs = [
        result(figure([1.0] * 6, point={"size_B": s}), machine=f"m{k}", environment=e)
        for k in range(5)
        for s in (8, 16)
        for e in "ab"
    ]
    hosts = {(run.id, k): run.experiment.machine for run in runs for k in range(6)}
    assert [len(row.what) for row in by_node(runs, hosts)] == [5] * 4


def test_the_first_repeat_may_be_the_odd_one() -> None:
    source = random.Random(8)
    run = result(figure([2.0, *noisy(1.0, 19, 0.01, source)]), n=1)
    (odd,) = outliers(by_repeat([run], {}))
    assert odd.what == "repeat 0" and odd.ratio == pytest.approx(2, rel=0.02) and odd.n == 20
    hosts = {(run.id, k): f"n{k % 2}" for k in range(20)}
    rows = by_repeat([run], hosts)
    assert [row.what[0] for row in rows] == ["repeat 0 on n0", "repeat 1 on n1"] and len(rows[0].what) == 10


def ranked_record(k: int, source: random.Random, ranks: int, slow: int, outcome: Outcome | None = None) -> RepeatRecord:
    level = math.exp(source.gauss(0, 0.2))
    samples = tuple(
        Sample(
            "s", i, level * (1.08 if rank == slow else 1.0) * math.exp(source.gauss(0, 0.005)), {}, rank, {"size_B": 8}
        )
        for rank in range(ranks)
        for i in range(5)
    )
    return RepeatRecord("e", k, k, float(k), 1.0, outcome or Outcome.ok(), samples)


def test_ranks_speak_with_the_median_of_their_samples_in_each_repeat() -> None:
    source = random.Random(9)
    timed = replace(STREAM, figures=(Figure("time", "s", Better.LOWER, elapsed, "", series="s"),))
    experiment = Experiment("memory.stream", {"threads": 2}, "", "", "m")
    records = [ranked_record(k, source, 12, slow=5) for k in range(8)]
    records.append(ranked_record(8, source, 3, slow=1, outcome=Outcome.failed(Stage.RUN, "died")))
    (row,) = by_rank(timed, experiment, records)
    assert row.what == tuple(f"rank {k}" for k in range(12)) and {len(own) for own in row.values} == {8}
    assert row.values[3][2] == sorted(s.elapsed_s for s in records[2].samples if s.rank == 3)[2]
    short = replace(records[4], samples=tuple(s for s in records[4].samples if s.rank != 11))
    (fewer,) = by_rank(timed, experiment, [*records[:4], short, *records[5:]])
    assert fewer.what == row.what[:11]
    (odd,) = outliers([row])
    assert odd.what == "rank 5" and odd.ratio == pytest.approx(1.08, abs=0.01) and odd.parameters["size_B"] == 8


def contents(nodes: int, slow: dict[int, float], repeats: int = 6) -> Contents:
    """A node each with its own machine, host and records of STREAM."""
    source = random.Random(10)
    machines, experiments, records = {}, {}, {}
    for node in range(nodes):
        machines[f"m{node}"] = machine_document(made_up_machine())
        experiment = Experiment("memory.stream", PLAIN, "", "", f"m{node}")
        experiments[experiment.id] = experiment
        records[experiment.id] = tuple(
            RepeatRecord(
                experiment.id, k, k, float(k), 1.0, Outcome.ok(),
                tuple(
                    Sample(series, i, 1.0, {"bytes": slow.get(node, 1.0) * 3e10 * math.exp(source.gauss(0, 0.01))})
                    for series in ("copy", "scale", "add", "triad")
                    for i in range(3)
                ),
                seen={"host": f"n{node}"},
            )
            for k in range(repeats)
        )  # fmt: skip
    return Contents(experiments, records, {}, machines, {})


def test_along_node_of_a_results_folder() -> None:
    found = outliers_along(contents(10, {4: 0.93}), "node")
    assert {odd.what for odd in found} == {"n4"} and {odd.figure for odd in found} == {"copy", "scale", "add", "triad"}
    assert all(odd.ratio == pytest.approx(0.93, abs=0.015) for odd in found)
    assert outliers_along(contents(10, {}), "node") == ()


def test_where_there_are_too_few_that_is_said() -> None:
    with pytest.raises(UsageError, match=r"needs at least 5 nodes .* has at most 3"):
        outliers_along(contents(3, {1: 0.5}), "node")
    with pytest.raises(UsageError, match=r"needs at least 10 repeats .* has at most 6"):
        outliers_along(contents(1, {}), "repeat")
    with pytest.raises(UsageError, match=r"needs at least 5 ranks .* has at most 1"):
        outliers_along(contents(1, {}), "rank")
    assert outliers_along(contents(1, {}, repeats=12), "repeat") == ()


def _fleet(levels: list[float], seed: int) -> Screened:
    source = random.Random(seed)
    values = tuple(tuple(noisy(3e10 * level, 6, 0.004, source)) for level in levels)
    return Screened(tuple(f"n{k}" for k in range(len(levels))), "memory.stream", "triad", {"threads": 2}, values)


def test_nodes_that_truly_differ_are_described_and_not_named() -> None:
    source = random.Random(4)
    wide = _fleet([1.0 + 0.02 * source.expovariate(1.0) for _ in range(48)], 1)
    assert outliers([wide]) == ()
    (fleet,) = fleet_spreads([wide])
    assert fleet.kinds is None and fleet.n == 48 and fleet.spread[0] < 1 < fleet.spread[1] < 1.08
    text = compare_text([], ScreenResult(fleets=(fleet,)))
    assert "No outliers: the nodes differ" in text
    assert "48 nodes truly differ, the middle 90 %" in " ".join(text.split())

    kinds = _fleet([0.8 if k % 4 == 0 else 1.0 for k in range(48)], 2)
    assert outliers([kinds]) == ()
    (fleet,) = fleet_spreads([kinds])
    assert fleet.minority == tuple(f"n{k}" for k in range(0, 48, 4))
    assert fleet.kinds == pytest.approx((0.8, 1.0), abs=0.01)
    text = " ".join(compare_text([], ScreenResult(fleets=(fleet,))).split())
    assert "two kinds of nodes: 12 of 48 (n0, n4" in text and "by \N{MINUS SIGN}19.9 %" in text
    document = compare_document([], ScreenResult(fleets=(fleet,)))
    jsonschema.Draft202012Validator(schema("compare-1")).validate(json.loads(json.dumps(document)))
    assert document["fleets"][0]["minority"][:2] == ["n0", "n4"]


def test_equal_nodes_and_single_repeats_are_no_fleet_that_differs() -> None:
    assert fleet_spreads([_fleet([1.0] * 48, 3)]) == ()
    single = Screened(tuple("abcdefghijkl"), "b", "f", {}, tuple((1.0 + 0.1 * k,) for k in range(12)))
    assert fleet_spreads([single]) == ()
