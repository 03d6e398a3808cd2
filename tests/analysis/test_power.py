"""Energy and power as figures: verdicts within the errors of sensors, the best per watt, why one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side
from analysis.test_rules_expectation import made, result
from msgspec.structs import replace

from seatrial.analysis.power import missing_energy
from seatrial.analysis.results import all_results, trials_of
from seatrial.analysis.study_results import study_results
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.json_object import plain
from seatrial.model.machine.power import Scope, Supply
from seatrial.model.results.energy import MeasuredEnergy, PowerOverTime
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome
from seatrial.model.study.comparison import Comparison, Verdict
from seatrial.model.study.study import Axis, BestOf, Compare, Study, StudyBenchmark
from seatrial.report.charts.energy_parts import energy_by_part
from seatrial.report.charts.power import power_chart
from seatrial.report.charts.trade_off import trade_offs
from seatrial.report.documents.results import results_document
from seatrial.report.pages.page import page
from seatrial.report.text.results import results_text

LEVEL = 5e10
SIDES = Study(
    "levels",
    "Which draws less?",
    benchmarks=(StudyBenchmark("cpu.peak", {}),),
    axes=(Axis("label", ("a", "b")),),
    compare=Compare("label", "a"),
    probes=("power",),
)


def compared(path: Path, watts: tuple[float, float], error: float) -> dict[str, Comparison]:
    made = MadeUpFolder(path)
    keys = []
    for name, level in zip("ab", watts, strict=True):
        key = made.add(noisy(LEVEL, 20, seed=ord(name)), blocks=side_by_side(20), power=(level, error), label=name)
        keys.append((key, {"label": name}))
    made.keep(SIDES, keys)
    (result,) = study_results(made.contents)
    return {one.figure: one for found in result.compared for one in found.comparisons}


def test_two_levels_of_power_are_distinguished_if_the_errors_allow_it(tmp_path: Path) -> None:
    close = compared(tmp_path / "close", (300.0, 309.0), 0.002)["mean_power"]
    assert close.verdict is Verdict.SLOWER  # it is more power, and less is better
    assert close.ci95 is not None and close.ci95[0] == pytest.approx(1.03 / 1.004, rel=1e-3)
    wide = compared(tmp_path / "wide", (300.0, 309.0), 0.02)["mean_power"]
    assert wide.verdict is Verdict.AMBIGUOUS
    assert wide.ci95 is not None and wide.ci95[0] < 1.0 < wide.ci95[1]
    assert compared(tmp_path / "apart", (300.0, 400.0), 0.02)["mean_power"].verdict is Verdict.SLOWER


def test_the_best_per_watt_need_not_be_the_fastest(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path)
    settings = {"slow": (1.0, 200.0), "middle": (1.5, 250.0), "fast": (1.6, 400.0)}
    keys = []
    for name, (factor, watts) in settings.items():
        key = made.add(noisy(LEVEL * factor, 12, seed=len(name)), power=(watts, 0.01), label=name)
        keys.append((key, {"label": name}))

    def best(figure: str, at_most: dict[str, float | None]) -> tuple[str, list[str]]:
        sweep = BestOf(("label",), figure, at_most)
        made.keep(Study(f"best-{figure}-{len(at_most)}", "?", SIDES.benchmarks, SIDES.axes, best_of=sweep), keys)
        result = next(one for one in study_results(made.contents) if one.study.best_of == sweep)
        (found,) = result.best_of
        out = [str(one.reason) for one in found.contenders if one.median is None]
        return str(found.contenders[0].parameters["label"]), out

    assert best("fma", {}) == ("fast", [])
    assert best("fma_per_watt", {}) == ("middle", [])
    assert best("fma", {"mean_power": 260.0}) == (
        "middle",
        ["skipped: mean_power is 400 W, and at most 260 W is allowed"],
    )


def test_a_figure_of_power_states_its_error(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path)
    made.add(noisy(LEVEL, 8), power=(300.0, 0.01))
    (result,) = all_results(made.contents)
    document = results_document([result], {})
    figures = {one["name"]: one for one in document["experiments"][0]["figures"]}
    power = figures["mean_power"]
    assert (power["median"], power["parameters"]["scope"]) == (300.0, "node")
    assert power["error"] == pytest.approx(3.0) and power["ci95"] == pytest.approx([297.0, 303.0])
    assert figures["fma"]["error"] is None
    text = results_text([result])
    assert "FLOP/s/W" in text and "the sensor's error is up to 1 %" in " ".join(text.split())


def _energy(scope: Scope, energy: float | None, reason: str = "") -> MeasuredEnergy:
    rest = [None] * 7
    return MeasuredEnergy("s", scope, Supply.AC, energy, *rest, None, 1.0, 0, 1.0, None, None, reason)


def _record(power: dict[str, object]) -> RepeatRecord:
    return RepeatRecord("x", 0, 0, 0.0, 1.0, Outcome.ok(), seen={"power": power})


def test_why_an_energy_is_missing() -> None:
    both = [plain(_energy(Scope.NODE, 5.0)), plain(_energy(Scope.PACKAGE, None, "stuck"))]
    (package,) = missing_energy([_record({"energies": both})])
    assert (package.point, package.reason) == ({"scope": "package"}, "stuck")
    (node,) = missing_energy([_record({"energies": [plain(_energy(Scope.PACKAGE, 5.0))]})])
    assert (node.point, node.reason) == ({"scope": "node"}, "no usable sensor measures the whole node")
    (node,) = missing_energy([_record({"why_not": "nothing usable"})])
    assert node.reason == "nothing usable"
    assert missing_energy([_record({})]) != ()
    assert missing_energy([RepeatRecord("x", 0, 0, 0.0, 1.0, Outcome.ok())]) == ()
    assert missing_energy([_record({"energies": [{"source": 1}]})]) == ()


def test_the_page_shows_the_front_and_power_over_time(tmp_path: Path) -> None:
    made = MadeUpFolder(tmp_path)
    curve = [[-1.0, 200.0], [0.5, 400.0], [1.0, 400.0], [2.5, 200.0]]
    power = {
        "phase": {"of": "sampling", "start_s": 0.1, "end_s": 2.0},
        "energies": [plain(_energy(Scope.NODE, 800.0))],
        "curves": {"s": curve, "hostile<b>": curve, "empty": []},
    }
    keys = []
    for name, (factor, watts) in {"slow": (1.0, 200.0), "worse": (0.9, 300.0), "fast": (1.6, 400.0)}.items():
        key = made.add(noisy(LEVEL * factor, 8, seed=len(name)), power=(watts, 0.01), seen={"power": power}, label=name)
        keys.append((key, {"label": name}))
    made.keep(Study("trade", "?", SIDES.benchmarks, SIDES.axes), keys)
    (chart,) = trade_offs(all_results(made.contents), "x", {})
    rows = {row[0].text: row[-1].text for row in chart.table.rows}
    assert rows == {"label fast": "yes", "label slow": "yes", "label worse": "no"}
    html = page(trials_of(made.contents), studies=study_results(made.contents))
    assert "Speed against energy" in html and "Power over time" in html
    assert "hostile<b>" not in html and "hostile&lt;b&gt;" in html
    assert "no level" in html.lower()  # the accuracy of the meter is not stated


def test_names_in_the_trade_off_have_the_settings_of_the_machine() -> None:
    """Experiments that differ in their governor alone had the number of their environment as their name."""
    results, given = [], {}
    for number, governor in enumerate(("powersave", "schedutil", "performance")):
        figures = (
            made(1.0 + number, None, name="wall", better=Better.LOWER),
            made(100.0 - number, None, name="wall_energy", better=Better.LOWER, point={"scope": "node"}),
        )
        one = result(*figures, benchmark="command", argv=("./app",))
        results.append(replace(one, id=governor))
        given[governor] = {"environment.governor": governor}
    (chart,) = trade_offs(results, "x", given)
    assert {row[0].text for row in chart.table.rows} == {
        "governor powersave",
        "governor schedutil",
        "governor performance",
    }


def _by(source: str, scope: Scope, joules: float, node: str = "") -> MeasuredEnergy:
    return replace(_energy(scope, joules), source=source, energy_error=0.01 * joules, of=source, node=node)


def test_energy_by_part_names_what_is_left_out() -> None:
    parts = [_by("p0", Scope.PACKAGE, 200.0), _by("dram", Scope.MEMORY, 50.0), _by("gpu", Scope.DEVICE, 150.0)]
    chart = energy_by_part("x", "energy by part", [_by("bmc", Scope.NODE, 500.0), *parts])
    assert chart is not None
    rows = {row[1].text: (row[3].text, row[4].text, row[-1].text) for row in chart.table.rows}
    assert rows["node"][0].startswith("500 J") and "network" in rows["node"][2]
    assert rows["not measured apart"][0].startswith("100 J") and rows["not measured apart"][1] == "20 %"
    assert "memory modules" in rows["p0"][2]
    assert "<svg" in str(chart.svg)
    assert energy_by_part("x", "t", parts) is None and energy_by_part("x", "t", []) is None


def test_a_line_for_each_node() -> None:
    nodes = [f"n{k}" for k in range(20)]
    energies = [_by(f"{node}:bmc", Scope.NODE, 100.0 + k, node) for k, node in enumerate(nodes)]
    curves = {f"{node}:bmc": ((0.0, 300.0 + k), (1.0, 310.0 + k)) for k, node in enumerate(nodes)}
    power = PowerOverTime((*energies, _by("n0:cpu", Scope.PACKAGE, 1.0, "n0")), {**curves, "n0:cpu": curves["n0:bmc"]})
    few = PowerOverTime(tuple(energies[:3]), curves)
    for of_nodes, shown in ((power, ("n0", "n19")), (few, ("n0", "n1", "n2"))):
        chart = power_chart("x", "power over time", "", of_nodes, (0.0, 1.0))
        assert "A line for each node" in chart.caption
        svg = str(chart.svg)
        assert all(f">{name}<" in svg for name in shown) and ">n0:cpu<" not in svg
    by_part = energy_by_part("x", "t", power.energies)
    assert by_part is not None and "The first 16 of 20 nodes" in by_part.caption
