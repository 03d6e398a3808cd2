"""What a study measures beside its repeats: the MPI profile, the program's I/O, and the power of this node.

The sensors of power are read for as long as the engine runs: idle power is that between two repeats.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.engine.ready import Ready
from seatrial.errors import ParseError
from seatrial.launch.allocation import allocated, srun_words, ssh_words
from seatrial.launch.local import Completed
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import readings
from seatrial.model.results.sample import Sample
from seatrial.model.study.study import IO
from seatrial.plan.points import Point
from seatrial.plan.site_in_force import place_in_force, site_in_force
from seatrial.probes.power.node_meter import PowerMeter, power_meter
from seatrial.probes.power.on_node import words_for
from seatrial.probes.power.scopes import scope_samples
from seatrial.profiler.capture.functions import function_names
from seatrial.profiler.capture.run import ProbeSettings, node_folder, on_node, profiled_variables, profiler

_TABLES = "mpi"
_NOTHING = ProbeSettings()


def mpi_variables(ready: Ready, directory: Path) -> dict[str, str]:
    """The variables that the profiler adds to a repeat. Raises BuildError."""
    target = directory / _TABLES
    variables = {**os.environ, **{name: value for name, value in ready.variables if value is not None}}
    return profiled_variables(profiler(), target, node_folder(target), _NOTHING, variables)


def mpi_folder(directory: Path) -> AbstractContextManager[object]:
    """The folder of the tables, and what the profiler needs of this node, for as long as a repeat runs. Raises OSError,
    StoreError."""
    target = directory / _TABLES
    target.mkdir(exist_ok=True)
    return on_node(node_folder(target), target)


def mpi_report(directory: Path) -> dict[str, Any] | None:
    """The sums over the ranks; None if there is none, or one cannot be read."""
    from seatrial.profiler.merge.recorded import mpi_summary  # both load numpy
    from seatrial.profiler.tables.process_table import ProcessTable, read_table

    tables: list[ProcessTable] = []
    names = function_names()
    for path in sorted((directory / _TABLES).glob("*.mpi")):
        try:
            tables.append(read_table(path, len(names)))
        except (ParseError, OSError):
            return None  # a sum without this rank would look like less work
    return mpi_summary(tables, names) if tables else None


def probe_variables(ready: Ready, directory: Path) -> dict[str, str]:
    """The variables that the probes add to a repeat. Raises BuildError."""
    if not ready.point.is_profiled:
        return {}
    return mpi_variables(ready, directory)


class Phase(Frozen):
    """When a repeat took its samples, on CLOCK_MONOTONIC of this node; of a program that does not report it, when it
    ran."""

    of: str
    start_s: float
    end_s: float


class Probes:
    """What is measured beside the repeats of a run. Without a `meter`, power is not."""

    def __init__(self, meter: PowerMeter | None = None) -> None:
        self._meter = meter

    def suited(self, ready: Ready) -> Ready:
        """The same, sampling for as long as its sensors of power need."""
        if self._meter is None or not ready.point.has_power:
            return ready
        return replace(ready, least_phase_s=self._meter.least_phase_s)

    @contextmanager
    def around(self, claimed: Sequence[tuple[Ready, Path]]) -> Iterator[None]:
        """Set up what the probes need while repeats run in their folders; with power, the machine is idle before and
        after. Raises OSError, StoreError."""
        meter = self._meter if any(ready.point.has_power for ready, _ in claimed) else None
        with ExitStack() as folders:
            for ready, directory in claimed:
                if ready.point.is_profiled:
                    folders.enter_context(mpi_folder(directory))
            if meter is not None:
                meter.wait_idle()
            try:
                yield
            finally:
                if self._meter is not None:
                    self._meter.busy_until_now()
        if meter is not None:
            meter.wait_idle()

    def power(
        self, ready: Ready, machine: Machine, record: ProgramRecord, completed: Completed
    ) -> tuple[dict[str, Any], tuple[Sample, ...]]:
        """What the sensors of power show of a repeat, for its record: the energy of each, and the samples of the
        figures. Empty if power is not measured."""
        if not ready.point.has_power:
            return {}, ()
        if self._meter is None or self._meter.why_not:
            why = "power is measured only where repeats run" if self._meter is None else self._meter.why_not
            return {"power": {"why_not": why}}, ()
        phase = sampling_phase(record, completed)
        found = self._meter.of_phase(completed.clock_s, phase.start_s, phase.end_s)
        report: dict[str, Any] = {
            "nodes": _nodes(ready.point),
            "phase": {
                "of": phase.of,
                "start_s": round(phase.start_s - completed.clock_s, 6),
                "end_s": round(phase.end_s - completed.clock_s, 6),
                "ended_s": round(completed.wall_s, 6),
            },
            "parts_out": [plain(one) for one in found.parts_out],
            "energies": [plain(one) for one in found.energies],
            "curves": {name: [list(point) for point in points] for name, points in found.curves.items()},
        }
        benchmark, params = ready.point.benchmark, ready.point.parameters
        results = readings(benchmark, machine, params, record.samples)
        runs = 1
        if phase.of == _SAMPLING and benchmark.program.may_start_mpi:  # a command, which may be started again
            runs = sum(sample.series == benchmark.figures[0].series for sample in record.samples)
        return {"power": report}, scope_samples(found, results, max(1, runs), report["nodes"])


@contextmanager
def probes_of(points: Iterable[Point], machine: Machine) -> Iterator[Probes]:
    """The probes of these points, until the end of the block. Raises UsageError for a password of a BMC that cannot be
    read."""
    of_power = [point for point in points if point.has_power]
    if not of_power:
        yield Probes()
        return
    used = {cpu for point in of_power for cpu in point.cpus}
    free = [cpu for cpu in machine.allowed_cpus if cpu not in used]
    site, place = site_in_force(), place_in_force()
    others = dict.fromkeys(node for point in of_power for node in _nodes(point) if node)
    access = [(node, site.power_at(place, node)) for node in others]
    there = _readers_on(list(others), free)
    with power_meter(site.power_at(place, _here()), free or None, others=access, elsewhere=there) as meter:
        yield Probes(meter)


def _readers_on(nodes: Sequence[str], cpus: Sequence[int]) -> list[tuple[Sequence[str], Sequence[str]]]:
    """The commands that start readers on these nodes, each with its nodes, by what runs commands there."""
    if not nodes:
        return []
    found = allocated(os.environ)
    if found is not None and found.starter == "srun":
        return [(nodes, srun_words(nodes, words_for(cpus=cpus)))]
    return [([node], ssh_words(node, words_for(node, cpus))) for node in nodes]


def _here() -> str:
    return socket.gethostname().partition(".")[0]


def _nodes(point: Point) -> list[str]:
    """The nodes that a point runs on; "" is this one."""
    return list(dict.fromkeys("" if host.partition(".")[0] == _here() else host for host in point.hosts)) or [""]


_SAMPLING, _PROGRAM = "sampling", "program"


def sampling_phase(record: ProgramRecord, completed: Completed) -> Phase:
    """When its samples were taken, as a program noted it; else from its start to its end."""
    start_s, end_s = completed.clock_s, completed.clock_s + completed.wall_s
    noted = record.notes.get("sampled")
    if not isinstance(noted, Mapping) or record.hello is None:
        return Phase(_PROGRAM, start_s, end_s)
    try:
        from_s, until_s, began_at_s = (float(noted[name]) for name in ("from_s", "until_s", "began_at_s"))
    except (KeyError, TypeError, ValueError):
        return Phase(_PROGRAM, start_s, end_s)
    if record.hello.host != socket.gethostname():  # its clock has another zero
        length_s = until_s - from_s
        from_s = time.monotonic() - (time.time() - began_at_s)
        until_s = from_s + length_s
    is_within = start_s - _CLOCKS_DIFFER_S <= from_s < until_s <= end_s + _CLOCKS_DIFFER_S
    return Phase(_SAMPLING, from_s, until_s) if is_within else Phase(_PROGRAM, start_s, end_s)


_CLOCKS_DIFFER_S = 0.1
"""A phase that a node reports may be outside of what we saw by so much."""


def probe_reports(ready: Ready, directory: Path, completed: Completed | None) -> dict[str, Any]:
    """The MPI profile and the I/O for a repeat's record; null for what could not be read. `completed` is None if the
    program ended unobserved."""
    reports: dict[str, Any] = {}
    if ready.point.is_profiled:
        reports["mpi"] = mpi_report(directory)
    if IO in ready.point.probes:
        reports["io"] = None if completed is None else _io(completed.io)
    return reports


def _io(counters: Mapping[str, int] | None) -> dict[str, int] | None:
    """Bytes that the program requested from the kernel, and bytes transferred from and to devices (proc(5))."""
    if counters is None:
        return None
    return {
        "asked_read_B": counters["rchar"],
        "asked_written_B": counters["wchar"],
        "device_read_B": counters["read_bytes"],
        "device_written_B": max(0, counters["write_bytes"] - counters["cancelled_write_bytes"]),
    }
