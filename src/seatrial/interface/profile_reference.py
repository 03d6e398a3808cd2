"""The network that a profile is judged against: measurements of the same host with the same MPI library in its results
folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from seatrial.analysis.network_tables import network_tables
from seatrial.analysis.results import results_without_limits
from seatrial.benchmarks import benchmark_of
from seatrial.errors import SeatrialError
from seatrial.model.record import RepeatRecord
from seatrial.model.role import Role
from seatrial.profiler.diagnosis.measured import MeasuredNetwork, judged
from seatrial.profiler.profile import Profile
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

_USED = (Role.MESSAGE_TIME, Role.MESSAGE_BANDWIDTH)


def judged_profiles(profiles: Sequence[Profile], results: Path) -> list[Profile]:
    """The same profiles; latency and transfer are judged against the measurements in `results` where it has them for a
    profile's only host and its MPI library."""
    if not any(_wants(profile) for profile in profiles):
        return list(profiles)
    try:
        contents = read_contents(ResultsFolder.existing(results))
    except SeatrialError:
        return list(profiles)
    return [_judged(profile, contents) for profile in profiles]


def _wants(profile: Profile) -> bool:
    return any(one.size_B is not None for one in profile.diagnoses)


def _judged(profile: Profile, contents: Contents) -> Profile:
    network = _network(profile, contents)
    return profile if network is None else replace(profile, diagnoses=judged(profile.diagnoses, network))


def _network(profile: Profile, contents: Contents) -> MeasuredNetwork | None:
    hosts = {rank.host for rank in profile.per_rank}
    libraries = set(profile.trust.libraries)
    names = {benchmark_of(role) for role in _USED}
    if len(hosts) != 1 or len(libraries) != 1:
        return None
    fitting = {
        key: experiment
        for key, experiment in contents.experiments.items()
        if experiment.benchmark in names
        and experiment.parameters.get("nodes") == 1
        and all(_is_like(record, hosts, libraries) for record in contents.records[key])
    }
    if not fitting:
        return None
    try:
        tables = network_tables(results_without_limits(replace(contents, experiments=fitting)))
    except SeatrialError:
        return None
    return MeasuredNetwork(
        tables.one_way_s, tables.bandwidth_Bps, f"{benchmark_of(Role.MESSAGE_TIME)} of this results folder"
    )


def _is_like(record: RepeatRecord, hosts: set[str], libraries: set[str]) -> bool:
    """Whether a record is of one of these hosts and MPI libraries."""
    notes: Any = record.seen.get("notes")
    version = notes.get("mpi_version") if isinstance(notes, Mapping) else None
    first = version.split("\n")[0] if isinstance(version, str) else ""
    return record.seen.get("host") in hosts and " ".join(first.split()) in libraries
