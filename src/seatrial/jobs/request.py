"""Requests of jobs: what a command measures, cut into jobs, with their time limits and scripts."""

from __future__ import annotations

import hashlib
import math
import os
import platform
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeGuard

from msgspec.structs import asdict, replace

from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.nodes import NODE_PLACEMENT, RANKS_PER_NODE, listed_nodes
from seatrial.engine.planned import ExpectedTimes, expected_times
from seatrial.engine.trial import BUDGET_EACH_S
from seatrial.errors import UsageError
from seatrial.jobs.batch.portable import node_script
from seatrial.jobs.batch.system import JobRequest
from seatrial.jobs.folder import VERSION, JobFolder
from seatrial.jobs.queue import Where, part_here
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Value, whole
from seatrial.model.benchmark.program import NODES, RANKS, THREADS
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import content_key
from seatrial.model.study.study import Study, study_without_secrets
from seatrial.plan.axis_values import concerns
from seatrial.plan.points import PROBES_SETTING, Point, Settings, plan_points, study_points, values_of
from seatrial.plan.site_file import site_of
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import only_study, with_declared
from seatrial.stats.interval import StoppingRule
from seatrial.store.folder import IN_JOB, JOBS

_SPARE = 1.25
"""A job's time limit is this much more than what its measurements take at most, for repeats slower than expected."""
_AROUND_S = 120.0
"""Time in a job for everything but repeats and builds: starting Python, reading the machine."""
_WORKERS = (RANKS, THREADS, "cpus", "processes")
"""Parameters whose product is the number of CPUs that a point needs."""
_MOST_SHOWN = 3
_SETTINGS_PASSED_ON = ("SEATRIAL_CACHE", "SEATRIAL_SHARED_CACHE", "CXX", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")


class Submission(Frozen):
    """What is to be measured in jobs, and how: targets with their settings into a results folder, in a time for all of
    them. `confirms`: a screen measures again what was odd. With `detach`, jobs are only submitted, with `cancel`,
    ended; `tell` is called with what happens."""

    targets: tuple[str, ...]
    settings: Settings
    results: Path
    budget_s: float | None = None
    again: bool = False
    keep: bool = False
    confirms: bool = False
    shared: bool = False
    site: Path | None = None
    detach: bool = False
    cancel: bool = False
    max_node_hours: float | None = None
    tell: Callable[[str], None] = lambda text: None

    @contextmanager
    def at(self, where: Where) -> Iterator[Command]:
        """The command for this partition, with the site's environments in force; of a study with the axis `system`, the
        part for it. Raises UsageError."""
        with at_site(self.site, where.in_site_file):
            names = with_declared(list(self.targets))
            study = only_study(names, self.settings)
            if study is not None:
                study = part_here(study, self.site, where.in_site_file)
            yield Command(**asdict(self), names=tuple(names), study=study)


class Command(Submission, kw_only=True):
    """What is measured on one partition. `names` are the targets with benchmarks in place of their files, `study` is
    the one that they name."""

    names: tuple[str, ...]
    study: Study | None

    @property
    def is_fresh(self) -> bool:
        """Whether it measures also what was measured before."""
        return self.again or self.confirms

    def key(self, where: Where) -> str:
        """The same for the same command, also later: its jobs are found by it."""
        document: dict[str, Any] = {
            "targets": sorted(self.names) if self.study is None else [],
            "files": [_digest(target) for target in self.targets if Path(target).is_file()],
            "settings": {name: [repr(value) for value in values] for name, values in values_of(self.settings).items()},
            "study": None if self.study is None else repr(study_without_secrets(self.study)),
            "budget_s": self.budget_s,
            "again": self.again,
            "keep": self.keep,
            "system": where.text,
        }
        if where.node is not None:
            document["node"] = where.node
        document |= {name: True for name in ("confirms", "shared") if getattr(self, name)}
        return content_key(document)


def _digest(target: str) -> str:
    try:
        return hashlib.sha256(Path(target).read_bytes()).hexdigest()
    except OSError:
        return target


class Portion(Frozen):
    """What one job measures. Times are in seconds: `expected_s` with few repeats, `limit_s` its limit. `node_list` and
    `switches` as in JobRequest."""

    targets: tuple[str, ...]
    settings: Mapping[str, Any]
    points: tuple[Point, ...]
    expected_s: float
    limit_s: float
    nodes: int = 1
    node_list: tuple[str, ...] = ()
    switches: int | None = None

    @property
    def node_hours(self) -> float:
        """What the job takes at most."""
        return self.nodes * self.limit_s / 3600.0


def points_of(command: Command, machine: Machine) -> tuple[Point, ...]:
    """The points of a command on a machine. Raises UsageError."""
    if command.study is not None:
        return study_points(command.study, machine)
    return plan_points(command.names, values_of(command.settings), machine)


def portions_of(command: Command, machine: Machine, longest_s: float | None) -> list[Portion]:
    """What a command measures, in as few jobs as its partition's time limit allows.

    A study is one job: what it compares is measured in one allocation, in turns. So are a trial, and a command with
    a budget, which is for all together. Benchmarks go into further jobs when one is full.
    """
    points = points_of(command, machine)
    if not points:
        raise UsageError("nothing to measure", "name a benchmark or a study")
    times = expected_times(points, machine)
    if command.study is not None or command.budget_s is not None or not command.names or longest_s is None:
        return [_portion(command, command.targets, points, times, longest_s)]
    by_target = {
        name: tuple(point for point in points if point.benchmark.name == name) for name in dict.fromkeys(command.names)
    }
    files = dict(zip(command.names, command.targets, strict=True))
    bins: list[list[str]] = []
    for name in sorted(by_target, key=lambda name: -_most_s(command, by_target[name], times)):
        for filled in bins:
            together = tuple(point for other in (*filled, name) for point in by_target[other])
            if _limit_s(command, together, times) <= longest_s:
                filled.append(name)
                break
        else:
            bins.append([name])
    in_order = [[name for name in by_target if name in filled] for filled in bins]
    return [
        _portion(
            command,
            tuple(files[name] for name in filled),
            tuple(point for name in filled for point in by_target[name]),
            times,
            longest_s,
        )
        for filled in in_order
    ]


def part_of_job(command: Command, job: JobFolder) -> Command:
    """The part of a command that a job was submitted for."""
    before = job.request.get("targets", [])
    return part_of(command, lambda target, name: named_from_anywhere(target) in before)


def portion_again(command: Command, job: JobFolder, machine: Machine, longest_s: float | None) -> Portion:
    """What a job was submitted for, to submit it again. Raises UsageError."""
    part = part_of_job(command, job)
    points = points_of(part, machine)
    return _portion(part, part.targets, points, expected_times(points, machine), longest_s)


def part_of(command: Command, keeps: Callable[[str, str], bool]) -> Command:
    """The part of a command that has these of its targets, `keeps(target, name)`, with the settings that concern it."""
    own = [(target, name) for target, name in zip(command.targets, command.names, strict=True) if keeps(target, name)]
    part = replace(command, targets=tuple(target for target, _ in own), names=tuple(name for _, name in own))
    if command.study is not None or not own:
        return part
    return replace(part, settings=_concerning(command.settings, [benchmark_named(name) for _, name in own]))


def named_from_anywhere(target: str) -> str:
    """A target as a request has it: a file by its absolute path."""
    return str(Path(target).absolute()) if Path(target).is_file() else target


def _portion(
    command: Command, targets: Sequence[str], points: tuple[Point, ...], times: ExpectedTimes, longest_s: float | None
) -> Portion:
    limit_s = _limit_s(command, points, times)
    return Portion(
        tuple(targets),
        {
            name: [list(value) if isinstance(value, tuple) else value for value in values]
            for name, values in _concerning(command.settings, [point.benchmark for point in points]).items()
        },
        points,
        min(_least_s(command, points, times) + times.build_s, limit_s),
        limit_s if longest_s is None else min(limit_s, longest_s),
        max((nodes_of(point) for point in points), default=1),
    )


def nodes_of(point: Point) -> int:
    """The nodes that a point needs: as given, by its list of nodes, or by its ranks and those on each; else 1."""
    nodes, ranks, each = (point.parameters.get(name) for name in (NODES, RANKS, RANKS_PER_NODE.name))
    placement = point.parameters.get(NODE_PLACEMENT.name, "auto")
    if is_count(nodes):
        return whole(nodes)
    if isinstance(placement, str) and placement not in NODE_PLACEMENT.words:
        return len(listed_nodes(placement))
    if is_count(ranks) and is_count(each):
        return max(1, whole(ranks) // whole(each))
    return 1


def refuse_beyond_site(command: Command, points: Sequence[Point], where: Where) -> None:
    """Raise UsageError for points that need more nodes than the site file states of a partition, or more CPUs than it
    states of its nodes. Numbers of workers count if the command states them: `all` is resolved on the nodes."""
    partition = where.place.partition
    there, cpus = partition.nodes or len(partition.hosts) or None, partition.cpus_per_node
    found: dict[str, None] = {}
    for point in points:
        nodes, name = nodes_of(point), point.benchmark.name
        if there is not None and nodes > there:
            found[f"{name} needs {nodes} nodes, and {where.text} has {there}"] = None
            continue
        asked = {key: whole(value) for key, value in _stated(command, point).items() if is_count(value)}
        each = asked.pop(RANKS_PER_NODE.name, 0)
        for workers, on, names in (
            (math.prod(asked.values()), nodes, list(asked)),
            (each * asked.get(THREADS, 1), 1, [RANKS_PER_NODE.name]),
        ):
            if cpus is not None and workers > on * cpus:
                shown = ", ".join(f"{key}={point.parameters[key]}" for key in names)
                have = f"a node of {where.text} has" if on == 1 else f"{on} nodes of {where.text} have"
                found[f"{name} {shown} needs {workers} CPUs, and {have} {on * cpus}"] = None
    if found:
        more = f"; and {len(found) - _MOST_SHOWN} more" if len(found) > _MOST_SHOWN else ""
        raise UsageError(
            f"it does not fit on {where.text}: {'; '.join(list(found)[:_MOST_SHOWN])}{more}",
            "ask for less, name another partition, or correct its `nodes` and `cpus_per_node` in the site file",
        )


def _stated(command: Command, point: Point) -> dict[str, Value]:
    """The parameters of a point about workers whose values the command states."""
    stated: dict[str, list[object]] = {}
    if command.study is None:
        stated = {name: list(values) for name, values in values_of(command.settings).items()}
    else:
        of_study = [one.parameters for one in command.study.benchmarks if one.name == point.benchmark.name]
        for own in (*of_study, point.given):
            for name, value in own.items():
                stated.setdefault(name, []).append(value)
    return {
        name: point.parameters[name]
        for name in (*_WORKERS, RANKS_PER_NODE.name)
        if name in point.parameters and str(point.parameters[name]) in map(str, stated.get(name, ()))
    }


def is_count(value: object) -> TypeGuard[int]:
    """Whether a parameter is a number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _concerning(settings: Settings, benchmarks: Sequence[Benchmark]) -> dict[str, list[Any]]:
    """The settings that concern these benchmarks: a job with some of the targets would refuse the others."""
    return {
        name: list(values)
        for name, values in values_of(settings).items()
        if name == PROBES_SETTING or any(concerns(name, benchmark) for benchmark in benchmarks)
    }


def _is_decided_there(point: Point) -> bool:
    """Whether the nodes decide if it can run: it needs several, or cannot run on this one. Its time is unknown."""
    return nodes_of(point) > 1 or point.refusal is not None


def _least_s(command: Command, points: Sequence[Point], times: ExpectedTimes) -> float:
    """The time of the fewest repeats, in seconds; of what is decided on the nodes, what it may take."""
    unknown = sum(map(_is_decided_there, points)) * BUDGET_EACH_S
    return min(_fewest_s(points, times) + unknown, _most_s(command, points, times))


def _fewest_s(points: Sequence[Point], times: ExpectedTimes) -> float:
    minimum = StoppingRule(budget_s=BUDGET_EACH_S).minimum
    return sum(minimum * times.repeat_s[id(point)] for point in points if not _is_decided_there(point))


def measuring_s(command: Command, machine: Machine) -> float:
    """How long a command measures on one node like this machine, in seconds, without builds."""
    points = points_of(command, machine)
    return _most_s(command, points, expected_times(points, machine))


def _most_s(command: Command, points: Sequence[Point], times: ExpectedTimes) -> float:
    """The time that repeats take at most, in seconds. What is named is measured with the fewest repeats, whatever its
    budget says (docs/adr/0031)."""
    if command.budget_s is not None:
        return max(command.budget_s, _fewest_s(points, times)) if command.names else command.budget_s
    if command.study is not None:
        return command.study.repeat.budget_s
    rule = StoppingRule(budget_s=BUDGET_EACH_S)
    most_s = 0.0
    for point in points:
        if _is_decided_there(point):
            most_s += rule.budget_s
        else:
            one_s = times.repeat_s[id(point)]
            most_s += max(rule.minimum * one_s, min(rule.maximum * one_s, rule.budget_s))
    return most_s


def _limit_s(command: Command, points: Sequence[Point], times: ExpectedTimes) -> float:
    """The time limit of a job, in seconds: whole minutes. Programs that cannot be built here may be built in it."""
    return 60.0 * math.ceil((_SPARE * _most_s(command, points, times) + 2 * times.build_s + _AROUND_S) / 60.0)


def request_document(command: Command, portion: Portion, where: Where, key: str) -> dict[str, Any]:
    """`request.json` of a job."""
    site = command.site or Path(site_of(None).file or "/")
    return {
        "v": VERSION,
        "key": key,
        "targets": [named_from_anywhere(target) for target in portion.targets],
        "settings": dict(portion.settings),
        "budget_s": command.budget_s,
        "again": command.is_fresh,
        "confirms": command.confirms,
        "keep": command.keep,
        "shared": command.shared,
        "site": str(site.absolute()) if site.is_file() else None,
        "system": where.in_site_file,
        "where": where.text,
        "batch": where.batch.name,
        "node": where.node,
        "nodes": portion.nodes,
        "limit_s": portion.limit_s,
        "submitted_by": {"host": platform.node(), "pid": os.getpid()},
        "time_s": time.time(),
    }


def script_for_node(where: Where, results: Path, job: str) -> str:
    """`job.sh` of a job: what runs on its first node."""
    python = where.place.partition.python or Path(sys.executable)
    home = Path(__file__).absolute().parents[2]
    folder = results.absolute() / JOBS / job
    passed = {name: os.environ[name] for name in _SETTINGS_PASSED_ON if name in os.environ}
    command = [str(python), "-P", "-m", "seatrial.cli.job", str(folder)]
    return node_script(folder, job, IN_JOB, command, Path.cwd(), {"PYTHONPATH": str(home), **passed})


def batch_request(
    where: Where, job: JobFolder, portion: Portion, on_node: Path | None = None, first: tuple[str, ...] = ()
) -> JobRequest:
    """The job as the batch system gets it. `on_node`: where its files are there, if its folder is not shared; `first`
    are lines that make them. Raises UsageError for a path that cannot be in a script, and if the site
    file must say how many CPUs a node has."""
    cpus = where.place.partition.cpus_per_node
    if cpus is None and not (where.batch.requests_whole_nodes and where.options.exclusive):
        raise UsageError(
            f"{where.text}: how many CPUs a job requests on a node is unknown",
            "set cpus_per_node of the partition in the site file; only Slurm with exclusive nodes gives all by itself",
        )
    return JobRequest(
        name=f"seatrial-{job.id[-6:]}",
        argv=("/bin/sh", str((on_node or job.path) / "job.sh")),
        folder=on_node or job.path,
        output=job.path / "output" if on_node is None else Path(os.devnull),
        nodes=portion.nodes,
        time_s=portion.limit_s,
        tasks_per_node=cpus,
        options=where.options,
        first=first,
        node_list=portion.node_list,
        switches=portion.switches,
    )


def planned_script(where: Where, results: Path, portion: Portion) -> str:
    """The script that would be submitted for a portion, with the word JOB in place of the job's id."""
    return where.batch.script(batch_request(where, JobFolder(results, "JOB"), portion))
