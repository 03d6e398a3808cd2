"""The core-to-core chart: order by location, borders, blanks, medians by distance."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from report.page_samples import HOSTILE, cpu_tree, experiment, figure, vm_machine
from report.page_samples_node import GiB, gpu_machine, one_way, some_pairs

from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.machine import Machine
from seatrial.model.study.result import Trial
from seatrial.report.charts.core_to_core import CoreToCore, core_pairs, core_to_core
from seatrial.report.pages.page import page
from seatrial.report.pages.view import trial_view

NS = 1e-9


def times(pairs: dict[tuple[int, int], float]):
    return [
        figure("one_way", ns * NS, None, unit="s", better=Better.LOWER, point={"cpu_a": a, "cpu_b": b}, spread=0.0)
        for (a, b), ns in pairs.items()
    ]


def machine_of(packages: int = 2, cores: int = 4, per_l3: int = 2, smt: int = 1) -> Machine:
    devices = cpu_tree(packages, cores, 32 << 20, per_l3, smt, 8 * GiB, "CPU")
    return Machine("m", tuple(devices), allowed_cpus=tuple(range(packages * cores * smt)))


def drawn(machine: Machine, figures) -> CoreToCore:
    result = experiment("some.pairs", "?", {"threads": 8}, figures)
    view = trial_view(Trial(machine, (result,), (), (), {}), 1, None)
    (made,) = core_to_core(view, view.benchmarks[0])
    return made


def cells_of(made: CoreToCore) -> dict[tuple[int, int], int]:
    """(row, column) -> class, read back from the drawn paths."""
    root = ElementTree.fromstring(made.picture.text)
    found: dict[tuple[int, int], int] = {}
    for path in root.iter("path"):
        kind = re.match(r"h(\d)", path.get("class"))
        if kind:
            for x, y, width in re.findall(r"M([\d.]+) ([\d.]+)h([\d.]+)", path.get("d")):
                found[round(float(y) / float(width)), round(float(x) / float(width))] = int(kind[1])
    return found


def test_a_pair_colours_both_of_its_cells_and_no_other():
    made = drawn(machine_of(), times({(0, 1): 20, (0, 4): 90, (2, 3): 20}))
    found = cells_of(made)
    assert set(found) == {(0, 1), (1, 0), (0, 4), (4, 0), (2, 3), (3, 2)}
    assert found[0, 1] == found[1, 0] == found[2, 3] == 1 and found[0, 4] == 8


def test_each_direction_has_its_own_cell_if_both_were_measured():
    found = cells_of(drawn(machine_of(), times({(0, 1): 20, (1, 0): 90, (2, 3): 40})))
    assert found[0, 1] == 1 and found[1, 0] == 8


def test_cpus_are_ordered_by_location_and_not_by_number():
    """With SMT numbered apart, CPU 8 is the neighbour of CPU 0."""
    pairs = core_pairs(machine_of(smt=2), times({(0, 8): 10, (0, 1): 20, (9, 4): 90}))
    assert pairs.cpus == (0, 8, 1, 9, 4)
    assert {far.name for far in pairs.distances.values()} == {"one core", "one L3 cache", "the machine only"}


def test_cores_outside_the_sample_are_blank_rows():
    pairs = core_pairs(machine_of(), times({(0, 1): 20, (3, 5): 90}))
    assert pairs.cpus == tuple(range(8)) and pairs.possible_pairs == 28
    few = core_pairs(machine_of(cores=16), times({(0, 1): 20, (3, 5): 90}))
    assert few.cpus == (0, 1, 3, 5)


def test_borders_separate_caches_and_packages():
    pairs = core_pairs(machine_of(), times({(0, 1): 20, (3, 5): 90, (6, 7): 20}))
    assert {n: far.name for n, far in pairs.boundaries.items()} == {
        2: "one NUMA node",
        4: "the machine only",
        6: "one NUMA node",
    }
    assert pairs.package_starts == {0: "package 0", 4: "package 1"}


def test_medians_by_distance_are_those_of_the_pairs():
    made = drawn(machine_of(), times({(0, 1): 20, (2, 3): 30, (4, 5): 22, (0, 2): 60, (0, 4): 110, (1, 5): 130}))
    rows = [[cell.text for cell in row] for row in made.by_distance.rows]
    assert rows == [
        ["one L3 cache", "3 of 4", "22.0 ns", "20.0 to 30.0 ns"],
        ["one NUMA node", "1 of 8", "60.0 ns", "one pair"],
        ["the machine only", "2 of 16", "120 ns", "110 to 130 ns"],
    ]
    assert made.by_distance.rows[0][2].value == pytest.approx(22 * NS)
    assert "22.0 ns between CPUs that share one L3 cache, 120 ns (5.5 times that)" in made.said
    assert "6 of the 28 pairs" in made.said


def test_two_cpus_are_a_sentence_and_no_picture():
    made = drawn(vm_machine(), times({(0, 1): 24.8}))
    assert made.picture is None
    assert "CPU 0 and CPU 1: 24.8 ns" in made.said and "They share: one L3 cache" in made.said
    assert '<svg class="heat"' not in page([Trial(vm_machine(), (), (), (), {})])


def test_cpus_that_no_source_describes_share_an_unknown_part():
    pairs = core_pairs(Machine("m"), times({(0, 1): 20, (1, 2): 30}))
    assert {far.name for far in pairs.distances.values()} == {"an unknown part"}
    assert pairs.cpus == (0, 1, 2) and not pairs.boundaries
    assert drawn(Machine("m"), times({(0, 1): 20, (1, 2): 30})).picture is not None


def test_few_cells_show_their_numbers_and_many_do_not():
    few = drawn(machine_of(), times({(a, b): 20 + a + b for a in range(8) for b in range(a + 1, 8)}))
    assert few.picture.text.count('class="on-') == 56
    many = drawn(gpu_machine(), one_way(some_pairs(), 128).figures)
    assert 'class="on-' not in many.picture.text and "not measured" in many.picture.text
    assert len(many.picture.text) < 60_000


def test_all_pairs_of_many_cores_make_a_picture_of_a_few_hundred_kilobytes():
    pairs = [(a, b) for a in range(128) for b in range(a + 1, 128)]
    made = drawn(gpu_machine(), times({pair: 20.0 + sum(pair) for pair in pairs}))
    assert len(made.picture.text) < 700_000
    assert "not measured" not in made.picture.text


def test_the_picture_has_a_description_and_escapes_names():
    made = drawn(machine_of(), times({(0, 1): 20, (0, 4): 90}))
    root = ElementTree.fromstring(made.picture.text)
    assert root.get("role") == "img" and "Median 20.0 ns" in root.find("desc").text
    result = experiment(HOSTILE, "?", {"k": 1}, times({(0, 1): 20, (1, 2): 30}))
    html = page([Trial(machine_of(), (result,), (), (), {})])
    assert 'class="heat"' in html and "<img" not in html and "</script" not in html
