"""The file of an external meter: its forms, and the energy of phases on another clock."""

from __future__ import annotations

import json
import random
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from cli.in_process import seatrial_here

from seatrial.errors import UsageError
from seatrial.probes.power.meter import energies, meter_of

ROWS = [(k, 300.0 + 200.0 * (20 <= k < 70)) for k in range(100)]


def text_of(form: str) -> str:
    at = [time.gmtime(1_795_000_000 + k) for k, _ in ROWS]
    powers = [watts for _, watts in ROWS]
    both = list(zip(at, powers, strict=True))
    return "\n".join(
        {
            "plain": lambda: [f"{k},{watts}" for k, watts in ROWS],
            "iso": lambda: ["timestamp,voltage,power_W", *(f"{time.strftime('%FT%TZ', a)},230,{p}" for a, p in both)],
            "german": lambda: (
                ["Datum;Zeit;Leistung power (kW)"]
                + [f"{time.strftime('%d.%m.%Y;%H:%M:%S', a)};{p / 1000:.4f}".replace(".4", ",4") for a, p in both]
            ),
            "epoch": lambda: (
                ["# made up", "Time (ms)\tActive Power\tApparent Power"]
                + [f"{1_795_000_000_000 + 1000 * k}\t{p}\t999" for k, p in ROWS]
            ),
            "clock": lambda: ["time,watts", *(f"{time.strftime('%T', time.gmtime(86360 + k))},{p} W" for k, p in ROWS)],
        }[form]()
    )


@pytest.mark.parametrize("form", ["plain", "iso", "german", "epoch", "clock"])
def test_forms(form: str) -> None:
    meter = meter_of(text_of(form).encode(), "m.csv")
    assert np.diff(meter.at_s) == pytest.approx(np.ones(99))
    assert meter.watts == pytest.approx([watts for _, watts in ROWS], rel=1e-3)
    (found,) = energies(meter, [(5020.0, 5070.0)])
    assert found.energy == pytest.approx(50 * 500.0, rel=0.02)
    assert found.energy_error is not None
    assert abs(found.energy - 25_000) <= found.energy_error < 0.05 * found.energy
    assert found.idle_before == pytest.approx(300.0, rel=1e-3)
    assert found.reason.startswith("aligned by the edges of the load, to 750 ms; the error does not hold")


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "no rows with a time and a power"),
        ("a,b\nc,d\n", "no rows with a time and a power"),
        ("time,volt\n1,2\n2,2\n", "no column of power among time, volt"),
        ("time,power,power2\n1,2,3\n", "no single column of power"),
        ("1,2,3\n2,3,4\n", "no header found, and 3 columns"),
        ("time,power\n" + "".join(f"{k},300\n" for k in range(5)), "only 5 values"),
        ("time,power\n" + "".join(f"{k % 7},300\n" for k in range(50)), "its times go backwards by 6.00 s"),
    ],
)
def test_files_that_are_refused(text: str, error: str) -> None:
    with pytest.raises(UsageError, match=error):
        meter_of(text.encode(), "m.csv")


def test_what_has_run(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text(text_of("iso"))
    (tmp_path / "ran.json").write_text(json.dumps({"measured": {"elapsed_s": 50.0}}))
    words = ("power", "--meter", "m.csv", "--of", "ran.json")
    done = seatrial_here(*words, cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("1 of 1 phase used 25.0 kJ ± ")
    (phase,) = json.loads(seatrial_here(*words, "--format", "json", cwd=tmp_path).stdout)["phases"]
    assert phase["what"] == "command"
    (tmp_path / "ran.json").write_text(json.dumps({"measured": {"elapsed_s": 30.0}}))
    done = seatrial_here(*words, cwd=tmp_path)
    assert "The meter shows no energy of 1 phase." in done.stdout
    assert "the load of 30.0 s was not found in the meter's curve, which has 2 edges" in " ".join(done.stdout.split())
    for arguments in (("--meter", "m.csv"), ("--of", "ran.json"), ("--meter", "m.csv", "--of", "m.csv")):
        assert seatrial_here("power", *arguments, cwd=tmp_path).returncode == 2


def test_damaged_files_are_read_or_refused() -> None:
    chance = random.Random(4)
    for k in range(50):
        text = bytearray(text_of(("plain", "iso", "german", "epoch", "clock")[k % 5]).encode())
        for _ in range(chance.randrange(30)):
            start = chance.randrange(len(text) - 100)
            text[start : start + chance.randrange(1, 50)] = bytes([chance.randrange(256)])
        with suppress(UsageError):
            energies(meter_of(bytes(text), "m.csv"), [(0.0, 50.0), (60.0, 61.0)])
