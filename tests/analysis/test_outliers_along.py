"""Outliers among nodes, ranks and repeats out of results and records."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from analysis.made_up_folders import MadeUpFolder
from analysis.made_up_folders import noisy as noisy_rates
from analysis.made_up_sweeps import figure, noisy, result
from made_up import made_up_machine

from seatrial.analysis.outliers import (
    Screened,
    by_rank,
    by_repeat,
    node_outliers,
    outliers,
    outliers_along,
    second_stage,
)
from seatrial.benchmarks.memory.stream import BENCHMARK as STREAM
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Better, Figure, elapsed
from seatrial.model.machine.document import machine_document
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Sample, Stage
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
    values = tuple(tuple(noisy(1.08 if k == 4 else 1.0, 3, 0.012, random.Random(k))) for k in range(5))
    alone = Screened(tuple("abcde"), "b", "f", {}, values)
    like = [replace(alone, figure=f"f{k}", values=(values[0],) * 5) for k in range(400)]
    (odd,) = outliers([alone])
    (of_ten,) = outliers([alone, *like[:9]])
    assert odd.what == "e" and 1 - of_ten.sureness == pytest.approx(10 * (1 - odd.sureness))
    assert outliers([alone, *like]) == ()


def test_within_the_margin_nothing_is_reported() -> None:
    one = screened(40, 30, {3: 1.015}, random.Random(3))
    assert outliers([one]) == () and [odd.what for odd in outliers([one], margin=0.005)] == ["n3"]


def test_too_few_and_values_that_are_not_positive_are_left_out() -> None:
    source = random.Random(4)
    few, sound = screened(2, 8, {1: 0.5}, source), screened(9, 8, {1: 0.5}, source)
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


def fleet(path: Path, levels: Sequence[float], repeats: int = 6, noise: float = 0.004) -> Path:
    """A results folder of nodes n0, n1, ... at these levels."""
    made = MadeUpFolder(path)
    for k, level in enumerate(levels):
        made.add(noisy_rates(3e10 * level, repeats, noise, seed=k), host=f"n{k}")
    return path


def test_along_node_the_screen_of_a_cluster_decides(tmp_path: Path) -> None:
    found = node_outliers(fleet(tmp_path / "slow", [0.93 if k == 4 else 1.0 for k in range(10)]), 0.02)
    (odd,) = found.outliers
    assert odd.what == "n4" and odd.ratio == pytest.approx(0.93, abs=0.015) and odd.n == 10
    assert node_outliers(fleet(tmp_path / "alike", [1.0] * 10), 0.02).outliers == ()


@pytest.mark.parametrize("seed", range(5))
def test_a_node_20_percent_slow_among_40_that_differ_by_1_percent_is_named(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    levels = [math.exp(source.gauss(0, 0.01)) for _ in range(40)]
    found = node_outliers(fleet(tmp_path / "nodes", [*levels[:-1], 0.8 * levels[-1]]), 0.02)
    assert [odd.what for odd in found.outliers] == ["n39"]


def test_single_repeats_of_few_nodes_are_not_called_alike(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"at least 3 nodes .* with repeats, or 10 without; this folder has at most 5"):
        node_outliers(fleet(tmp_path / "five", [1.0, 1.0, 1.0, 1.0, 0.5], repeats=1), 0.02)


def test_devices_of_a_suspect_are_found_in_its_second_stage(tmp_path: Path) -> None:
    def devices(path: Path, nodes: Sequence[str], repeats: int, seed: int) -> Path:
        made = MadeUpFolder(path)
        for k, node in enumerate(nodes):
            for device in (0, 1):
                level = 0.8 if (node, device) == ("n3", 1) else 1.0
                made.add(noisy_rates(3e10 * level, repeats, 0.01, seed=seed + 2 * k + device), host=node, device=device)
        return path

    first = devices(tmp_path / "first", [f"n{k}" for k in range(24)], 1, 1)
    again = node_outliers(first, 0.02).again
    assert again is not None and "n3" in again.suspects
    found = second_stage(first, devices(tmp_path / "again", [*again.suspects, *again.controls], 8, 100), 0.02)
    assert [one.what for one in found.outliers] == ["GPU 1 of n3"]
    assert set(found.unconfirmed) == set(again.suspects) - {"n3"}


def test_what_was_not_screened_is_stated(tmp_path: Path) -> None:
    folder = fleet(tmp_path / "mixed", [1.0] * 12, repeats=1)
    made = MadeUpFolder(tmp_path / "mixed")
    for k in range(4):
        made.add(noisy_rates(1e10, 1, 0.01, seed=k), host=f"n{k}", precision="fp32")
    found = node_outliers(folder, 0.02)
    assert len(found.not_screened) == 1 and "4 with one repeat each" in found.not_screened[0]
    assert found.not_screened[0] in compare_document([], found)["not_compared"]
    assert "Not screened" in compare_text([], found)


def test_where_there_are_too_few_that_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"needs at least 3 nodes .* at most 2"):
        node_outliers(fleet(tmp_path / "two", [1.0, 0.5]), 0.02)
    with pytest.raises(UsageError, match=r"needs at least 10 repeats .* has at most 6"):
        outliers_along(contents(1, {}), "repeat")
    with pytest.raises(UsageError, match=r"needs at least 3 ranks .* has at most 1"):
        outliers_along(contents(1, {}), "rank")
    assert outliers_along(contents(1, {}, repeats=12), "repeat") == ()


def test_nodes_that_truly_differ_are_described_and_not_named(tmp_path: Path) -> None:
    source = random.Random(4)
    wide = node_outliers(fleet(tmp_path / "wide", [1.0 + 0.02 * source.expovariate(1.0) for _ in range(48)]), 0.02)
    assert wide.outliers == ()
    (one,) = wide.fleets
    assert one.kinds is None and one.n == 48 and one.spread[0] < 1 < one.spread[1] < 1.08
    text = compare_text([], wide)
    assert "No outliers: the nodes differ" in text
    assert "48 nodes truly differ, the middle 90 %" in " ".join(text.split())

    kinds = node_outliers(fleet(tmp_path / "kinds", [0.8 if k % 4 == 0 else 1.0 for k in range(48)]), 0.02)
    assert kinds.outliers == ()
    (one,) = kinds.fleets
    assert one.minority == tuple(f"n{k}" for k in range(0, 48, 4))
    assert one.kinds == pytest.approx((0.8, 1.0), abs=0.01)
    text = " ".join(compare_text([], kinds).split())
    assert "two kinds of nodes: 12 of 48 (n0, n4" in text and "by \N{MINUS SIGN}" in text
    document = compare_document([], kinds)
    jsonschema.Draft202012Validator(schema("compare-1")).validate(json.loads(json.dumps(document)))
    assert document["fleets"][0]["minority"][:2] == ["n0", "n4"]


def test_equal_nodes_and_single_repeats_are_no_fleet_that_differs(tmp_path: Path) -> None:
    assert node_outliers(fleet(tmp_path / "alike", [1.0] * 48), 0.02).fleets == ()
    assert node_outliers(fleet(tmp_path / "single", [1.0 + 0.1 * k for k in range(12)], repeats=1), 0.02).fleets == ()
