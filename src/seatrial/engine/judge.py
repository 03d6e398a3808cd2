"""The judge of one repeat: checks come before figures, and the first thing that is wrong names the outcome."""

from __future__ import annotations

import platform
from pathlib import Path

from seatrial.engine.checks import failed_check, impossible_figure, wrong_sample
from seatrial.engine.ranks import masks, misplaced, rank_layout
from seatrial.environments.build import Built
from seatrial.environments.installed import Installed
from seatrial.environments.target import DECISIVE_FEATURES
from seatrial.launch.local import Completed
from seatrial.model.benchmark import Native
from seatrial.model.machine import DeviceKind, Machine
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.protocol import Exit, ProgramRecord
from seatrial.plan.points import Point


def judge(
    point: Point, machine: Machine, built: Built | Installed, completed: Completed, record: ProgramRecord
) -> Outcome:
    """The outcome of a repeat that was started, from how its program ended and what it reported."""
    return (
        (_declined(record) if isinstance(built, Installed) else None)
        or _ending(completed, record)
        or (None if isinstance(built, Installed) else _identity(point, machine, built, record))
        or _places(point, machine, built, record)
        or wrong_sample(record.samples)
        or failed_check(point.benchmark, machine, point.parameters, record.samples, record.checks)
        or impossible_figure(point.benchmark, machine, point.parameters, record.samples)
        or Outcome.ok()
    )


def _declined(record: ProgramRecord) -> Outcome | None:
    """An application that found the point impossible here; it may say so by its exit status as well."""
    return record.declined


def _ending(completed: Completed, record: ProgramRecord) -> Outcome | None:
    """Whether the program came to its end."""
    evidence = completed.evidence
    if completed.timed_out:
        return Outcome.timed_out(completed.limit_s, evidence)
    if completed.returncode == Exit.WRONG_CPU:
        return Outcome.invalid("target", evidence)
    if completed.returncode == Exit.RECORD:
        return Outcome.failed(Stage.RECORD, evidence, evidence)
    if completed.returncode == Exit.PARENT_GONE:
        return Outcome.failed(Stage.LAUNCH, "the program found its parent gone", evidence)
    if completed.returncode == Exit.LAUNCHER:
        return Outcome.failed(Stage.LAUNCH, evidence, evidence)
    if completed.returncode != 0:
        return Outcome.failed(Stage.RUN, f"the program {completed.died_of}", evidence)
    if record.skip is not None:
        return record.declined
    if record.hello is None or not record.ended:
        return Outcome.failed(Stage.RUN, "the program ended well but its record has no `end`", evidence)
    return None


def _identity(point: Point, machine: Machine, built: Built, record: ProgramRecord) -> Outcome | None:
    """Whether what ran is what was built, for this CPU, with its libraries, on the CPUs that it was given."""
    hello = record.hello
    if hello is None:  # then it did not come to its end either
        return None
    if hello.build != built.key:
        return Outcome.invalid("target", f"the program is of build {hello.build!r}, not {built.key!r}")
    offered = _isa(machine)
    if offered:
        lacking = (offered & DECISIVE_FEATURES) - set(hello.isa)
        if lacking:
            return Outcome.invalid(
                "target", f"built without {' '.join(sorted(lacking))}, which this CPU has: a lesser CPU's figure"
            )
    # What a command runs is the program that it starts, which loads its own libraries: they are noted.
    starts_others = isinstance(point.benchmark.program, Native) and point.benchmark.program.commands is not None
    for name, build_id in () if starts_others else built.hello.libs.items():
        if name not in hello.libs:
            return Outcome.invalid("library", f"{name}, which the program was built with, was not loaded")
        where = hello.lib_paths.get(name, "an unknown place")
        expected = built.hello.lib_paths.get(name, "another place")
        # Where the linker wrote no build id, only the place tells one file from another.
        is_elsewhere = not build_id and Path(where).resolve() != Path(expected).resolve()
        if hello.libs[name] != build_id or is_elsewhere:
            return Outcome.invalid("library", f"{name} was loaded from {where} instead of {expected}")
    return None


def _places(point: Point, machine: Machine, built: Built | Installed, record: ProgramRecord) -> Outcome | None:
    """Whether each thread, or each rank, was where it was to be. An application of one process does not tell."""
    hello = record.hello
    if hello is None:
        return None
    if point.benchmark.ranks == "mpi":
        return misplaced(rank_layout(point), hello, machine.allowed_cpus, platform.node())
    if isinstance(built, Installed) or tuple(map(frozenset, hello.cpus)) == tuple(frozenset((c,)) for c in point.cpus):
        return None
    seen = masks(hello.cpus)
    wanted = masks([(cpu,) for cpu in point.cpus])
    return Outcome.invalid("affinity", f"threads were bound to CPUs {seen} instead of {wanted}")


def _isa(machine: Machine) -> frozenset[str]:
    """The features of this machine's CPUs, as its first package tells them."""
    for package in machine.of_kind(DeviceKind.PACKAGE):
        text = package.facts.text("isa")
        if text:
            return frozenset(text.split())
    return frozenset()
