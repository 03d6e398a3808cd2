"""Decides the outcome of one repeat: checks come before figures, and the first failure is the outcome."""

from __future__ import annotations

import platform

from seatrial.engine.checks import failed_check, impossible_figure, wrong_sample
from seatrial.engine.ready import Runnable
from seatrial.engine.traffic import messages_astray
from seatrial.errors import Exit
from seatrial.launch.local import Completed
from seatrial.launch.ranks import masks, misplaced, rank_layout
from seatrial.model.emulation import emulation_unnoticed
from seatrial.model.machine import Machine
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.protocol import ProgramRecord
from seatrial.plan.points import Point


def judge(point: Point, machine: Machine, program: Runnable, completed: Completed, record: ProgramRecord) -> Outcome:
    """The outcome of a repeat, from how its program ended and what it reported."""
    # An application that declines the point may also exit with an error status.
    return (
        (None if program.writes_record else record.declined)
        or _ending(completed, record)
        or _emulation(machine, record)
        or program.mismatch(machine, record)
        or _places(point, machine, program, record)
        or wrong_sample(point.benchmark, point.parameters, record.samples, record.notes)
        or messages_astray(point, program, record)
        or failed_check(point.benchmark, machine, point.parameters, record.samples, record.checks, record.notes)
        or impossible_figure(point.benchmark, machine, point.parameters, record.samples)
        or Outcome.ok()
    )


def _ending(completed: Completed, record: ProgramRecord) -> Outcome | None:
    """None if the program ran to its end."""
    evidence = completed.evidence
    if completed.timed_out:
        return Outcome.timed_out(completed.limit_s, evidence)
    if completed.returncode == Exit.WRONG_CPU:
        return Outcome.invalid("target", evidence)
    if completed.returncode == Exit.RECORD:
        return Outcome.failed(Stage.RECORD, evidence, evidence)
    if completed.returncode == Exit.PARENT_GONE:
        return Outcome.failed(Stage.LAUNCH, "the program's parent process had ended", evidence)
    if completed.returncode == Exit.LAUNCHER:
        return Outcome.failed(Stage.LAUNCH, evidence, evidence)
    if completed.returncode != 0:
        return Outcome.failed(Stage.RUN, f"the program {completed.died_of}", evidence)
    if record.skip is not None:
        return record.declined
    if record.hello is None or not record.ended:
        return Outcome.failed(Stage.RUN, "the program succeeded, but its record has no `end`", evidence)
    return None


def _emulation(machine: Machine, record: ProgramRecord) -> Outcome | None:
    """None unless the program found emulated processors, which the facts of the machine do not show."""
    why = "" if record.hello is None else emulation_unnoticed(machine, record.hello)
    return Outcome.invalid("emulated", why) if why else None


def _places(point: Point, machine: Machine, program: Runnable, record: ProgramRecord) -> Outcome | None:
    """None if each thread or rank ran where it was placed. A single-process application does not report that."""
    hello = record.hello
    if hello is None:
        return None
    if point.benchmark.ranks == "mpi":
        return misplaced(rank_layout(point), hello, machine.allowed_cpus, machine.name or platform.node())
    if not program.writes_record or tuple(map(frozenset, hello.cpus)) == tuple(frozenset((c,)) for c in point.cpus):
        return None
    seen = masks(hello.cpus)
    wanted = masks([(cpu,) for cpu in point.cpus])
    return Outcome.invalid("affinity", f"threads were bound to CPUs {seen} instead of {wanted}")
