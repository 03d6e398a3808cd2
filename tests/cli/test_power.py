"""`seatrial power`: the list, and the energy of a command, on made-up sysfs trees."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from conftest import SHARED_DATA
from published_schemas import check

ILO = SHARED_DATA / "redfish" / "hpe-ilo"

METER = """
    # RAPL and pm_counters of a node with 300 W, and 450 W while the file `load` exists.
    import os, sys, time
    from pathlib import Path
    root, joules, last, n = Path(sys.argv[1]), 1900.0, time.monotonic(), 0
    rapl, cray = root / "sys/class/powercap/intel-rapl:0", root / "sys/cray/pm_counters"
    def put(file, text):
        file.with_suffix(".new").write_text(text + "\\n")
        file.with_suffix(".new").rename(file)
    for folder in (rapl, cray):
        folder.mkdir(parents=True)
    put(rapl / "name", "package-0")
    put(rapl / "max_energy_range_uj", "2000000000")
    put(cray / "raw_scan_hz", "20")
    while True:
        now = time.monotonic()
        watts = 450.0 if (root / "load").exists() else 300.0
        joules, last, n = joules + watts * (now - last), now, n + 1
        put(rapl / "energy_uj", str(int(joules % 2000 * 1e6)))
        put(cray / "power", f"{watts:.0f} W")
        put(cray / "freshness", str(n))
        time.sleep(0.02)
"""
METER_LATE_J = 450.0 * 0.1
"""The meter above writes every 20 ms, or later on a busy machine; RAPL itself every millisecond."""


@pytest.fixture
def metered(tmp_path: Path) -> Iterator[Path]:
    meter = subprocess.Popen([sys.executable, "-c", textwrap.dedent(METER), str(tmp_path / "node")])
    while not (tmp_path / "node/sys/cray/pm_counters/freshness").exists():
        assert meter.poll() is None
        time.sleep(0.02)
    yield tmp_path / "node"
    meter.kill()
    meter.wait()


@pytest.mark.skipif(not ILO.is_dir(), reason="shared/data/redfish is not beside the checkout")
def test_the_list_of_a_recorded_tree(tmp_path: Path) -> None:
    done = seatrial_here("power", "--from", f"redfish={ILO}", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("The power of the node is measured by redfish:1/PowerControl/0.\n")
    found = json.loads(seatrial_here("power", "--from", f"redfish={ILO}", "--format", "json", cwd=tmp_path).stdout)
    check(found, "power-1")
    node = found["sources"][0]
    assert (node["scope"], node["watts"], node["supply"], node["usable"]) == ("node", 565.0, "dc", True)


def test_bad_input(tmp_path: Path) -> None:
    for arguments, error in (
        (("--from", "redfish"), "is not of the form KIND=DIR"),
        (("--from", "ipmi=x"), "kind of recorded tree"),
        (("--from", "redfish=missing"), "not a folder"),
        (("--watch", "3"), "3"),
        (("--from", "sysfs=.", "--", "no-such-program"), "no-such-program: not found"),
        (("--from", "sysfs=.", "--", "true"), "no sysfs tree found"),
    ):
        done = seatrial_here("power", *arguments, cwd=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert error in done.stderr


@pytest.mark.real
def test_the_energy_of_a_command(metered: Path, tmp_path: Path) -> None:
    load = "touch node/load; sleep 2.5; rm node/load; echo done $SEATRIAL_IPMI_PASSWORD; exit 7"
    words = [
        sys.executable,
        "-m",
        "seatrial",
        "power",
        "--from",
        "sysfs=node",
        "--format",
        "json",
        "--",
        "sh",
        "-c",
        load,
    ]
    variables = {**os.environ, "SEATRIAL_IPMI_PASSWORD": "Oyster-Bank-77"}
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False, timeout=120)
    assert "Oyster" not in done.stdout
    assert done.returncode == 7
    assert done.stderr == "done\n"
    document = json.loads(done.stdout)
    check(document, "power-1")
    measured = document["measured"]
    assert measured["exit_status"] == 7
    by_source = {one["source"]: one for one in measured["energies"]}
    rapl = by_source["rapl:package-0"]
    # the load is there for 2.5 s of the command's time; a busy machine makes that longer
    error = rapl["energy_error"] + METER_LATE_J
    assert 450.0 * 2.5 - error <= rapl["energy"] <= 450.0 * measured["elapsed_s"] + error


@pytest.mark.real
def test_a_command_without_sensors_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "node/sys/class").mkdir(parents=True)
    done = seatrial_here("power", "--from", "sysfs=node", "--", "touch", "ran", cwd=tmp_path)
    assert done.returncode == 2
    assert "nothing usable measures power here" in done.stderr
    assert not (tmp_path / "ran").exists()
