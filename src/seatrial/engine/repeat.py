"""One repeat: run the program of a claim, judge what came back, record it; a kill at any point loses nothing."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from seatrial.engine.judge import judge
from seatrial.engine.prepare import Ready
from seatrial.environments.build import Built
from seatrial.environments.variables import variables_of
from seatrial.errors import ProtocolError, StoreError
from seatrial.launch.local import Completed, run
from seatrial.model.benchmark import Elsewhere, External
from seatrial.model.machine import Machine
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.protocol import Hello, ProgramRecord, parse_record
from seatrial.model.record import RepeatRecord
from seatrial.probes.system import look, seen_between
from seatrial.store.claim import Claim, settle
from seatrial.store.writer import RecordWriter

RECORD_FILE = "rank-000000.jsonl"
_NOTED = ("budget_s", "variables", "block", "study")
"""What the claim noted before the start and the record keeps."""
_LARGEST_RECORD_B = 256 << 20
_LEAST_LIMIT_S = 30.0
_LIMIT_TIMES = 20.0
_MOST_LIMIT_S = 86400.0


def command_of(ready: Ready, directory: Path) -> list[str]:
    """The argument list of a repeat's program."""
    point = ready.point
    program = point.benchmark.program
    if isinstance(program, Elsewhere):
        raise ValueError(f"{point.benchmark.name} has no program")  # `prepare` refuses such a point
    if isinstance(program, External):
        return [str(ready.built.path), *program.arguments(point.parameters, directory)]
    return [
        str(ready.built.path),
        *("--record", str(directory)),
        *("--cpus", ",".join(map(str, point.cpus))),
        *("--parent", str(os.getpid())),
        *program.arguments(point.parameters),
    ]


def time_limit_s(ready: Ready) -> float:
    """When a program counts as hung: far beyond what its benchmark expects of one repeat."""
    return min(max(_LEAST_LIMIT_S, _LIMIT_TIMES * (ready.point.estimate_s or 0.0)), _MOST_LIMIT_S)


def make_repeat(ready: Ready, machine: Machine, claim: Claim, writer: RecordWriter, *, keep: bool) -> RepeatRecord:
    """Run and record one claimed repeat. Raises StoreError where the record cannot be written."""
    cpus = ready.point.cpus
    environment = variables_of(ready.point.environment)
    command = command_of(ready, claim.path)
    before = look(cpus)
    start = time.perf_counter()
    try:
        completed = run(command, environment, claim.path, time_limit_s(ready))
    except OSError as error:
        if not claim.path.is_dir():
            raise StoreError(f"{claim.path} vanished during the run") from error
        completed = None
        outcome = Outcome.failed(Stage.LAUNCH, f"{command[0]} cannot be started: {error.strerror or error}")
        program = ProgramRecord()
    wall_s = time.perf_counter() - start
    seen: dict[str, Any] = {**seen_between(before, look(cpus), cpus), "command": command}
    if completed is not None:
        seen["program_s"] = completed.wall_s
        outcome, program = _verdict(ready, machine, completed, claim.path)
    return _record(ready, claim, wall_s, outcome, program, seen, writer, keep=keep)


def recover_repeat(
    ready: Ready, machine: Machine, claim: Claim, writer: RecordWriter, *, keep: bool
) -> RepeatRecord | None:
    """Record a repeat whose program finished although the process that started it was killed; None where the program
    did not reach its end, so that the repeat was never made."""
    source = _record_file(ready, claim.path)
    try:
        program = _program_record(ready, claim.path)
        wall_s = max(0.0, source.stat().st_mtime - float(claim.noted["t0"]))
    except (OSError, ProtocolError, KeyError, TypeError, ValueError):
        return None
    if not program.ended:
        return None
    completed = Completed(0, wall_s, time_limit_s(ready), timed_out=False, evidence="")
    outcome = judge(ready.point, machine, ready.built, completed, program)
    seen: dict[str, Any] = {"recovered": True}
    return _record(ready, claim, wall_s, outcome, program, seen, writer, keep=keep)


def _verdict(ready: Ready, machine: Machine, completed: Completed, directory: Path) -> tuple[Outcome, ProgramRecord]:
    try:
        program = _program_record(ready, directory)
    except FileNotFoundError:
        program = ProgramRecord()
    except (OSError, ProtocolError) as error:
        return Outcome.failed(Stage.RECORD, str(error), completed.evidence), ProgramRecord()
    return judge(ready.point, machine, ready.built, completed, program), program


def _record_file(ready: Ready, directory: Path) -> Path:
    program = ready.point.benchmark.program
    return directory / (program.output if isinstance(program, External) else RECORD_FILE)


def _program_record(ready: Ready, directory: Path) -> ProgramRecord:
    """What the program reported: our own protocol, or what the benchmark reads out of an application's output."""
    data = _read(_record_file(ready, directory))
    program = ready.point.benchmark.program
    if not isinstance(program, External):
        return parse_record(data)
    hello = Hello(program.name, ready.built.key, platform.node(), cpus=tuple((cpu,) for cpu in ready.point.cpus))
    return replace(program.parse(data), hello=hello)


def _read(path: Path) -> bytes:
    """A program's record. Raises ProtocolError for one that no program of ours would write."""
    size = path.stat().st_size
    if size > _LARGEST_RECORD_B:
        raise ProtocolError(f"the program's record has {size} bytes, more than any sound one")
    return path.read_bytes()


def _record(
    ready: Ready,
    claim: Claim,
    wall_s: float,
    outcome: Outcome,
    program: ProgramRecord,
    seen: Mapping[str, Any],
    writer: RecordWriter,
    *,
    keep: bool,
) -> RepeatRecord:
    """Write the line, then let the claim go: a kill between the two leaves a claim on a recorded repeat."""
    noted: dict[str, Any] = {name: claim.noted[name] for name in _NOTED if name in claim.noted}
    noted["notes"] = dict(program.notes)
    if program.hello is not None:
        hello = program.hello
        noted |= {"host": hello.host, "affinity": [list(mask) for mask in hello.cpus], "libs": dict(hello.libs)}
        of_build = ready.built.hello.libs.keys() if isinstance(ready.built, Built) else hello.libs.keys()
        added = sorted(hello.libs.keys() - of_build)
        if added:
            noted["added_libs"] = added
    record = RepeatRecord(
        experiment=claim.experiment,
        repeat=claim.repeat,
        order=int(claim.noted["order"]),
        t0=float(claim.noted["t0"]),
        wall_s=wall_s,
        outcome=outcome,
        samples=program.samples,
        checks=program.checks,
        seen={**seen, **noted},
    )
    writer.append(record)
    if keep or not outcome.is_ok:
        settle(claim)
    else:
        claim.release()
    return record
