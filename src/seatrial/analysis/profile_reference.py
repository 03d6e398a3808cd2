"""What a profile is judged against: measurements in its results folder, for its calls those on the same hosts with the
same MPI library, for hardware counters those of the machine."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.grouped import Numbering
from seatrial.analysis.network_fit import times_by_size
from seatrial.analysis.results import results_without_limits
from seatrial.analysis.roles import figures_with
from seatrial.benchmarks import registry
from seatrial.diagnosis.calls import SAME_SIZES, MeasuredCall, MeasuredNetwork, judged
from seatrial.errors import SeatrialError, UsageError
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.results.figure_result import ExperimentResult
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.profiler.cpu import NodeLimits
from seatrial.profiler.profile import Profile
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)

_USED = frozenset({Role.MESSAGE_TIME, Role.MESSAGE_BANDWIDTH, Role.COLLECTIVE_TIME})
_FUNCTIONS = {name.removeprefix("MPI_").lower(): name for name in SAME_SIZES}
_MOSTLY = 0.5


def judged_profile(profile: Profile, contents: Contents) -> Profile:
    """The same profile, judged against the measurements of a results folder."""
    network = _network(profile, contents)
    return profile if network is None else replace(profile, diagnoses=judged(profile.diagnoses, network))


def _network(profile: Profile, contents: Contents) -> MeasuredNetwork | None:
    hosts = {rank.host for rank in profile.per_rank}
    libraries = set(profile.trust.libraries)
    benchmarks = {name for name, one in registry().items() if any(figure.role in _USED for figure in one.figures)}
    if not hosts or len(libraries) != 1:
        return None
    fitting = {
        key: experiment
        for key, experiment in contents.experiments.items()
        if experiment.benchmark in benchmarks
        and contents.records[key]
        and all(_is_like(record, hosts, libraries) for record in contents.records[key])
    }
    if not fitting:
        return None
    try:
        measured = results_without_limits(replace(contents, experiments=fitting))
    except SeatrialError:
        return None
    one_way, bandwidth, source = _messages(profile, measured, len(hosts))
    collectives = _collectives(profile, measured, len(hosts))
    return MeasuredNetwork(one_way, bandwidth, source, collectives, profile.ranks) if one_way or collectives else None


def _messages(
    profile: Profile, measured: Sequence[ExperimentResult], hosts: int
) -> tuple[Mapping[int, float], Mapping[int, float], str]:
    """Times and rates of messages between two ranks of one host; on several hosts, between two hosts, if most of the
    profile's messages are. Those of one placement of the two ranks, which the source names."""
    nodes = 1 if hosts == 1 else 2
    if nodes > 1 and _share_between_hosts(profile) < _MOSTLY:
        return {}, {}, ""
    fitting = [
        one
        for one in measured
        if one.experiment.parameters.get("nodes") == nodes
        and one.experiment.parameters.get("buffers", "host") == "host"
    ]
    times = times_by_size(fitting, Role.MESSAGE_TIME)
    if not times:
        return {}, {}, ""
    latency, one_way_s = max(times, key=lambda pair: len(pair[1]))
    placement = latency.experiment.parameters.get("placement")
    rates = [
        table
        for result, table in times_by_size(fitting, Role.MESSAGE_BANDWIDTH)
        if result.experiment.parameters.get("placement") == placement
    ]
    how = f" (nodes={nodes}, placement={placement})"
    return one_way_s, max(rates, key=len, default={}), f"{latency.experiment.benchmark}{how} of this results folder"


def _share_between_hosts(profile: Profile) -> float:
    """The share of messages between ranks of different hosts."""
    import numpy as np

    numbers = Numbering[str]()
    host = np.full(max((rank.rank for rank in profile.per_rank), default=0) + 1, -1)
    for rank in profile.per_rank:
        host[rank.rank] = numbers[rank.host]
    src, dst = (np.frombuffer(one, np.uintc).astype(np.int64) for one in (profile.matrix.src, profile.matrix.dst))
    count = np.frombuffer(profile.matrix.count, np.uint64).astype(float)
    known = (src < len(host)) & (dst < len(host))
    total = float(count.sum())
    src, dst, count = src[known], dst[known], count[known]
    return float(count[host[src] != host[dst]].sum()) / total if total > 0 else 0.0


def _collectives(profile: Profile, measured: Sequence[ExperimentResult], hosts: int) -> dict[str, MeasuredCall]:
    """Those with as many ranks on as many hosts."""
    found: dict[str, MeasuredCall] = {}
    for result in measured:
        function = _FUNCTIONS.get(result.experiment.benchmark.removeprefix("mpi."))
        if function is None or not result.outcome.is_ok or not _is_same_size(result.experiment, profile.ranks, hosts):
            continue
        figures = [figure for _, figure in figures_with([result], Role.COLLECTIVE_TIME)]
        table = {_size_of(figure.point): figure.median for figure in figures}
        source = f"{result.experiment.benchmark} (ranks={profile.ranks}, nodes={hosts}) of this results folder"
        if len(table) > len(found[function].time_s if function in found else ()):
            found[function] = MeasuredCall(table, source)
    return found


def _is_same_size(experiment: Experiment, ranks: int, hosts: int) -> bool:
    wanted = {"ranks": ranks, "nodes": hosts, "call": "blocking", "buffers": "host"}
    return all(experiment.parameters.get(name, value) == value for name, value in wanted.items())


def _size_of(point: Mapping[str, Any]) -> int:
    size_B = point.get("size_B")
    return size_B if isinstance(size_B, int) else 0


def _is_like(record: RepeatRecord, hosts: Collection[str], libraries: Collection[str]) -> bool:
    """Whether all ranks of a record were on some of these hosts, with one of these MPI libraries."""
    notes: Any = record.seen.get("notes")
    version = notes.get("mpi_version") if isinstance(notes, Mapping) else None
    first = version.split("\n")[0] if isinstance(version, str) else ""
    of_ranks: Any = record.seen.get("hosts")
    ran_on = set(of_ranks) if isinstance(of_ranks, list) else {record.seen.get("host")}
    return ran_on <= set(hosts) and " ".join(first.split()) in libraries


def node_limits(results: Path) -> NodeLimits | None:
    """The highest memory bandwidth (triad) and floating-point rate among the results; None if there are none, or if
    they are of more than one machine."""
    try:
        contents = read_contents(ResultsFolder.existing(results))
    except UsageError as problem:
        _log.info("no limits of this machine: %s", problem)
        return None
    if len({experiment.machine for experiment in contents.experiments.values()}) != 1:
        return None
    measured = results_without_limits(contents)
    memory, flops = (
        max((figure.median for _, figure in figures_with(measured, role)), default=None)
        for role in (Role.MEMORY_BANDWIDTH, Role.FMA_RATE)
    )
    return None if memory is None and flops is None else NodeLimits(memory, flops)
