"""The program that reads sensors while others run: `python -m seatrial.probes.power.reader`.

It gets what to read as JSON on its standard input, and writes a line for each reading to its standard output:
`SENSOR AT_S TOOK_S VALUE AGE_S`, with `-` for what is unknown; `SENSOR AT_S TOOK_S = BYTES` for a file, whose bytes are
read as a value later; or `SENSOR AT_S TOOK_S ! FAULT`. SENSOR is its number, times are on CLOCK_MONOTONIC. It is its
own process so that what it costs is known, and so that it can be kept from the CPUs of the programs.

Sensors of this node that are due at about the same time are read at one wake-up and written in one call.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from threading import Thread

import msgspec

from seatrial.model.environment.site import PowerAccess
from seatrial.model.frozen import Frozen
from seatrial.model.machine.power import Scope, SourceKind
from seatrial.probes.power.files import OpenFiles
from seatrial.probes.power.source import Reading, Sensor

LEAST_PERIOD_S = 0.1
"""A sensor that changes more often is read so often: more costs the program more than it shows of its power."""
MOST_SHARE = 0.01
"""The share of a CPU that reading may use."""
_TOGETHER_S = 0.02
"""Sensors that are due within so long are read together."""
REMOTE_PERIOD_S = 1.0
"""How often a BMC is asked whose refresh interval is not known."""
_RUNS_OUT_S = 7 * 86_400.0


class Orders(Frozen):
    """What to read: the sensors by name, of this node and its BMC, or of a recorded tree (kind, folder). `periods_s`:
    how often each is read; empty: as often as it states."""

    names: tuple[str, ...]
    access: PowerAccess
    recorded: tuple[str, str] | None = None
    others: tuple[tuple[str, PowerAccess], ...] = ()
    """Further nodes, with how their power is read from here."""
    periods_s: tuple[float, ...] = ()


def orders_for(
    sensors: Sequence[Sensor],
    access: PowerAccess,
    recorded: tuple[str, str] | None = None,
    others: Sequence[tuple[str, PowerAccess]] = (),
) -> Orders:
    """To read these, as often as they are known to change."""
    names, periods_s = tuple(one.name for one in sensors), tuple(period_s(one) for one in sensors)
    return Orders(names, access, recorded, tuple(others), periods_s)


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


def readings_of(data: bytes, sensors: Sequence[Sensor]) -> list[list[Reading]]:
    """The readings of each sensor, from lines that may end in the middle of one."""
    found: list[list[Reading]] = [[] for _ in sensors]
    for line in data.split(b"\n")[:-1]:
        words = line.split(b" ", 4)
        if len(words) == 5:
            number, at_s, took_s = int(words[0]), float(words[1]), float(words[2])
            file = sensors[number].file
            if words[3] == b"!":
                found[number].append(Reading(at_s, took_s, fault=words[4].decode("utf-8", "replace").strip()))
                continue
            if words[3] == b"=" and file is not None:
                found[number].append(file.reading(at_s, took_s, words[4]))
                continue
            value, age_s = (None if word.strip() == b"-" else float(word) for word in words[3:])
            is_counter = sensors[number].kind is SourceKind.COUNTER
            joules, watts = (value, None) if is_counter else (None, value)
            found[number].append(Reading(at_s, took_s, watts, joules, age_s))
    return found


def read_until(
    end_s: float,
    sensors: Mapping[int, Sensor],
    write: Callable[[bytes], object],
    periods_s: Mapping[int, float] | None = None,
) -> None:
    """Read each sensor, by its number, in its period until then (CLOCK_MONOTONIC), and pass on the lines. Sensors of
    BMCs have their own thread: their answers take up to seconds, which the counters of this node cannot wait for."""
    periods_s = periods_s or {number: period_s(sensor) for number, sensor in sensors.items()}
    remote, local = ({k: one for k, one in sensors.items() if one.is_remote is kind} for kind in (True, False))
    thread = Thread(target=_read_remote, args=(end_s, remote, periods_s, write), daemon=True)
    if remote:
        thread.start()
    if local:
        _read_local(end_s, local, periods_s, write)
    if remote:
        thread.join()


def _read_remote(
    end_s: float, sensors: Mapping[int, Sensor], periods_s: Mapping[int, float], write: Callable[[bytes], object]
) -> None:
    """A reading that comes too late is left out: the next one is in its turn. Where all take longer than their periods,
    those of a node are read when they are due, and the others in what time is left. Where they cost more than
    `MOST_SHARE` of a CPU, all periods are longer."""
    now = time.monotonic()
    due = dict.fromkeys(sensors, now)
    used_s, n_read = dict.fromkeys(sensors, 0.0), dict.fromkeys(sensors, 0)
    nodes = [number for number, sensor in sensors.items() if sensor.scope is Scope.NODE]
    while min(due.values()) < end_s:
        now = time.monotonic()
        number = min([one for one in nodes if due[one] <= now] or sensors, key=due.__getitem__)
        time.sleep(max(0.0, due[number] - now))
        began_s = time.thread_time()
        write(line_of(number, sensors[number], sensors[number].read()).encode())
        used_s[number] += time.thread_time() - began_s
        n_read[number] += 1
        share = sum(used_s[one] / max(1, n_read[one]) / periods_s[one] for one in sensors)
        due[number] = max(due[number] + max(1.0, share / MOST_SHARE) * periods_s[number], time.monotonic())


def _read_local(
    end_s: float, sensors: Mapping[int, Sensor], periods_s: Mapping[int, float], write: Callable[[bytes], object]
) -> None:
    """Those of one period at one moment. What is late is not made up for. The same share of a CPU is the most."""
    groups: dict[float, list[int]] = {}
    for number in sensors:
        groups.setdefault(round(periods_s[number], 3), []).append(number)
    readers = {period: _together({number: sensors[number] for number in own}) for period, own in groups.items()}
    due = dict.fromkeys(readers, time.monotonic())
    used_s, n_read = dict.fromkeys(readers, 0.0), dict.fromkeys(readers, 0)
    gc.freeze()
    while (next_s := min(due.values())) < end_s:
        time.sleep(max(0.0, next_s - time.monotonic()))
        for period in [one for one, at_s in due.items() if at_s <= next_s + _TOGETHER_S]:
            began_s = time.thread_time()
            write(readers[period]())
            used_s[period] += time.thread_time() - began_s
            n_read[period] += 1
            share = sum(used_s[one] / max(1, n_read[one]) / one for one in readers)
            due[period] = max(due[period] + max(1.0, share / MOST_SHARE) * period, time.monotonic())


def _together(sensors: Mapping[int, Sensor]) -> Callable[[], bytes]:
    """What reads these sensors, and gives their lines."""
    files = OpenFiles({number: one.file for number, one in sensors.items() if one.file is not None})
    others = [(number, one) for number, one in sensors.items() if one.file is None]

    def lines() -> bytes:
        found = [_line_of_file(*one) for one in files.read()]
        found += [line_of(number, one, one.read()).encode() for number, one in others]
        return b"".join(found)

    return lines


def _line_of_file(number: int, at_s: float, took_s: float, data: bytes | None, fault: str) -> bytes:
    if data is None:
        return b"%d %.6f %.6f ! %s\n" % (number, at_s, took_s, fault.encode())
    return b"%d %.6f %.6f = %s\n" % (number, at_s, took_s, data.strip().replace(b"\n", b" "))


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
        read_until(
            time.monotonic() + _RUNS_OUT_S, chosen, partial(os.write, 1), dict(enumerate(orders.periods_s)) or None
        )

    if orders.recorded is not None:
        read(recorded_sensors(orders.recorded[0], Path(orders.recorded[1])))
        return
    with sensors_of_nodes(orders.access, orders.others) as found:
        read(found)


if __name__ == "__main__":
    main()
