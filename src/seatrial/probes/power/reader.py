"""The program that reads sensors while others run: `python -m seatrial.probes.power.reader`.

It gets what to read as JSON on its standard input, and writes a line for each reading to its standard output:
`SENSOR AT_S TOOK_S VALUE AGE_S`, with `-` for what is unknown, or `SENSOR AT_S TOOK_S ! FAULT`. SENSOR is its number,
times are on CLOCK_MONOTONIC. It is its own process so that what it costs is known, and so that it can be kept from the
CPUs of the programs.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Thread

import msgspec

from seatrial.model.environment.site import PowerAccess
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.probes.power.source import Reading, Sensor

LEAST_PERIOD_S = 0.1
"""A sensor that changes more often is read so often: more costs the program more than it shows of its power."""
MOST_SHARE = 0.01
"""The share of a CPU that reading may use."""
REMOTE_PERIOD_S = 1.0
"""How often a BMC is asked whose refresh interval is not known."""
_RUNS_OUT_S = 7 * 86_400.0


class Orders(Frozen):
    """What to read: the sensors by name, of this node and its BMC, or of a recorded tree (kind, folder)."""

    names: tuple[str, ...]
    access: PowerAccess
    recorded: tuple[str, str] | None = None
    others: tuple[tuple[str, PowerAccess], ...] = ()
    """Further nodes, with how their power is read from here."""


def orders_of(data: bytes) -> Orders:
    """From the JSON of `data_of`."""
    return msgspec.json.decode(data, type=Orders, dec_hook=lambda kind, text: kind(text))  # paths


def data_of(orders: Orders) -> bytes:
    """The orders as JSON. They hold no password."""
    return msgspec.json.encode(orders, enc_hook=str)


def period_s(sensor: Sensor) -> float:
    """How often a sensor is read: as often as it changes, within limits."""
    least_s = REMOTE_PERIOD_S if sensor.is_remote else LEAST_PERIOD_S
    return max(least_s, sensor.refresh_s or least_s)


def line_of(number: int, sensor: Sensor, reading: Reading) -> str:
    """The line of a reading."""
    start = f"{number} {reading.at_s:.6f} {reading.took_s:.6f}"
    if reading.fault:
        return f"{start} ! {reading.fault}\n".replace("\n", " ").rstrip() + "\n"
    value = reading.joules if sensor.kind is SourceKind.COUNTER else reading.watts
    return f"{start} {_word(value)} {_word(reading.age_s)}\n"


def readings_of(text: str, sensors: Sequence[Sensor]) -> list[list[Reading]]:
    """The readings of each sensor, from lines that may end in the middle of one."""
    found: list[list[Reading]] = [[] for _ in sensors]
    for line in text.splitlines(keepends=True):
        words = line.split(maxsplit=4)
        if line.endswith("\n") and len(words) == 5:
            number, at_s, took_s = int(words[0]), float(words[1]), float(words[2])
            if words[3] == "!":
                found[number].append(Reading(at_s, took_s, fault=words[4].strip()))
                continue
            value, age_s = (None if word.strip() == "-" else float(word) for word in words[3:])
            is_counter = sensors[number].kind is SourceKind.COUNTER
            joules, watts = (value, None) if is_counter else (None, value)
            found[number].append(Reading(at_s, took_s, watts, joules, age_s))
    return found


def read_until(end_s: float, sensors: Mapping[int, Sensor], write: Callable[[str], object]) -> None:
    """Read each sensor, by its number, in its period until then (CLOCK_MONOTONIC), and pass on each line. Sensors of
    BMCs have their own thread: their answers take up to seconds, which the counters of this node cannot wait for."""
    groups = [[k for k, one in sensors.items() if one.is_remote is remote] for remote in (True, False)]
    threads = [
        Thread(target=_read_group, args=(end_s, sensors, group, write), daemon=True) for group in groups if group
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _read_group(
    end_s: float, sensors: Mapping[int, Sensor], group: Sequence[int], write: Callable[[str], object]
) -> None:
    """Those with these numbers. A reading that comes too late is left out: the next one is in its turn. Where all take
    longer than their periods, those of a node are read when they are due, and the others in what time is left. Where
    they cost more than `MOST_SHARE` of a CPU, all periods are longer."""
    now = time.monotonic()
    due = dict.fromkeys(group, now)
    used_s, n_read = dict.fromkeys(group, 0.0), dict.fromkeys(group, 0)
    nodes = [number for number in group if sensors[number].scope is Scope.NODE]
    while min(due.values()) < end_s:
        now = time.monotonic()
        number = min([one for one in nodes if due[one] <= now] or group, key=due.__getitem__)
        time.sleep(max(0.0, due[number] - now))
        began_s = time.thread_time()
        write(line_of(number, sensors[number], sensors[number].read()))
        used_s[number] += time.thread_time() - began_s
        n_read[number] += 1
        share = sum(used_s[one] / max(1, n_read[one]) / period_s(sensors[one]) for one in group)
        longer = max(1.0, share / MOST_SHARE)
        due[number] = max(due[number] + longer * period_s(sensors[number]), time.monotonic())


def _word(value: float | None) -> str:
    return "-" if value is None else repr(value)


def main() -> None:
    """Read until the process is ended."""
    from seatrial.probes.power.sources import recorded_sensors, sensors_of_nodes

    orders = orders_of(sys.stdin.buffer.read())
    with suppress(OSError):
        os.nice(-5)  # as root, so that a busy machine does not delay the readings

    def read(sensors: Sequence[Sensor]) -> None:
        by_name = {sensor.name: sensor for sensor in sensors}
        chosen = {number: by_name[name] for number, name in enumerate(orders.names) if name in by_name}
        read_until(time.monotonic() + _RUNS_OUT_S, chosen, lambda line: os.write(1, line.encode()))

    if orders.recorded is not None:
        read(recorded_sensors(orders.recorded[0], Path(orders.recorded[1])))
        return
    with sensors_of_nodes(orders.access, orders.others) as found:
        read(found)


if __name__ == "__main__":
    main()
