"""`run --probe power`: energy and power as figures beside the others, on made-up sensors."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cli.in_process import seatrial_here
from cli.test_power import METER_LATE_J, metered
from environments.mpi_libraries import library
from profiler.mpi_programs import ROOT_MAY, traffic_program
from published_schemas import check

from seatrial.analysis.profiles import profiles_in
from seatrial.engine import probing
from seatrial.interface.profile import profile
from seatrial.interface.run import run
from seatrial.model.environment.site import PowerAccess
from seatrial.probes.power import node_meter as meter
from seatrial.report.profile.page import profile_page

__all__ = ["metered"]
LOAD_S = 1.6


@pytest.fixture
def sensors(metered: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A node of 300 W, and 450 W while the file `load` is there."""
    monkeypatch.setattr(meter, "_WATCH_S", 0.5)
    recorded = partial(meter.power_meter, recorded=("sysfs", str(metered)))
    monkeypatch.setattr(probing, "power_meter", recorded)
    return metered


def measured(folder: Path, name: str, **settings: Any) -> tuple[Mapping[str, Any], Any]:
    """The figures of one repeat by name and scope, and what was recorded of its power."""
    found = run(name, set={**settings, "probes": ["power"]}, repeats=1, results=folder / "r")
    (one,) = found.experiments
    assert one.outcome.is_ok, one.outcome.reason
    (line,) = [line for path in (folder / "r/records").glob("*.jsonl") for line in path.read_text().splitlines()]
    figures = {f"{figure.name} {figure.point.get('scope', '')}".strip(): figure for figure in one.figures}
    return figures, json.loads(line)["seen"]["power"]


@pytest.mark.real
def test_the_energy_of_a_repeat(sensors: Path, tmp_path: Path) -> None:
    load = f"touch {sensors}/load; sleep {LOAD_S}; rm {sensors}/load"
    figures, power = measured(tmp_path, "command", argv=("sh", "-c", load), most_runs=1)
    for scope in ("node", "package"):
        energy = figures[f"energy {scope}"]
        took_s = figures["wall"].median
        assert energy.error is not None and energy.error < energy.median
        error = energy.error + METER_LATE_J
        assert 450.0 * LOAD_S - error <= energy.median <= 450.0 * took_s + error
        if (over_idle := figures.get(f"energy_over_idle {scope}")) is not None:
            idle = 300.0 * (power["phase"]["end_s"] - power["phase"]["start_s"])
            assert over_idle.median == pytest.approx(energy.median - idle, abs=2 * error)
        assert figures[f"wall_energy {scope}"].median == pytest.approx(energy.median, rel=0.1)
    assert power["phase"]["of"] == "sampling"
    watts = [point[1] for point in power["curves"]["pm_counters:power"]]
    assert min(watts) == pytest.approx(300.0) and max(watts) == pytest.approx(450.0)


@pytest.mark.real
def test_a_benchmark_takes_samples_for_as_long_as_its_sensor_needs(sensors: Path, tmp_path: Path) -> None:
    (sensors / "load").touch()
    for attempt in range(3):  # on a busy machine too few readings may come in time: then there is no figure
        (tmp_path / f"{attempt}").mkdir()
        figures, power = measured(tmp_path / f"{attempt}", "cpu.peak", cores="one")
        if "mean_power package" in figures:
            break
    assert power["phase"]["end_s"] - power["phase"]["start_s"] >= 1.3
    assert figures["mean_power package"].median == pytest.approx(450.0, rel=0.1)
    per_watt = figures["fma"].median / figures["mean_power package"].median
    assert figures["fma_per_watt package"].median == pytest.approx(per_watt, rel=1e-6)
    assert figures["fma_per_watt package"].unit == "flop/J"
    reused = run("cpu.peak", set={"cores": "one"}, repeats=1, results=tmp_path / "r")
    assert not reused.experiments[0].reused  # without the probe it is another experiment


@pytest.mark.real
def test_a_run_that_is_too_short_states_the_length_that_would_do(sensors: Path, tmp_path: Path) -> None:
    found = run(
        "command", set={"argv": ("true",), "most_runs": 1, "probes": "power"}, repeats=1, results=tmp_path / "r"
    )
    (one,) = found.experiments
    assert {str(missing.point["scope"]) for missing in one.missing} == {"node", "package"}
    assert all("would do" in missing.reason for missing in one.missing)


@pytest.mark.real
def test_without_a_sensor_the_figure_is_null_and_says_why(tmp_path: Path) -> None:
    arguments = ("run", "cpu.peak", "--set", "cores=one", "--probe", "power", "--format", "json", "--results", "r")
    done = seatrial_here(*arguments, "--budget", "1s", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    check(document, "results-1")
    energy = next(one for one in document["experiments"][0]["figures"] if one["name"] == "energy")
    assert energy["median"] is None and energy["parameters"]["scope"] == "node"
    assert energy["reason"].startswith("nothing usable measures power here")


def test_an_unknown_probe(tmp_path: Path) -> None:
    done = seatrial_here("run", "cpu.peak", "--probe", "pwer", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown probe 'pwer'" in done.stderr and "did you mean power?" in done.stderr


def test_a_study_on_energy_needs_the_probe(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text(
        "study: watts\nquestion: Which is best per watt?\nbenchmarks: {cpu.peak: {}}\n"
        "axes: {cores: [one, all]}\nbest_of: {over: [cores], figure: fma_per_watt, at_most: {mean_power: 300 J}}\n"
    )
    done = seatrial_here("plan", "s.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "fma_per_watt needs the probe power" in done.stderr and "probes: [power]" in done.stderr
    (tmp_path / "s.yaml").write_text((tmp_path / "s.yaml").read_text() + "probes: [power]\n")
    done = seatrial_here("plan", "s.yaml", cwd=tmp_path)
    assert done.returncode == 2 and "300 J is not in W" in done.stderr


@pytest.mark.real
@pytest.mark.lab
def test_a_profile_has_power_on_its_own_clock(
    sensors: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    here = partial(meter.power_meter, PowerAccess(), recorded=("sysfs", str(sensors)))
    monkeypatch.setattr(meter, "power_meter_here", lambda: here(None))
    for name, value in ROOT_MAY.items():
        monkeypatch.setenv(name, value)
    mpi = library("openmpi")
    script = f"touch {sensors}/load; {mpi.launcher} -n 2 {traffic_program(mpi)} collectives; sleep 1; rm {sensors}/load"
    found = profile(["sh", "-c", script], results=tmp_path / "r", probes=["power"])
    assert found.is_ok, found.reason
    (made,) = profiles_in(tmp_path / "r")
    assert made.power is not None and found.profiles[0].power == made.power
    energy = {one.source: one for one in made.power.energies}["rapl:package-0"]
    assert energy.mean_power is not None and 400.0 < energy.mean_power < 460.0
    first = made.power.curves["rapl:package-0"][0][0]
    assert first < -0.5  # idle, before the first rank was started
    assert "Power over time" in profile_page(found.profiles)
    assert json.loads("".join(found.json()))["power"]["energies"]
    assert found.folder is not None
    kept = found.folder / "tables" / "power.json"
    for damaged in (b"{", b"[1]", b'{"started_s": 1, "power": {"energies": [{}]}}'):
        kept.write_bytes(damaged)
        assert profiles_in(tmp_path / "r")[0].power is None
    assert "power.json" in caplog.text
    kept.unlink()
    kept.symlink_to("/etc/passwd")
    assert profiles_in(tmp_path / "r")[0].power is None


def test_an_unknown_probe_of_a_profile(tmp_path: Path) -> None:
    done = seatrial_here("profile", "--probe", "io", "--", "true", cwd=tmp_path)
    assert done.returncode == 2 and "unknown probe of a profile: 'io'" in done.stderr
