"""What a result costs: node-hours and prices by the tariff of the site file, on pages, in JSON and exports."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from cli.test_power import metered
from published_schemas import check

from seatrial.analysis.results import all_results
from seatrial.engine import probing
from seatrial.interface.run import run
from seatrial.plan.site_in_force import at_site
from seatrial.probes.power import node_meter
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder

__all__ = ["metered"]


def site(folder: Path, text: str) -> Path:
    path = folder / "site.yaml"
    path.write_text(text)
    return path


@pytest.mark.real
def test_node_hours_and_price_of_a_run(tmp_path: Path) -> None:
    tariff = site(tmp_path, "tariff: {currency: EUR, node_hour: 7200, kWh: 0.3}\n")
    run("command", set={"argv": ("sleep", "0.05")}, repeats=2, results=tmp_path / "r")
    done = seatrial_here("run", "command", "--results", "r", "--site", str(tariff), "--format", "json", "--",
                         "sleep", "0.05", cwd=tmp_path)  # fmt: skip
    document = json.loads(done.stdout)
    check(document, "results-1")
    figures = {one["name"]: one for one in document["experiments"][0]["figures"]}
    wall = figures["wall"]["median"]
    assert figures["wall_node_hours"]["unit"] == "node-h"
    assert figures["wall_node_hours"]["median"] == pytest.approx(wall / 3600)
    price = figures["wall_price"]
    assert (price["unit"], price["median"]) == ("EUR", pytest.approx(2 * wall))
    here = {"cwd": tmp_path, "XDG_CONFIG_HOME": str(tmp_path / "config")}
    rows = list(csv.DictReader(io.StringIO(seatrial_here("export", "r", **here).stdout)))
    assert "wall_price" not in {row["figure"] for row in rows}
    (tmp_path / "config/seatrial").mkdir(parents=True)
    tariff.rename(tmp_path / "config/seatrial/site.yaml")
    rows = list(csv.DictReader(io.StringIO(seatrial_here("export", "r", **here).stdout)))
    (row,) = [row for row in rows if row["figure"] == "wall_price"]
    assert (row["unit"], float(row["median"])) == ("EUR", pytest.approx(2 * wall))
    assert seatrial_here("report", "r", "-o", "page.html", **here).returncode == 0
    assert "wall_price" in (tmp_path / "page.html").read_text()


@pytest.mark.real
def test_the_price_has_the_energy_if_it_was_measured(
    metered: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_meter, "_WATCH_S", 0.5)
    recorded = partial(node_meter.power_meter, recorded=("sysfs", str(metered)))
    monkeypatch.setattr(probing, "power_meter", recorded)
    load = f"touch {metered}/load; sleep 1.6; rm {metered}/load"
    settings = {"argv": ("sh", "-c", load), "most_runs": 1, "probes": "power"}
    run("command", set=settings, repeats=1, results=tmp_path / "r")
    with at_site(site(tmp_path, "tariff: {currency: CHF, kWh: 3600}\n"), None):
        (result,) = all_results(read_contents(ResultsFolder.existing(tmp_path / "r")))
    figures = {(one.name, one.point.get("scope")): one for one in result.figures}
    joules = figures["wall_energy", "node"].median
    price = figures["wall_price", None]
    assert price.median == pytest.approx(joules / 1000) and price.unit == "CHF"
    assert "3600 CHF for a kWh" in price.work


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("tariff: {node_hour: 1}\n", "currency"),
        ("tariff: {currency: EUR, node_hour: -1}\n", "node_hour"),
        ("tariff: {currency: 'E UR'}\n", "currency"),
        ("tariff: {currency: EUR, hour: 1}\n", "hour"),
    ],
)
def test_a_tariff_that_is_wrong(tmp_path: Path, text: str, error: str) -> None:
    path = site(tmp_path, text)
    done = seatrial_here("plan", "--site", str(path), "cpu.peak", cwd=tmp_path)
    assert done.returncode == 2 and error in done.stderr
