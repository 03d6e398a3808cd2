"""What the reader of power sensors costs the programs beside it: pairs of repeats with and without it, interleaved.

The sensors are a made-up tree (a node, two CPUs, memory and four devices of HPE Cray, each as a gauge and a counter;
RAPL), so that the script runs on any machine; --site reads what this machine has, with the BMC of its site file.
Equivalent: the 90 % interval of the ratio is within 0.5 %.

python bench/power_probe.py [--rounds 40] [--only BENCHMARK] [--site] [-o docs/results/power_probe.json]
"""

from __future__ import annotations

import argparse
import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from common import live_machine, measure, provenance, ready, write

from seatrial.model.environment.site import PowerAccess
from seatrial.model.machine.machine import Machine
from seatrial.plan.site_in_force import place_in_force, site_in_force
from seatrial.probes.power.beside import reading
from seatrial.probes.power.reader import Orders, orders_for
from seatrial.probes.power.sources import live_sensors, recorded_sensors, usable_sensors
from seatrial.stats.block_test import BlockTest

_MARGIN = 0.005
_ALPHA = 0.10
_SAMPLE_S = 1.0
_PARTS = ("", "cpu0_", "cpu1_", "memory_", "accel0_", "accel1_", "accel2_", "accel3_")
_FIGURES = {"cpu.peak": "fma", "memory.stream": "triad"}


def main() -> None:
    """Run the pairs, and print ratios, intervals and the CPU time of the reader."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", choices=tuple(_FIGURES), help="one of the benchmarks")
    parser.add_argument("--site", action="store_true", help="the sensors of this machine, not made-up ones")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    machine = live_machine()
    with tempfile.TemporaryDirectory() as folder, sensors_of(Path(folder), is_site=options.site) as (orders, sensors):
        rows = [
            pairs(machine, name, orders, sensors, options.rounds) for name in _FIGURES if options.only in (None, name)
        ]
    item = ready(machine, "cpu.peak", cores="one")
    write("power_probe", {"provenance": provenance(machine, item), "margin": _MARGIN, "rows": rows}, options.output)


@contextmanager
def sensors_of(folder: Path, *, is_site: bool) -> Iterator[tuple[Orders, list[Any]]]:
    """What is read: of this machine, or of a made-up tree that changes ten times a second."""
    if is_site:
        access = site_in_force().power_at(place_in_force(), os.uname().nodename.partition(".")[0])
        with live_sensors(access) as found:
            sensors = usable_sensors(found, 1.0)
        yield orders_for(sensors, access), sensors
        return
    over = threading.Event()
    writer = threading.Thread(target=_change, args=(folder, over), daemon=True)
    _write(folder, 0)
    writer.start()
    sensors = recorded_sensors("sysfs", folder)
    try:
        yield orders_for(sensors, PowerAccess(), ("sysfs", str(folder))), sensors
    finally:
        over.set()
        writer.join()


def _change(folder: Path, over: threading.Event) -> None:
    number = 0
    while not over.wait(0.1):
        number += 1
        _write(folder, number)


def _write(folder: Path, number: int) -> None:
    cray, rapl = folder / "sys/cray/pm_counters", folder / "sys/class/powercap/intel-rapl:0"
    for one in (cray, rapl):
        one.mkdir(parents=True, exist_ok=True)
    for part in _PARTS:
        (cray / f"{part}power").write_text(f"{300 + number % 7} W\n")
        (cray / f"{part}energy").write_text(f"{1000 + 30 * number} J\n")
    (cray / "freshness").write_text(f"{number}\n")
    (rapl / "name").write_text("package-0\n")
    (rapl / "energy_uj").write_text(f"{number * 20_000_000}\n")


def pairs(machine: Machine, name: str, orders: Orders, sensors: list[Any], rounds: int) -> dict[str, Any]:
    """One benchmark on all CPUs, so that the reader has none of its own: the hardest case."""
    item = ready(machine, name)
    values: list[tuple[float, float]] = []
    reader_s, wall_s = 0.0, 0.0
    for _ in range(rounds):
        found = {}
        for is_read in random.sample([False, True], 2):
            if is_read:
                with reading(orders, sensors) as beside:
                    before, start = beside.cpu_s(), time.monotonic()
                    found[is_read] = _value(measure(item, machine, _SAMPLE_S), name)
                    reader_s, wall_s = reader_s + beside.cpu_s() - before, wall_s + time.monotonic() - start
            else:
                found[is_read] = _value(measure(item, machine, _SAMPLE_S), name)
        values.append((found[False], found[True]))
    interval = BlockTest(values).ratio(_ALPHA)
    ends = interval.ends
    is_equivalent = ends is not None and ends[0] >= 1 / (1 + _MARGIN) and ends[1] <= 1 + _MARGIN
    return {
        "benchmark": name,
        "figure": _FIGURES[name],
        "sensors": len(sensors),
        "pairs": len(values),
        "ratio": interval.ratio,
        "interval_90": ends,
        "equivalent": is_equivalent,
        "reader_cpu_share": reader_s / wall_s if wall_s else None,
    }


def _value(record: Any, name: str) -> float:
    rates = [
        next(iter(sample.work.values())) / sample.elapsed_s
        for sample in record.samples
        if sample.series == _FIGURES[name]
    ]
    return sorted(rates)[len(rates) // 2]


if __name__ == "__main__":
    main()
