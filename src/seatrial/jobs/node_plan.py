"""Repeats that a node without Python makes: the plan that `native/launch/repeats.cpp` reads there, and what it left."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

from seatrial.engine.engine import StudyWork
from seatrial.engine.kinds.native import NativeProgram
from seatrial.engine.policy import Alone, Policy, Pooled
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of, record_made, time_limit_s, variables_of
from seatrial.environments.cached_files import copies
from seatrial.errors import BuildError, StoreError
from seatrial.launch.local import Completed, evidence_in
from seatrial.launch.mpi import NoLauncherError
from seatrial.model.environment.mpi import CLUSTER_LINK
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.plan.points import Point
from seatrial.probes.system import performance_variables
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.store.claim import abandoned, claim_next
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads
from seatrial.store.writers import RecordWriter

_FOLDER = Path("/seatrial/folder/of/a/repeat")
_DIGITS = 16
_PROGRAM = re.compile(rf"%\[programs\]/([0-9a-f]{{{_DIGITS}}}/[A-Za-z0-9_.+-]+)")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LINE = re.compile(
    r"(\d{1,6}) (\d{1,6}) (\d{1,6}) ([\d.]{1,25}) ([\d.]{1,25}) (\d{1,6}) ([01])((?: [\d.]{1,25}){6})", re.ASCII
)
_USED = ("cpu_s", "minor_faults", "major_faults", "voluntary", "involuntary", "max_resident_B")


def needs_python(point: Point) -> str | None:
    """Why a point cannot be measured on a node without Python; None if it can."""
    program = point.benchmark.program
    if program.source is None:
        return "its program is not one of seatrial's own"
    if getattr(program, "library", None) == "gpu":
        return "Python is needed to find its devices"
    if point.is_profiled or point.probes:
        return "its probes need Python"
    if point.environment.container is not None:
        return "Python is needed to try and describe its container"
    if point.environment.vm is not None:
        return "Python is needed to reach its guest"
    if CLUSTER_LINK in dict(point.environment.mpi_settings):
        return "Python is needed to change the links of the cluster"
    if point.environment.machine_settings:
        return "Python is needed to change the settings of its node"
    nodes = point.parameters.get("nodes", 1)
    if point.hosts or (isinstance(nodes, int) and nodes > 1):
        return "ranks on several nodes are placed by Python"
    return None


def commands_of(ready: Ready) -> tuple[str, ...]:
    """The lines of a plan that start an experiment, but for its limit: the same in every process that plans it for the
    same machine. Raises BuildError, NoLauncherError."""
    words = command_of(ready, _FOLDER)
    ours, lines = str(os.getpid()), []
    for before, word in zip(["", *words], words, strict=False):
        place = "%[parent]" if before == "--parent" and word == ours else _quoted(word)
        lines.append(f"argument {place}")
    variables = variables_of(ready, _FOLDER)
    for name in sorted({*variables, *os.environ}):
        if not _NAME.fullmatch(name) or variables.get(name) == os.environ.get(name):
            continue
        lines.append(f"set {name} {_quoted(variables[name])}" if name in variables else f"unset {name}")
    return tuple(lines)


def _quoted(text: str) -> str:
    paths = {str(_FOLDER): "%[folder]", **{path: f"%[programs]/{name_in_job(path)}" for path in copies()}}
    parts = re.split(f"({'|'.join(map(re.escape, paths))})", text)
    return "".join(paths[part] if part in paths else quote(part, safe="/:=,+@") for part in parts)


def name_in_job(path: str) -> str:
    """Where a program of this process (environments/cached_files.py) is below the folder `programs` of a job."""
    return f"{copies()[path][:_DIGITS]}/{Path(path).name}"


class NodePlan(Frozen):
    """The text of a plan, and its experiments in the order of their numbers."""

    text: str
    experiments: tuple[Ready, ...]

    @property
    def programs(self) -> dict[str, Path]:
        """The files of this process that it needs, by their names below the folder `programs` of the job."""
        used = set(_PROGRAM.findall(self.text))
        return {name: Path(path) for path in copies() if (name := name_in_job(path)) in used}


def node_plan(works: Sequence[StudyWork], made: Mapping[str, Sequence[float]] = MappingProxyType({})) -> NodePlan:
    """The plan for these groups. The stopping rules need figures, which only Python reads: a group is repeated until
    its time is used up, at least as often as its policy wants, at most as often as it allows. `made`: the wall times in
    seconds of the repeats that there are, by the id of their experiment; they count, and so does their time.

    Raises BuildError or NoLauncherError for an experiment that cannot be started.
    """
    lines: list[str] = []
    experiments: list[Ready] = []
    for work in works:
        for left_s, groups in _pools(work, made):
            open_groups = [(group, *_bounds(work.policy, group, made)) for group in groups]
            open_groups = [one for one in open_groups if one[2] > 0 and (left_s > 0.0 or one[1] > 0)]
            if open_groups:
                lines.append(f"pool {round(1e3 * left_s)}")
            for group, least, most in open_groups:
                lines.append(f"group {least} {most}")
                for ready in group:
                    experiments.append(ready)
                    lines += [f"experiment {round(1e3 * time_limit_s(ready))}", *commands_of(ready)]
    return NodePlan("".join(f"{line}\n" for line in lines), tuple(experiments))


def _pools(work: StudyWork, made: Mapping[str, Sequence[float]]) -> Iterator[tuple[float, Sequence[tuple[Ready, ...]]]]:
    """The time in seconds that is left, and the groups that share it."""
    budget_s = work.policy.budget_s * int(getattr(work.policy, "shares", 1))
    for groups in [(group,) for group in work.groups] if isinstance(work.policy, Alone) else [work.groups]:
        spent_s = sum(sum(made.get(ready.experiment.id, ())) for group in groups for ready in group)
        yield max(0.0, budget_s - spent_s), groups


def _bounds(policy: Policy, group: Sequence[Ready], made: Mapping[str, Sequence[float]]) -> tuple[int, int]:
    """How many repeats a group still needs at least, and may have at most."""
    count = min(len(made.get(ready.experiment.id, ())) for ready in group)
    return max(0, least_repeats(policy) - count), policy.most_repeats - count


def least_repeats(policy: Policy) -> int:
    """The number of repeats that an experiment gets, however long they take."""
    if isinstance(policy, Alone):
        return min(policy.rule.minimum, policy.most_repeats)
    return min(policy.minimum if isinstance(policy, Pooled) else MINIMUM_REPEATS, policy.most_repeats)


def commands_in(plan: str) -> list[tuple[str, ...]]:
    """The lines of `commands_of` of each experiment of a plan."""
    found: list[list[str]] = []
    for line in plan.splitlines():
        if line.startswith("experiment "):
            found.append([])
        elif found and line.startswith(("argument ", "set ", "unset ")):
            found[-1].append(line)
    return [tuple(lines) for lines in found]


def variables_with_lines(lines: Sequence[str], variables: Mapping[str, str]) -> dict[str, str]:
    """These variables of a node, as the lines of an experiment change them."""
    changed = dict(variables)
    for line in lines:
        match line.split(" "):
            case "set", name, value:
                changed[name] = unquote(value)
            case "unset", name:
                changed.pop(name, None)
    return changed


class NodeRepeat(Frozen):
    """One repeat that was made. `status` is as in `subprocess`, times are in seconds, `began_s` since 1970."""

    experiment: int
    number: int
    round: int
    began_s: float
    wall_s: float
    status: int
    timed_out: bool
    used: dict[str, float]

    @property
    def folder(self) -> str:
        """The name of its folder."""
        return f"{self.experiment}-{self.number}"


def repeats_in(text: str) -> Iterator[NodeRepeat]:
    """The repeats that `repeats` noted; a damaged line, as a full disk leaves it, is left out."""
    for line in text.splitlines():
        if (match := _LINE.fullmatch(line)) is None:
            continue
        try:
            used = dict(zip(_USED, map(float, match[8].split()), strict=True))
            began_s, wall_s, status = float(match[4]), float(match[5]), os.waitstatus_to_exitcode(int(match[6]))
        except ValueError:
            continue
        yield NodeRepeat(int(match[1]), int(match[2]), int(match[3]), began_s, wall_s, status, match[7] == "1", used)


def can_run(ready: Ready) -> str | None:
    """Why an experiment cannot be started on a node without Python; None if it can."""
    if not isinstance(ready.program, NativeProgram):
        return "its program is not one of seatrial's own"
    try:
        commands_of(ready)
    except (BuildError, NoLauncherError) as error:
        return str(error)
    return None


NOT_OBSERVED = "what else ran, clocks and load: no Python on the node"
"""In the record of each of these repeats."""
_MARK = "job_repeat"


def record_node_repeats(
    folder: ResultsFolder,
    made: Sequence[tuple[Ready, NodeRepeat]],
    machine: Machine,
    source: Path,
    job: str,
    noted: Mapping[str, Any],
    variables: Mapping[str, str],
    *,
    keep: bool,
) -> None:
    """Record these repeats of a job, each once, also if an earlier call was killed. Their folders are in `source`, and
    stay. `noted` is in each record; `variables` are those of the job. Raises StoreError."""
    host = platform.node()
    taken: dict[str, set[int]] = {}
    known: set[str] = set()
    for key in {ready.experiment.id for ready, _ in made}:
        for left in abandoned(folder, host, key):
            if _MARK in left.noted:
                left.release()  # its files are still in `source`
        heads = read_heads(folder, {key})[key]
        taken[key] = {head.repeat for head in heads}
        known |= {str(head.seen.get(_MARK)) for head in heads}
    writer = RecordWriter(folder, host)
    try:
        for order, (ready, repeat) in enumerate(made):
            mark, key = f"{job}/{repeat.folder}", ready.experiment.id
            if mark in known:
                continue
            notes = {
                **noted,
                "order": order,
                "block": f"{job}:{repeat.round}",
                "t0": repeat.began_s,
                _MARK: mark,
                "not_observed": NOT_OBSERVED,
                "variables": performance_variables(variables_with_lines(commands_of(ready), variables)),
            }
            claimed = claim_next(folder, host, key, partial(taken.__getitem__, key), notes)
            try:
                _fill(source / repeat.folder, claimed.path)
                completed = Completed(
                    repeat.status,
                    repeat.wall_s,
                    time_limit_s(ready),
                    repeat.timed_out,
                    evidence_in(claimed.path),
                    used=repeat.used,
                )
                record = record_made(ready, machine, claimed, writer, completed, keep=keep)
            except OSError as error:
                claimed.release()
                why = f"the files of a repeat in {source} cannot be read: {error.strerror or error}"
                raise StoreError(why, "free some space, and give the same command again") from error
            taken[key].add(record.repeat)
    finally:
        writer.close()


def _fill(source: Path, target: Path) -> None:
    """Copy what a repeat left into the folder of its claim. Links are not followed."""
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False):
            shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
    for name in ("stdout", "stderr"):
        (target / name).touch(mode=0o600)
