"""Sensors of other nodes that are read there (on_node.py): their readings, on the clock of this node."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import IO

from msgspec.structs import replace

from seatrial.probes.power.on_node import MARK, sensor_from
from seatrial.probes.power.reader import readings_of
from seatrial.probes.power.source import Reading, Sensor
from seatrial.processes.start import Running

_START_LIMIT_S = 30.0
_POLL_S = 0.05
_log = logging.getLogger(__name__)


class Elsewhere:
    """What was printed on other nodes until now. `sensors` are known once all of them have started."""

    def __init__(self, outputs: Sequence[IO[bytes]]) -> None:
        self.sensors: tuple[Sensor, ...] = ()
        self._outputs = list(outputs)
        self._read_B = [0] * len(outputs)
        self._by_node: dict[str, dict[int, Sensor]] = {}
        self._known: dict[tuple[str, int], list[Reading]] = {}
        self.started: dict[str, int] = {}
        """Node -> number of its sensors, of those that have printed all of them."""

    def look(self) -> None:
        """Take in what was printed meanwhile."""
        for number, output in enumerate(self._outputs):
            file = output.fileno()
            fresh = os.pread(file, max(0, os.fstat(file).st_size - self._read_B[number]), self._read_B[number])
            whole = fresh[: fresh.rfind(b"\n") + 1]
            self._read_B[number] += len(whole)
            for line in whole.splitlines():
                words = line.split(b" ", 3)
                if len(words) == 4 and words[0] == MARK.encode():
                    with suppress(ValueError, KeyError, TypeError, IndexError):  # of lines that a launcher has mixed
                        self._take(words[1].decode(), words[2], words[3])

    def _take(self, node: str, what: bytes, rest: bytes) -> None:
        if what == b"sensors":
            self.started[node] = int(rest)
        elif what == b"sensor":
            word, text = rest.split(b" ", 1)
            self._by_node.setdefault(node, {})[int(word)] = sensor_from(text.decode(), node)
        elif what == b"read":
            word, text = rest.split(b" ", 1)
            number = int(word)
            ((one,),) = readings_of(b"0 " + text + b"\n", [self._by_node[node][number]])
            here_s = one.at_s - (time.time() - time.monotonic())
            self._known.setdefault((node, number), []).append(replace(one, at_s=here_s))

    def wait_started(self, running: Sequence[tuple[Sequence[str], Running | None]]) -> None:
        """Wait until each node has printed its sensors, or what runs there has ended; one that does not is left out,
        with a warning."""
        end_s = time.monotonic() + _START_LIMIT_S
        while time.monotonic() < end_s:
            ended = {node for own, one in running if one is None or one.wait(0.0) is not None for node in own}
            self.look()
            nodes = [node for own, _ in running for node in own]
            if not set(nodes) - set(self.started) - ended:
                break
            time.sleep(_POLL_S)
        for node in nodes:
            if node not in self.started:
                _log.warning("%s: its own sensors of power are not read: its reader did not start there", node)
        self.sensors = tuple(one for node in nodes for one in self._by_node.get(node, {}).values())

    def readings(self) -> list[list[Reading]]:
        """All readings until now, in the order of `sensors`."""
        self.look()
        order = {(one.node, number): one for node in self._by_node.values() for number, one in node.items()}
        by_name = {sensor.name: self._known.get(key, []) for key, sensor in order.items()}
        return [by_name.get(one.name, []) for one in self.sensors]

    def forget(self, before_s: float) -> None:
        """Forget the readings from before this moment (CLOCK_MONOTONIC)."""
        self._known = {key: [one for one in own if one.at_s >= before_s] for key, own in self._known.items()}


@contextmanager
def reading_on(commands: Sequence[tuple[Sequence[str], Sequence[str]]]) -> Iterator[Elsewhere]:
    """Read the sensors of nodes, each with the command that starts their readers, until the end of the block. What
    cannot be started is left out, with a warning."""
    with ExitStack() as opened:
        outputs: list[IO[bytes]] = []
        running: list[tuple[Sequence[str], Running | None]] = []
        nothing = os.open(os.devnull, os.O_RDONLY)
        opened.callback(os.close, nothing)
        for nodes, words in commands:
            output = opened.enter_context(tempfile.TemporaryFile())
            try:
                one = Running(words, os.environ, (nothing, output.fileno(), 2))
            except OSError as error:
                _log.warning("%s cannot be started: %s", words[0], error.strerror or error)
                running.append((nodes, None))
                continue
            opened.callback(one.wait)
            opened.callback(one.kill)
            outputs.append(output)
            running.append((nodes, one))
        found = Elsewhere(outputs)
        found.wait_started(running)
        yield found
