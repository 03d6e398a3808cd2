"""Reads what another node itself shows of its power: `python -m seatrial.probes.power.on_node NODE`.

It is started there by what starts programs on that node (srun, ssh), and prints short lines, which survive launchers
that mix the output of nodes: `seatrial-power NODE sensor NUMBER JSON` for each usable sensor, `seatrial-power NODE
sensors COUNT` after the last one, then `seatrial-power NODE read NUMBER AT_S TOOK_S VALUE AGE_S` (reader.py). Times are
those of day: clocks of nodes are synchronised, and their monotonic ones start at any time. It ends when nobody reads
its lines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.environment.site import PowerAccess
from seatrial.model.machine.power import Scope, SourceKind, Supply
from seatrial.probes.power.reader import line_of, read_until, readings_of
from seatrial.probes.power.source import Reading, Sensor
from seatrial.probes.power.sources import live_sensors, recorded_sensors, usable_sensors

MARK = "seatrial-power"
_WATCH_S = 3.0
_RUNS_OUT_S = 7 * 86_400.0
_STATED = ("window_s", "refresh_s", "accuracy", "modulus_J", "quantum", "note", "limit_W")


def words_for(node: str = "", cpus: Sequence[int] | None = None, recorded: str = "") -> list[str]:
    """The command, with this Python and this version of seatrial. `node`: "" is the name that Slurm gives it;
    `recorded`: a tree of sysfs in place of that of the node, with {node} for its name."""
    home = Path(__file__).absolute().parents[3]
    found = ["/usr/bin/env", f"PYTHONPATH={home}", sys.executable, "-P", "-m", "seatrial.probes.power.on_node"]
    found += ["--node", node] if node else []
    found += ["--cpus", ",".join(map(str, cpus))] if cpus else []
    return found + (["--sysfs", recorded] if recorded else [])


def line_of_sensor(node: str, number: int, sensor: Sensor) -> str:
    """What the other side needs of a sensor."""
    stated = {name: getattr(sensor, name) for name in _STATED}
    document = {"name": sensor.name, "scope": sensor.scope, "kind": sensor.kind, "of": sensor.of, **stated}
    return f"{MARK} {node} sensor {number} {json.dumps({**document, 'supply': sensor.supply})}\n"


def sensor_from(text: str, node: str) -> Sensor:
    """The sensor of such a line; it is read there. Raises ValueError, KeyError and TypeError."""
    stated = json.loads(text)
    kinds = Scope(stated.pop("scope")), SourceKind(stated.pop("kind"))
    name, of, supply = str(stated.pop("name")), str(stated.pop("of")), Supply(stated.pop("supply"))
    known = {key: value for key, value in stated.items() if key in _STATED}
    return Sensor(f"{node}:{name}", *kinds, of, lambda: Reading(0.0), supply, node=node, **known)


def main() -> None:
    """Read until nobody listens."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--node", default=os.environ.get("SLURMD_NODENAME") or platform.node().partition(".")[0])
    parser.add_argument("--cpus", default="")
    parser.add_argument("--sysfs", default="")
    given = parser.parse_args()
    with suppress(OSError, ValueError):
        os.sched_setaffinity(0, {int(one) for one in given.cpus.split(",")})
    with suppress(OSError):
        os.nice(-5)
    with suppress(BrokenPipeError):
        if given.sysfs:
            _read(given.node, recorded_sensors("sysfs", Path(given.sysfs.replace("{node}", given.node))))
            return
        with live_sensors(PowerAccess()) as found:
            _read(given.node, found)


def _read(node: str, found: Sequence[Sensor]) -> None:
    sensors = usable_sensors(found, _WATCH_S) if found else []
    head = "".join(line_of_sensor(node, number, one) for number, one in enumerate(sensors))
    _write(f"{head}{MARK} {node} sensors {len(sensors)}\n")
    if sensors:
        read_until(
            time.monotonic() + _RUNS_OUT_S, dict(enumerate(sensors)), lambda lines: _pass_on(node, sensors, lines)
        )


def _pass_on(node: str, sensors: Sequence[Sensor], lines: bytes) -> None:
    """The same lines with times of day, and the values of files."""
    ahead_s = time.time() - time.monotonic()
    each = enumerate(readings_of(lines, sensors))
    read = ((k, replace(one, at_s=one.at_s + ahead_s)) for k, own in each for one in own)
    _write("".join(f"{MARK} {node} read {line_of(k, sensors[k], one)}" for k, one in read))


def _write(text: str) -> None:
    os.write(1, text.encode())


if __name__ == "__main__":
    main()
