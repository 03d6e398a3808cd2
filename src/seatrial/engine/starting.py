"""How the program of a repeat is started, with the links of the virtual cluster as it asks.

Copies of a job run at once: each is started as its own job, on its share of the CPUs and in its own folder, and
judged as one; then their records become that of the repeat.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import replace

from seatrial.engine.probing import probe_variables
from seatrial.engine.ready import NotPreparedError, Ready
from seatrial.environments.cached_files import private_top
from seatrial.environments.compiler import variables_with
from seatrial.errors import UsageError
from seatrial.launch.local import Completed
from seatrial.launch.ranks import rank_layout
from seatrial.model.benchmark.copies import (
    COPIES,
    COPY,
    COPY_DEVICES,
    DIVIDED,
    JOB,
    JOBS,
    SELECTING,
    copies_of,
    devices_of,
    one_of,
    part_of,
    shares_of,
)
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import BINDING, UNBOUND, Hello, ProgramRecord
from seatrial.model.environment.mpi import CLUSTER_LINK
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Outcome, Sample, State
from seatrial.places.cluster.namespaces import ClusterError
from seatrial.places.cluster.network import links_at
from seatrial.places.contained import StartInside, started
from seatrial.places.rank_helpers import inside_probe
from seatrial.plan.points import Point

_MOST = "max_resident_B"
"""What copies used is summed, but for the size of the largest process."""


class Job(Frozen):
    """One of the copies of a repeat, or its only job: as its own experiment, its folder, and the CPUs that it may
    use (None: all)."""

    ready: Ready
    directory: Path
    cpus: tuple[int, ...] | None = None


def jobs_of(ready: Ready, machine: Machine, directory: Path) -> tuple[Job, ...]:
    """The jobs that a repeat in this folder starts at once."""
    point = ready.point
    copies = copies_of(point.parameters)
    if copies == 1:
        return (Job(ready, directory),)
    parameters = one_of(point.parameters)
    devices = devices_of(machine, point.parameters)
    return tuple(
        Job(
            replace(
                ready,
                point=replace(point, parameters=parameters, cpus=part_of(point.cpus, copy, copies)),
                variables=(*ready.variables, *devices[copy : copy + 1]),
            ),
            directory / f"{COPY}-{copy}",
            share.allowed_cpus,
        )
        for copy, share in enumerate(shares_of(machine, copies))
    )


def why_no_copies(point: Point) -> str | None:
    """Why several copies of a job cannot run at once at a point; None if they can, or if there is only one."""
    if copies_of(point.parameters) == 1:
        return None
    if point.is_profiled:
        return "the MPI profile is of one job; leave out the probe mpi"
    if dict(point.environment.mpi_settings).get(BINDING) == UNBOUND:
        return f"each copy is bound to its share of the CPUs; leave out environment.{BINDING}={UNBOUND}"
    variables = variables_with(point.environment.variables)
    selected = next((name for name in SELECTING.values() if name in variables), None)
    if point.parameters.get(COPY_DEVICES) == DIVIDED and selected is not None:
        return f"{COPY_DEVICES}={DIVIDED} selects the GPUs of each copy, but {selected} is set; unset it"
    return None


def completed_together(each: Sequence[Completed]) -> Completed:
    """How the jobs ended, as of one program that ends with the last of them."""
    used = [one.used for one in each if one.used is not None]
    io = [one.io for one in each if one.io is not None]
    summed = _summed(used) if used and len(used) == len(each) else None
    if summed is not None:
        summed[_MOST] = max(own[_MOST] for own in used)
    counters = {name: sum(own[name] for own in io) for name in io[0]} if io and len(io) == len(each) else None
    return replace(max(each, key=lambda one: one.wall_s), used=summed, io=counters)


def _summed(each: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = set.intersection(*(set(own) for own in each))
    return {name: sum(own[name] for own in each) for name in names}


def outcome_together(each: Sequence[Outcome]) -> Outcome:
    """`ok` if all jobs are. A job that is not makes the repeat invalid, since the others then had the node to
    themselves; if no job is, the repeat ended as the first did."""
    bad = [(copy, outcome) for copy, outcome in enumerate(each) if not outcome.is_ok]
    if not bad:
        return Outcome.ok()
    copy, first = bad[0]
    if len(bad) == len(each) or first.state is State.TIMED_OUT:
        return first
    seen = f"{COPY} {copy} of {len(each)} (from 0) is {first.state}: {first.reason}"
    return replace(Outcome.invalid(COPIES, seen), evidence=first.evidence)


def overlap(each: Sequence[Completed]) -> Outcome | None:
    """None if all jobs ran at the same time for a while."""
    last_start, first_end = max(one.start_s for one in each), min(one.wall_s for one in each)
    if last_start < first_end:
        return None
    return Outcome.invalid(
        COPIES, f"one had ended after {first_end:.3g} s, the last was started after {last_start:.3g} s"
    )


def record_together(params: Params, records: Sequence[ProgramRecord], each: Sequence[Completed]) -> ProgramRecord:
    """What the jobs of a program reported, as one record: the samples of each with its number, and the times of all, if
    the program has copies. Checks and notes are those of the first; each job was judged by its own."""
    first = records[0]
    if COPIES not in params or not first.samples:
        return first
    done = Sample(JOBS, 0, max(one.wall_s for one in each), {"jobs": float(len(each))})
    if len(records) == 1:
        return replace(first, samples=(*first.samples, done))
    samples = [
        replace(sample, point={**sample.point, COPY: copy})
        for copy, (record, one) in enumerate(zip(records, each, strict=True))
        for sample in (*record.samples, Sample(JOB, 0, one.wall_s))
    ]
    return replace(first, hello=_hello([record.hello for record in records]), samples=(*samples, done))


def _hello(each: Sequence[Hello | None]) -> Hello | None:
    """The CPUs of all ranks or threads, one job after another; None if a job did not report them."""
    known = [one for one in each if one is not None]
    if len(known) < len(each):
        return None
    return replace(
        known[0],
        ranks=sum(one.ranks for one in known),
        cpus=tuple(mask for one in known for mask in one.cpus),
        hosts=tuple(host for one in known for host in one.hosts),
    )


def start_of(ready: Ready, directory: Path) -> StartInside:
    """How a repeat is started.

    Raises BuildError if the helper programs for ranks are missing, and NoLauncherError.
    """
    added = probe_variables(ready, directory)
    layout = None if ready.mpi is None else rank_layout(ready.point)
    record = None if ready.program.writes_record else directory
    if ready.container is not None and ready.program.starts_containers:
        outside = started(None, None, ready.container, ready.variables, added, [directory])
        return StartInside(variables=outside.variables)
    folders = [directory, private_top(inside_probe() if ready.program.is_of_image else ready.program.path)]
    works_in = directory if ready.program.runs_in_its_folder else None
    return started(ready.mpi, layout, ready.container, ready.variables, added, folders, record, works_in)


@contextmanager
def link_of(ready: Ready) -> Iterator[None]:
    """The links as the experiment asks (axis `cluster.link`) while a repeat runs. Raises NotPreparedError."""
    wanted = dict(ready.point.environment.mpi_settings).get(CLUSTER_LINK)
    try:
        with links_at(wanted, os.environ):
            yield
    except (ClusterError, UsageError) as error:
        raise NotPreparedError(f"{error.message}; {error.todo}" if error.todo else error.message, "") from error
