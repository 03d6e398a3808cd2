"""One repeat, or several that take turns: run the program of a claim, check its results, record them. Being killed at
any moment loses nothing."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.engine.judge import impossible_figure, judge, setting_not_in_force
from seatrial.engine.node_settings import NodeSettings, looked_at, of_record, setting_that_did_not_act
from seatrial.engine.probing import Probes, probe_reports
from seatrial.engine.ready import NotPreparedError, Ready
from seatrial.engine.starting import (
    Job,
    completed_together,
    jobs_of,
    link_of,
    outcome_together,
    overlap,
    record_together,
    start_of,
)
from seatrial.environments.cached_files import origins
from seatrial.environments.compiled import with_compilation
from seatrial.errors import BuildError, ProtocolError, StoreError
from seatrial.launch.local import Completed, LocalProgram, run_together
from seatrial.launch.mpi import GRACE_S, NoLauncherError
from seatrial.launch.ranks import ending_of_ranks, rank_layout
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import VM
from seatrial.model.machine.identity import is_emulated
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.secrets import secrets_in, without_secrets
from seatrial.places.cluster.shape import own_cluster, sharing_cpus
from seatrial.places.guest.inside import guest_counters
from seatrial.plan.site_in_force import place_in_force
from seatrial.probes.around import Around, KernelLog, kernel_log, links_of_nodes, look_around, seen_around
from seatrial.probes.clocks import ClockLooks
from seatrial.probes.system import file_system_of
from seatrial.processes.working_folder import without_working_folder
from seatrial.store.claim import Claim, settle
from seatrial.store.writers import RecordWriter

_NOTED = (
    *("budget_s", "maximum", "variables", "block", "study", "together", "again", "beside", "outside_s"),
    *("job_repeat", "not_observed", "folder"),
)
"""Notes of the claim that are copied to the record."""
_IN_A_GUEST = "what else ran, clocks and load: the program ran in a guest"
_EMULATED_TIMES = 20.0
_LARGEST_RECORD_B = 256 << 20
_LEAST_LIMIT_S = 30.0
_LIMIT_TIMES = 20.0
_MOST_LIMIT_S = 86400.0


def command_of(ready: Ready, directory: Path) -> list[str]:
    """The command of a repeat: what starts its ranks, then the program and its arguments."""
    start = start_of(ready, directory)
    return [*start.before, *start.words([str(ready.program.path), *ready.program.arguments(ready, directory)])]


def variables_of(ready: Ready, directory: Path) -> dict[str, str]:
    """The environment variables that a repeat's program runs with."""
    return dict(start_of(ready, directory).variables)


def _program(job: Job, command: Sequence[str]) -> LocalProgram:
    """The process that a job starts."""
    ready, directory = job.ready, job.directory
    runs_in = directory if ready.program.runs_in_its_folder else None
    grace_s = 0.0 if ready.mpi is None else GRACE_S
    variables = variables_of(ready, directory)
    if not ready.program.starts_user_programs:
        variables = without_working_folder(variables)
    return LocalProgram(command, variables, directory, runs_in, grace_s, job.cpus)


def time_limit_s(ready: Ready) -> float:
    """After this time a program counts as hung: far more than its benchmark expects of one repeat."""
    slower = _EMULATED_TIMES if ready.machine is not None and is_emulated(ready.machine) else 1.0
    expected_s = (ready.point.estimate_s or 0.0) + ready.least_phase_s
    return min(slower * max(_LEAST_LIMIT_S, _LIMIT_TIMES * expected_s), _MOST_LIMIT_S)


_NO_POWER = Probes()


def make_repeat(
    ready: Ready,
    machine: Machine,
    claim: Claim,
    writer: RecordWriter,
    *,
    keep: bool,
    settings: NodeSettings | None = None,
    probes: Probes = _NO_POWER,
) -> RepeatRecord:
    """Run and record one claimed repeat. Raises StoreError if the record cannot be written."""
    (made,) = _run([(ready, claim)], machine, probes, settings)
    return _record(made, writer, keep=keep)


def make_together(
    claimed: Sequence[tuple[Ready, Claim]],
    machine: Machine,
    writer: RecordWriter,
    *,
    keep: bool,
    settings: NodeSettings | None = None,
    probes: Probes = _NO_POWER,
) -> list[RepeatRecord]:
    """Run repeats of several experiments that take turns on the same CPUs, the first leading, and record them.

    Each is charged an equal share of the time. If one fails, none is recorded: it may have disturbed the others, or
    one of them may be the cause. Raises StoreError if a record cannot be written.
    """
    made = _run(claimed, machine, probes, settings)
    if not all(one.outcome.is_ok for one in made):
        return []
    return [_record(one, writer, keep=keep) for one in made]


class _Made(Frozen):
    """A repeat that was run and judged, before it is recorded."""

    ready: Ready
    claim: Claim
    wall_s: float
    outcome: Outcome
    program: ProgramRecord
    seen: Mapping[str, Any]


class _Claimed(Frozen):
    """An experiment with the claim on one of its repeats, and the jobs that this starts at once, each by its command:
    a start in a container has its own name, so a command is made once."""

    ready: Ready
    claim: Claim
    jobs: tuple[Job, ...]
    commands: Sequence[Sequence[str]]

    @property
    def command(self) -> Sequence[str]:
        """That of the first job, which stands for all."""
        return self.commands[0]


def _run(
    claimed: Sequence[tuple[Ready, Claim]], machine: Machine, probes: Probes, settings: NodeSettings | None
) -> list[_Made]:
    """Run programs on the same CPUs, several in turns, and check each."""
    try:
        started = []
        for ready, claim in ((probes.suited(ready), claim) for ready, claim in claimed):
            jobs = jobs_of(ready, machine, claim.path)
            started.append(_Claimed(ready, claim, jobs, [command_of(job.ready, job.directory) for job in jobs]))
    except (BuildError, NoLauncherError) as error:
        return [_Made(ready, claim, 0.0, _not_startable(error), ProgramRecord(), {}) for ready, claim in claimed]
    with ExitStack() as held:
        if settings is None:
            held.callback((settings := NodeSettings()).close)
        return _run_watched(started, machine, held.enter_context(kernel_log()), probes, settings)


def _run_watched(
    claimed: Sequence[_Claimed], machine: Machine, kernel: KernelLog, probes: Probes, settings: NodeSettings
) -> list[_Made]:
    """The same, with what the kernel reports meanwhile."""
    cpus = claimed[0].ready.point.cpus or machine.allowed_cpus  # an unbound program may use all
    jobs = [job for one in claimed for job in one.jobs]
    start = time.perf_counter()
    began_s = time.time()
    before: Around | None = None
    after: Around | None = None
    launched: Sequence[Completed | OSError | NotPreparedError]
    looks = ClockLooks()
    try:
        with ExitStack() as inputs:
            for one in claimed:
                inputs.enter_context(link_of(one.ready))
            for job in jobs:
                job.directory.mkdir(exist_ok=True)
                inputs.enter_context(job.ready.program.prepared(job.ready, job.directory, time_limit_s(job.ready)))
            repeats = [one.ready for one in claimed]
            inputs.enter_context(settings.during(repeats))  # before the look, which counts what other processes use
            # What happens on this machine says nothing of what runs on another one.
            is_elsewhere = any(one.ready.machine is not None for one in claimed)
            with probes.around([(job.ready, job.directory) for job in jobs]):
                before = None if is_elsewhere else look_around(cpus)
                programs = [
                    _program(job, command)
                    for one in claimed
                    for job, command in zip(one.jobs, one.commands, strict=True)
                ]
                began_s = time.time()
                limit_s = sum(time_limit_s(one.ready) for one in claimed)
                looks = inputs.enter_context(looked_at(repeats))
                launched = run_together(programs, limit_s, in_turns=len(claimed) > 1)
                after = None if is_elsewhere else look_around(cpus)
    except NotPreparedError as error:
        launched = [error] * len(jobs)
    except OSError as error:
        for one in claimed:
            if not one.claim.path.is_dir():
                raise StoreError(f"{one.claim.path} vanished during the run") from error
        launched = [error] * len(jobs)
    until_s = time.time()
    wall_s = (time.perf_counter() - start) / len(claimed)
    around = {} if before is None else seen_around(before, after or look_around(cpus), cpus, _cpu_s(launched))
    if events := kernel.events():
        around["kernel_events"] = events
    made: list[_Made] = []
    of_jobs = iter(launched)
    for one in claimed:
        own = list(islice(of_jobs, len(one.jobs)))
        seen: dict[str, Any] = {**around, "command": origins(one.command), **_container(one.ready, one.claim.path)}
        outcome, program, ended = _ended(one, machine, own)
        if outcome.is_ok:
            outcome = setting_that_did_not_act(one.ready, looks, program.samples) or outcome
        seen |= of_record(one.ready, looks)
        if ended is not None:
            seen["program_s"] = ended.wall_s
            if ended.used is not None:
                seen["used"] = dict(ended.used)
            seen |= probe_reports(one.ready, one.claim.path, ended)
            if outcome.is_ok:
                power, samples = probes.power(one.ready, one.ready.machine or machine, program, ended)
                seen |= power
                program = replace(program, samples=(*program.samples, *samples))
            seen |= _launch_time(program, began_s, until_s)
        made.append(_Made(one.ready, one.claim, wall_s, outcome, program, seen))
    return made


def _ended(
    one: _Claimed, machine: Machine, launched: Sequence[Completed | OSError | NotPreparedError]
) -> tuple[Outcome, ProgramRecord, Completed | None]:
    """The outcome and the record of a repeat, and how its jobs ended; None if they could not be started."""
    each: list[Completed] = []
    for completed in launched:
        if isinstance(completed, OSError):
            why = f"{origins(one.command)[0]} cannot be started: {completed.strerror or completed}"
            return Outcome.failed(Stage.LAUNCH, why), ProgramRecord(), None
        if isinstance(completed, NotPreparedError):
            return _not_prepared(completed), ProgramRecord(), None
        each.append(completed)
    verdicts = [
        _verdict(job.ready, machine, completed, job.directory) for job, completed in zip(one.jobs, each, strict=True)
    ]
    outcome = outcome_together([outcome for outcome, _ in verdicts])
    point = one.ready.point
    program = record_together(point.parameters, [program for _, program in verdicts], each)
    if len(each) > 1 and outcome.is_ok:
        summed = impossible_figure(point.benchmark, machine, point.parameters, program.samples)
        outcome = overlap(each) or summed or outcome
    return outcome, program, completed_together(each)


def _not_prepared(error: NotPreparedError) -> Outcome:
    if error.need:
        return Outcome.unsupported(error.need, str(error))
    if error.check:
        return Outcome.invalid(error.check, str(error))
    return Outcome.failed(Stage.LAUNCH, str(error), error.evidence)


def _container(ready: Ready, directory: Path) -> dict[str, Any]:
    """The facts of the container or guest that it ran in."""
    if ready.container is None:
        return {}
    if ready.machine is None:
        return {"container": dict(ready.container.facts)}
    counted = guest_counters(directory)
    steal = {"steal_s": counted["steal_s"]} if "steal_s" in counted else {}
    return {VM: {**ready.container.facts, **counted}, "not_observed": _IN_A_GUEST, **steal}


def _cpu_s(launched: Sequence[Completed | OSError | NotPreparedError]) -> float | None:
    """The CPU time of all programs together; None if it is not known of one that was started."""
    used = [one.used for one in launched if isinstance(one, Completed)]
    return None if None in used else sum(one["cpu_s"] for one in used if one is not None)


def _not_startable(error: BuildError | NoLauncherError) -> Outcome:
    if isinstance(error, NoLauncherError):
        return Outcome.unsupported("launcher", str(error))
    return Outcome.failed(Stage.BUILD, f"helper programs for ranks: {error.message}; {error.todo}")


def _launch_time(program: ProgramRecord, began_s: float, until_s: float) -> dict[str, float]:
    """The time until rank 0's program ran, if its clock agrees with ours, which showed `until_s` at the end."""
    started_s = program.notes.get("started_at_s")
    if not isinstance(started_s, int | float) or not began_s <= started_s <= until_s:
        return {}
    return {"launch_s": started_s - began_s}


def recover_repeat(
    ready: Ready, machine: Machine, claim: Claim, writer: RecordWriter, *, keep: bool
) -> RepeatRecord | None:
    """Record a repeat whose program finished although the process that started it was killed; None if the program did
    not finish either."""
    source = ready.program.output(claim.path)
    try:
        program = _program_record(ready, claim.path)
        wall_s = max(0.0, source.stat().st_mtime - float(claim.noted["t0"])) / int(claim.noted.get("together", 1))
    except (OSError, ProtocolError, KeyError, TypeError, ValueError):
        return None
    if not program.ended:
        return None
    completed = Completed(0, wall_s, time_limit_s(ready), timed_out=False, evidence="")
    outcome = _judged(ready, machine, completed, program)
    seen: dict[str, Any] = {"recovered": True, **probe_reports(ready, claim.path, None)}
    return _record(_Made(ready, claim, wall_s, outcome, program, seen), writer, keep=keep)


def record_made(
    ready: Ready, machine: Machine, claim: Claim, writer: RecordWriter, completed: Completed, *, keep: bool
) -> RepeatRecord:
    """Record a repeat that another program made (jobs/node_plan.py), and whose files are in the folder of the claim.
    Raises StoreError if the record cannot be written."""
    outcome, program = _verdict(ready, machine, completed, claim.path)
    seen: dict[str, Any] = {
        "command": origins(command_of(ready, claim.path)),
        "program_s": completed.wall_s,
        **({} if completed.used is None else {"used": dict(completed.used)}),
        **probe_reports(ready, claim.path, completed),
        **_launch_time(program, float(claim.noted["t0"]), float(claim.noted["t0"]) + completed.wall_s),
    }
    return _record(_Made(ready, claim, completed.wall_s, outcome, program, seen), writer, keep=keep)


def _verdict(ready: Ready, machine: Machine, completed: Completed, directory: Path) -> tuple[Outcome, ProgramRecord]:
    try:
        program = ready.program.timed(_program_record(ready, directory), completed.wall_s)
    except FileNotFoundError:
        program = ProgramRecord()
    except (OSError, ProtocolError) as error:
        if ready.mpi is None or (completed.returncode == 0 and not completed.timed_out):
            return Outcome.failed(Stage.RECORD, str(error), completed.evidence), ProgramRecord()
        program = ProgramRecord()  # ranks that died leave incomplete output: report how they died
    ending = None
    if ready.mpi is not None and program.skip is None:
        launcher = start_of(ready, directory).launcher
        ending = ending_of_ranks(completed, rank_layout(ready.point), launcher, directory)
    return ending or _judged(ready, machine, completed, program), program


def _judged(ready: Ready, machine: Machine, completed: Completed, program: ProgramRecord) -> Outcome:
    """The judge's outcome; if it is ok, also whether the requested settings were in force."""
    outcome = judge(ready.point, machine, ready.program, completed, program)
    return (setting_not_in_force(ready, program) if outcome.is_ok else None) or outcome


def _program_record(ready: Ready, directory: Path) -> ProgramRecord:
    """What the program reported in its record or output. Raises ProtocolError, OSError."""
    return ready.program.read(_read(ready.program.output(directory)), ready, directory)


def _read(path: Path) -> bytes:
    """A program's record. Raises ProtocolError if it is too large."""
    size = path.stat().st_size
    if size > _LARGEST_RECORD_B:
        raise ProtocolError(f"the program's record has {size} bytes; at most {_LARGEST_RECORD_B} are read")
    return path.read_bytes()


def _looks(looks: Any) -> dict[str, Any]:
    """What a program reported about its threads, with the file systems of the files that they waited for."""
    if not isinstance(looks, dict):
        return {}
    waits = [
        {**wait, "file_system": file_system_of(wait["path"]) if str(wait.get("path", "")).startswith("/") else None}
        for wait in looks.get("waits", [])
        if isinstance(wait, dict)
    ]
    return {"looks": {**looks, "waits": waits}}


def _works_in(ready: Ready, claim: Claim) -> str:
    """The folder that a program works in, or whose file system it measures."""
    folder = ready.point.parameters.get("folder")
    if isinstance(folder, str) and folder.startswith("/"):
        return folder
    is_own = ready.program.runs_in_its_folder or folder is not None
    return str(claim.path.absolute() if is_own else Path.cwd())


def _without(outcome: Outcome, secrets: Sequence[str]) -> Outcome:
    """An outcome without the secrets that a program may have printed."""
    if not secrets:
        return outcome
    reason, evidence = without_secrets([outcome.reason, outcome.evidence], secrets)
    return replace(outcome, reason=reason, evidence=evidence)


def _record(made: _Made, writer: RecordWriter, *, keep: bool) -> RepeatRecord:
    """Write the record, then release the claim: a kill in between leaves a claim on a recorded repeat."""
    ready, claim, program = made.ready, made.claim, made.program
    secrets = secrets_in(ready.point.parameters)
    noted: dict[str, Any] = {name: claim.noted[name] for name in _NOTED if name in claim.noted}
    notes = dict(program.notes)
    notes.pop("sampled", None)  # with power, the record has the phase; equal notes of repeats are stored once
    noted |= _looks(notes.pop("looks", None))
    if (links := links_of_nodes(notes.pop("links", None))) is not None:
        noted["links"] = links  # of every node, in place of those of this one
    if (remarks := notes.pop("remarks", None)) is not None:
        noted["remarks"] = remarks
    noted["notes"] = with_compilation({**ready.program.added_notes(), **notes} if notes else {})
    if (
        "job_repeat" not in noted
        and ready.machine is None
        and (files := file_system_of(_works_in(ready, claim))) is not None
    ):
        noted["file_system"] = files
    if "folder" in noted and (own := file_system_of(str(claim.path.absolute()))) is not None:
        noted["folder"] = {**noted["folder"], "type": own["type"]}
    if (place := place_in_force()) is not None:
        noted["system"] = f"{place.system.name}:{place.partition.name}"
    if program.hello is not None:
        hello = program.hello
        noted |= {"host": hello.host, "affinity": [list(mask) for mask in hello.cpus], "libs": dict(hello.libs)}
        if len(set(hello.hosts)) > 1:
            noted["hosts"] = list(hello.hosts)  # of each rank
            cluster = own_cluster(os.environ)
            if cluster is not None and (sharing := sharing_cpus(cluster.shape, set(hello.hosts))):
                noted["shared_cpus"] = sharing
        if hello.clock_step_s:
            noted["clock_step_s"] = hello.clock_step_s
        if added := ready.program.added_libraries(hello):
            noted["added_libs"] = added
    record = RepeatRecord(
        experiment=claim.experiment,
        repeat=claim.repeat,
        order=int(claim.noted["order"]),
        t0=float(claim.noted["t0"]),
        wall_s=made.wall_s,
        outcome=_without(made.outcome, secrets),
        samples=program.samples,
        checks=program.checks,
        seen=without_secrets({**made.seen, **noted}, secrets),
    )
    writer.append(record)
    writer.sync()  # before the claim ends: whoever claims this number next must find the record
    if keep or not made.outcome.is_ok:
        settle(claim)
    else:
        claim.release()
    return record
