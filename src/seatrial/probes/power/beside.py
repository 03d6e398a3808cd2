"""Sensors that are read beside a program: the reader (reader.py) is started, and its readings are collected."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from seatrial.model.machine.power import Scope
from seatrial.probes.power.reader import Orders, data_of, period_s, readings_of
from seatrial.probes.power.source import Reading, Sensor
from seatrial.processes.start import Running

STEADY_VALUES = 8
"""So many values show the steady power beside a program."""
SHORTEST_IDLE_S, LONGEST_IDLE_S = 1.0, 30.0
_START_LIMIT_S = 30.0
_POLL_S = 0.02


class Beside:
    """Sensors that are being read."""

    def __init__(self, sensors: Sequence[Sensor], output: IO[bytes], running: Running) -> None:
        self.sensors = tuple(sensors)
        self._output, self._running = output, running
        self._known: list[list[Reading]] = [[] for _ in self.sensors]
        self._read_B = 0

    def readings(self) -> list[list[Reading]]:
        """All readings until now, by sensor; without those that were forgotten."""
        file = self._output.fileno()
        fresh = os.pread(file, os.fstat(file).st_size - self._read_B, self._read_B)
        whole = fresh[: fresh.rfind(b"\n") + 1]
        self._read_B += len(whole)
        for known, new in zip(self._known, readings_of(whole, self.sensors), strict=True):
            known += new
        return self._known

    def forget(self, before_s: float) -> None:
        """Forget the readings from before this moment (CLOCK_MONOTONIC)."""
        self._known = [[one for one in own if one.at_s >= before_s] for own in self._known]

    def cpu_s(self) -> float:
        """The CPU time that reading has taken, in seconds. Raises OSError if it has ended."""
        fields = Path(f"/proc/{self._running.pid}/stat").read_text(encoding="ascii", errors="replace")
        user, system = fields.rpartition(")")[2].split()[11:13]  # proc(5)
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def wait_idle(self) -> None:
        """Wait until the power beside a program can be known."""
        time.sleep(idle_s(self.sensors))

    def wait_started(self) -> None:
        """Wait until each sensor of the node was read, or each one if none measures the node: a BMC with hundreds of
        parts takes long for all of them. Raises OSError if the reader ends or no sensor answers."""
        end_s = time.monotonic() + _START_LIMIT_S
        of_node = [number for number, one in enumerate(self.sensors) if one.scope is Scope.NODE]
        awaited = of_node or range(len(self.sensors))
        while not all(self.readings()[number] for number in awaited):
            if self._running.wait(0.0) is not None:
                raise OSError(0, "the program that reads the sensors has ended")
            if time.monotonic() > end_s:
                if any(self.readings()):
                    return
                raise OSError(0, f"no sensor answered in {_START_LIMIT_S:g} s")
            time.sleep(_POLL_S)


def idle_s(sensors: Sequence[Sensor]) -> float:
    """How long sensors are read to see a steady power. One that needs more than the longest time does not prolong it:
    it would not see it in that time either."""
    needed = [STEADY_VALUES * period_s(one) + (one.window_s or 0.0) for one in sensors]
    return max([SHORTEST_IDLE_S, *(one for one in needed if one <= LONGEST_IDLE_S)])


@contextmanager
def reading(orders: Orders, sensors: Sequence[Sensor], cpus: Sequence[int] | None = None) -> Iterator[Beside]:
    """Read these sensors from now on, until the end of the block. `cpus`: where the reader may run. Raises OSError if
    it cannot be started."""
    with tempfile.TemporaryFile() as output:
        given = os.memfd_create("orders")
        try:
            os.write(given, data_of(orders))
            os.lseek(given, 0, os.SEEK_SET)
            words = [sys.executable, "-m", "seatrial.probes.power.reader"]
            running = Running(words, os.environ, (given, output.fileno(), 2), cpus=cpus)
        finally:
            os.close(given)
        try:
            found = Beside(sensors, output, running)
            found.wait_started()
            yield found
        finally:
            running.kill()
            running.wait()
