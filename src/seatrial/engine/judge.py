"""The outcome of one repeat: its checks, its messages over links, its settings in force; the first failure is the
outcome.

The checks before any figure is published, for our own programs and for imported results.

Each returns None if all is well, else the outcome `invalid` with the first problem.
"""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from seatrial.engine.ready import Ready, Runnable
from seatrial.errors import Exit
from seatrial.launch.local import Completed
from seatrial.launch.ranks import masks, misplaced, rank_layout
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import UNREADABLE, ProgramRecord
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.machine.identity import emulation_unnoticed
from seatrial.model.machine.links import NodeTraffic, too_little
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import impossible_reason, readings
from seatrial.model.results.sample import Outcome, Sample, Stage
from seatrial.plan.points import Point


def wrong_sample(
    benchmark: Benchmark, params: Params, samples: Sequence[Sample], notes: Mapping[str, object]
) -> Outcome | None:
    """None if there are samples and all are finite and positive. `notes` are those of the program, which may say why
    there are none."""
    if not samples:
        why = benchmark.why_samples_missing(params, notes)
        return Outcome.invalid("samples", f"none were recorded: {why}" if why else "none were recorded")
    for sample in samples:
        if not all(map(math.isfinite, (sample.elapsed_s, *sample.work.values()))):
            return Outcome.invalid("samples", f"sample {sample.i} of {sample.series} is not a finite number")
        if sample.elapsed_s <= 0:
            return Outcome.invalid("samples", f"sample {sample.i} of {sample.series} took {sample.elapsed_s:g} s")
    return None


def failed_check(
    benchmark: Benchmark,
    machine: Machine,
    params: Params,
    samples: Sequence[Sample],
    reported: Mapping[str, float | None],
    notes: Mapping[str, object],
    *,
    is_complete: bool = True,
) -> Outcome | None:
    """The benchmark's own checks, on reported values and on those derived from samples. A value that was not reported
    fails; without `is_complete` (results of other tools), only the reported ones are checked. `notes` are those of the
    program, which may say why samples are missing."""
    for check in (one for one in benchmark.checks if one.is_there(params)):
        if check.derive is not None and is_complete:
            try:
                value = check.derive(machine, params, samples)
            except UNREADABLE as error:
                return Outcome.invalid(check.name, f"cannot be computed: values missing from the samples ({error!r})")
            if value is None:
                continue
        elif check.derive is None and check.name in reported:
            value = reported[check.name]
        elif is_complete:
            return Outcome.invalid(check.name, "the program did not report it")
        else:
            continue
        low, high = check.bound(machine, params)
        if value is None or not low <= value <= high:
            shown = check.if_nan if value is None or math.isnan(value) else f"{value:.6g}"
            why = benchmark.why_samples_missing(params, notes) if check.counts_missing_samples else ""
            meaning = f"{check.meaning}); {why}" if why else f"{check.meaning})"
            return Outcome.invalid(check.name, f"{shown}, must be {_interval(low, high)} ({meaning}")
    return None


def _interval(low: float, high: float) -> str:
    if low == high:
        return f"{low:g}"
    return f"at least {low:g}" if math.isinf(high) else f"from {low:g} to {high:g}"


def impossible_figure(
    benchmark: Benchmark, machine: Machine, params: Params, samples: Sequence[Sample], *, is_complete: bool = True
) -> Outcome | None:
    """None if every figure that is not secondary (without `is_complete`: at least one) is present and none exceeds its
    physical limit."""
    try:
        found = readings(benchmark, machine, params, samples)
    except UNREADABLE as error:
        return Outcome.invalid("samples", f"a figure cannot be computed from them ({error!r})")
    wanted = {figure.name for figure in benchmark.figures if figure.is_there(params) and not figure.is_secondary}
    missing = wanted - {r.figure.name for r in found}
    if missing and (is_complete or not found):
        return Outcome.invalid("samples", f"none for {', '.join(sorted(missing))}")
    reason = next(filter(None, map(impossible_reason, found)), None)
    return None if reason is None else Outcome.invalid("limit", reason)


_CHECK = "traffic"


def messages_astray(point: Point, program: Runnable, record: ProgramRecord) -> Outcome | None:
    """The outcome if what the ranks of several nodes exchanged is not on their links; None if it is, on one node, and
    if the bytes of an adapter cannot be counted, which the record notes.

    A program that counts and reports nothing does not pass.
    """
    if len(point.hosts) < 2 or not program.writes_record or record.hello is None:
        return None
    try:
        counted = counted_traffic(record.notes)
    except UNREADABLE as error:
        return Outcome.invalid(_CHECK, f"what the program reports of its nodes' links cannot be read ({error!r})")
    nodes = list(dict.fromkeys(record.hello.hosts))
    unseen = [node for node in nodes if node not in counted]
    if unseen or not counted:
        return Outcome.invalid(
            _CHECK, f"the program did not count the bytes on the links of {', '.join(unseen or nodes)}"
        )
    exchanged = point.benchmark.between_nodes
    try:
        least = [1.0] * len(nodes) if exchanged is None else exchanged(point.parameters, record.samples)
    except UNREADABLE as error:
        return Outcome.invalid(_CHECK, f"the payload cannot be computed: values missing from the samples ({error!r})")
    known = {node: traffic for node, traffic in counted.items() if traffic is not None}
    why = too_little({node: most for node, most in zip(nodes, least, strict=False) if node in known}, known)
    return Outcome.invalid(_CHECK, why) if why else None


def counted_traffic(notes: Mapping[str, Any]) -> dict[str, NodeTraffic | None]:
    """Node -> what passed its links during the run, None if unknown; from the note `traffic`. Raises what UNREADABLE
    lists."""
    entries: Sequence[Mapping[str, Any]] = notes.get("traffic", ())
    return {
        str(entry["host"]): NodeTraffic(int(entry["sent_B"]), int(entry["received_B"])) if "sent_B" in entry else None
        for entry in entries
    }


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


CHECK = "setting"
_PREFIXES = {
    MpiFamily.OPENMPI: "OMPI_MCA_",
    MpiFamily.MPICH: "MPIR_CVAR_",
    MpiFamily.CRAY: "MPIR_CVAR_",
    MpiFamily.MVAPICH: "MPIR_CVAR_",
}
"""The prefix of variables that a library reports; Intel's are not among its control variables."""
_OF_THE_RANKS = ("coll", "pml", "btl", "mtl", "osc", "mpi", "opal", "topo", "io", "op_", "vprotocol")
"""Open MPI's frameworks in the ranks; those of the launcher cannot be checked in a rank."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_WORDS = {"true": "1", "yes": "1", "enabled": "1", "t": "1", "false": "0", "no": "0", "disabled": "0", "f": "0"}


def setting_not_in_force(ready: Ready, record: ProgramRecord) -> Outcome | None:
    """`invalid(setting)` if a variable that this experiment sets is unknown to the library, or has another value in its
    ranks. None if all are in force, or if that is unknown: only our own programs report it."""
    if ready.mpi is None or not ready.program.writes_record or ready.mpi.family not in _PREFIXES:
        return None
    prefix = _PREFIXES[ready.mpi.family]
    wanted = {name: value for name, value in ready.variables if name.startswith(prefix) and value is not None}
    if ready.mpi.family is MpiFamily.OPENMPI:
        wanted = {name.removeprefix(prefix): value for name, value in wanted.items()}
        wanted = {name: value for name, value in wanted.items() if name.startswith(_OF_THE_RANKS)}
    held = _held(record.notes.get("control_variables"))
    for name, value in wanted.items():
        if name not in held:
            return Outcome.invalid(CHECK, f"{name}={value} did not reach the ranks: the launcher did not pass it on")
        seen = held[name]
        if seen is None:
            return Outcome.invalid(CHECK, f"{ready.mpi.title} has no variable {name}: it was ignored")
        if not is_same(value, seen):
            return Outcome.invalid(CHECK, f"{name} is {seen} in the ranks instead of {value}")
    if wanted and (others := record.notes.get("ranks_with_other_settings")):
        return Outcome.invalid(
            CHECK, f"{others} ranks have other settings than rank 0: the launcher did not pass them on"
        )
    return None


def _held(note: object) -> Mapping[str, str | None]:
    """Name -> value in the library, None for an unknown name; from lines "NAME=value" and "NAME"."""
    found: dict[str, str | None] = {}
    for line in note if isinstance(note, Sequence) and not isinstance(note, str) else ():
        name, equals, value = str(line).partition("=")
        found[name] = value if equals else None
    return found


def is_same(wanted: str, held: str) -> bool:
    """Whether a setting equals the value in the library. The library may hold a number for a word ("4 (ring)"). If it
    does not name the word, the word was valid: libraries refuse others at startup."""
    if held == "?" or wanted.strip().lower() == held.strip().lower():
        return True
    number, _, item = held.partition(" (")
    word = wanted.strip().lower()
    if item:
        return word in (number, item.removesuffix(")").lower())
    word = _WORDS.get(word, word)
    if _number(held) is None:
        return False
    value = _number(word)
    return value is None or value == _number(held)


def _number(text: str) -> float | None:
    """A number, possibly with a unit of bytes; None if the text is not a number."""
    text = text.strip().lower().removesuffix("b")
    unit = text[-1:] if text[-1:] in ("k", "m", "g") else ""
    for read in (partial(int, base=0), float):
        with suppress(ValueError):
            return float(read(text.removesuffix(unit))) * _UNITS[unit]
    return None
