"""Results of other tools: from a reader's findings to repeats, which `import_recording` records.

Everything is read and checked before anything is written. Each run in a text is one repeat: the same text under another
name, or imported again, does not count twice. Runs that do not state how large the job was, or on what it ran, are
separate experiments, and so are several runs in one text, unless equal commands started them: what is unknown is not
taken to be equal.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.applications.readers import reader_of
from seatrial.applications.reading.figures import GIVEN_BANDWIDTH, GIVEN_FLOPS
from seatrial.benchmarks import benchmark_named
from seatrial.benchmarks.nodes import on_placed_nodes
from seatrial.engine.import_job import with_job
from seatrial.engine.judge import failed_check, impossible_figure, wrong_sample
from seatrial.errors import ParseError, UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import UNKNOWN, Params, Value
from seatrial.model.benchmark.program import NODES, RANKS, THREADS, UNREADABLE
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import UNNAMED, Machine, NamedLimit
from seatrial.model.results.figure_result import STATED
from seatrial.model.results.imported import ImportedExperiment, ImportedFile, ImportedRun, StatedExperiment
from seatrial.model.results.record import Experiment, content_key
from seatrial.model.results.sample import Outcome, Sample

_A_DAY_S = 86400.0
_OF_THE_JOB = (RANKS, NODES, THREADS, "devices", "device", "buffers", "buffer", "groups")
"""Parameters in which jobs differ more than a figure varies between repeats."""


class ResultFile(Frozen):
    """A result file: `name` without its folder, `changed_s` the time of its last change (None: not a file)."""

    kind: str
    name: str
    data: bytes
    changed_s: float | None = None

    def source(self) -> dict[str, str]:
        """What a record states of it."""
        digest = hashlib.sha256(self.data).hexdigest()
        return {"file": self.name, "sha256": digest, "kind": self.kind}

    def source_of(self, run: ImportedRun | None) -> dict[str, str]:
        """What a record states of one of its runs."""
        return self.source() if run is None else {**self.source(), "run": run.name}


class Given(Frozen):
    """What the user states beside the files: the machine, parameters as text, and the peaks of the hardware."""

    machine: Machine | None = None
    settings: Mapping[str, str] = {}
    peak_flops: float | None = None
    peak_Bps: float | None = None
    are_repeats: bool = False
    """Whether the runs of one text, and the copies of a program, are repeats where their settings are equal."""


class ImportedRepeat(Frozen):
    """One repeat to record, with everything that its record refers to.

    `missing` are the parameters of one of our benchmarks that neither the file nor the user states; `remarks` as in
    `ImportedExperiment`.
    """

    file: str
    experiment: Experiment
    machine: Machine
    environment: Mapping[str, Any]
    t0: float
    outcome: Outcome
    samples: tuple[Sample, ...]
    checks: Mapping[str, float]
    seen: Mapping[str, Any]
    missing: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def read_repeats(files: Sequence[ResultFile], given: Given) -> tuple[ImportedRepeat, ...]:
    """The repeats in these files, checked. Nothing is written.

    Raises UnknownNameError for an unknown kind or setting, ParseError (naming the file) for a damaged file, UsageError
    for a setting that contradicts a file.
    """
    read = [(file, _read(file)) for file in files]
    known = {e.benchmark: benchmark_named(e.benchmark) for _, content in read for e in content.experiments}
    _refuse_unknown(given.settings, known.values())
    repeats: list[ImportedRepeat] = []
    for file, content in read:
        repeats += [stated_repeat(file, one) for one in content.stated]
        for run in content.runs or (content,):
            machine, identity = _machine(given, run.host)
            own = [_repeat(file, run, e, known[e.benchmark], given, machine, identity) for e in run.experiments]
            if len({repeat.experiment.id for repeat in own}) < len(own):
                why = "two results in this file have the same benchmark and parameters"
                raise ParseError(content.tool, None, "", why, file.name)
            repeats += own
    return tuple(repeats)


def stated_repeat(file: ResultFile, found: StatedExperiment) -> ImportedRepeat:
    """One experiment of a table as a repeat: its record has the stated figures in place of samples.

    The environment keeps its key, so that an export of the import equals the table; what it was is unknown.
    """
    machine = Machine(name=UNNAMED, sources=("a table of figures",))
    identity = content_key({"imported_machine": machine.name, "table": found.number})
    environment: dict[str, Any] = {"name": "stated in a table (imported)", "kind": file.kind}
    key = found.environment
    if key and re.fullmatch("[0-9a-f]{16}", key) is None:
        environment["stated"] = key
        key = content_key(environment)
    seen = {
        "source": file.source(),
        STATED: [_without(figure.document(), found.parameters) for figure in found.figures],
        "remarks": ["the figures are those of a table, without their repeats"],
    }
    experiment = Experiment(found.benchmark, found.parameters, key, "", identity)
    t0 = _start(None, file.changed_s)
    return ImportedRepeat(file.name, experiment, machine, environment, t0, found.outcome, (), {}, seen)


def _without(figure: dict[str, Any], parameters: Params) -> dict[str, Any]:
    """The figure with the coordinates of its point only, as figures have them that were measured."""
    own = {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}
    figure["parameters"] = {
        name: value for name, value in figure["parameters"].items() if name not in own or own[name] != value
    }
    return figure


def _read(file: ResultFile) -> ImportedFile:
    reader = reader_of(file.kind)
    try:
        content = reader.read(file.data)
    except ParseError as error:
        raise error.in_file(file.name) from error
    if not content.experiments and not content.stated:
        raise ParseError(content.tool, None, "", "the file contains no results", file.name)
    return content


def _refuse_unknown(settings: Mapping[str, str], benchmarks: Iterable[Benchmark]) -> None:
    known = {parameter.name for benchmark in benchmarks for parameter in benchmark.parameters}
    for name in settings:
        if name not in known:
            raise UnknownNameError(
                "parameter of the benchmarks in these files", name, {*known, "peak_flops", "peak_Bps"}
            )


def _machine(given: Given, host: str | None) -> tuple[Machine, str]:
    """The machine that a file's figures belong to, and its key in the results folder.

    A machine that only a file names has a separate key, so that it is never mistaken for a discovered machine. So has
    a machine with peaks given by the user: results that depend on them must not appear without them.
    """
    if given.machine is not None:
        machine, identity = given.machine, machine_identity(given.machine)[:16]
    else:
        machine = Machine(name=host or UNNAMED, sources=("result files of other tools",))
        identity = content_key({"imported_machine": machine.name})
    limits = _given_limits(given)
    if not limits:
        return machine, identity
    own = {named.name for named in limits}
    machine = replace(machine, limits=(*(named for named in machine.limits if named.name not in own), *limits))
    return machine, content_key({"machine": identity, "peaks": {n.name: n.limit.value for n in limits}})


def _given_limits(given: Given) -> tuple[NamedLimit, ...]:
    limits: list[NamedLimit] = []
    if given.peak_flops is not None:
        derivation = f"given with the import: peak_flops={given.peak_flops:g}"
        limits.append(NamedLimit(GIVEN_FLOPS, Limit(given.peak_flops, "flop/s", derivation, Basis.PHYSICAL)))
    if given.peak_Bps is not None:
        derivation = f"given with the import: peak_Bps={given.peak_Bps:g}"
        limit = Limit(given.peak_Bps, "B/s", derivation, Basis.PHYSICAL)
        limits += [NamedLimit(GIVEN_BANDWIDTH, limit), NamedLimit("dram.bandwidth", limit)]
    return tuple(limits)


def _repeat(
    file: ResultFile,
    content: ImportedFile,
    found: ImportedExperiment,
    benchmark: Benchmark,
    given: Given,
    machine: Machine,
    identity: str,
) -> ImportedRepeat:
    found = with_job(benchmark, found, content, given.settings)
    parameters, missing = _parameters(benchmark, found, given.settings, file.name)
    if found.is_ours:
        parameters = _as_started(benchmark, parameters, found, machine, file.name)
    environment: dict[str, Any] = {
        "name": f"{f'{content.tool} {content.version}'.strip()} (imported)",
        "tool": content.tool,
        "version": content.version,
        "kind": file.kind,
    }
    if content.libraries:
        environment["libraries"] = list(content.libraries)
    apart = _kept_apart(environment["name"], file, content, parameters, given)
    environment |= apart
    remarks = [*found.remarks, *([content.run.name] if content.run is not None and "name" in apart else [])]
    seen: dict[str, Any] = {
        "source": {**file.source_of(content.run), "tool": content.tool, "version": content.version},
        "notes": dict(found.notes),
        "parameters_not_told": list(missing),
    }
    if remarks:
        seen["remarks"] = remarks
    if content.host is not None:
        seen["host"] = content.host
    return ImportedRepeat(
        file.name,
        Experiment(benchmark.name, parameters, content_key(environment), "", identity),
        machine,
        environment,
        _start(content.date_s, file.changed_s),
        _judge(benchmark, machine, parameters, found, content.failed),
        found.samples,
        found.checks,
        seen,
        () if benchmark.name.startswith("imported.") else missing,
        found.remarks,
    )


def _kept_apart(name: str, file: ResultFile, content: ImportedFile, parameters: Params, given: Given) -> dict[str, str]:
    """What distinguishes the environment of a run from those of others that may have had other settings.

    Runs of one text are repeats only if equal commands started them, and none of the settings is unknown. Copies of a
    program ran at the same time in different positions.
    """
    run = content.run
    is_unknown = any(parameters.get(parameter) == UNKNOWN for parameter in _OF_THE_JOB)
    if run is None or given.are_repeats:
        where = "" if run is None or not is_unknown else f", {run.name}"
        apart = {"text": file.source()["sha256"], **({"run": run.name} if run is not None else {})}
        return {"name": f"{name}: {file.name}{where}", **apart} if is_unknown else {}
    if run.label and not is_unknown:
        return {"name": f"{name}: {run.name}", "copy": run.label}
    if run.command and not is_unknown:
        return {"command": run.command}
    return {"name": f"{name}: {file.name}, {run.name}", "text": file.source()["sha256"], "run": run.name}


def _start(date_s: float | None, changed_s: float | None) -> float:
    """When it ran: the date in the file, else its last change, else now. A future date is ignored."""
    now = time.time()
    return next((t for t in (date_s, changed_s) if t is not None and 0 < t < now + _A_DAY_S), now)


def _parameters(
    benchmark: Benchmark, found: ImportedExperiment, settings: Mapping[str, str], file: str
) -> tuple[Params, tuple[str, ...]]:
    """(all parameters, the names of those that nobody states). A setting must not contradict the file.

    They are unknown: a default would make two results look like one experiment, or claim what nobody knows. Only
    programs of seatrial have the default of every parameter that nobody states.
    """
    assumed = found.notes.get("assumed", ())
    chosen: dict[str, Value] = dict(found.parameters)
    for name, text in settings.items():
        if all(parameter.name != name for parameter in benchmark.parameters):
            continue
        value = benchmark.parameter(name).value_of(text)
        stated = found.parameters.get(name)
        if stated is not None and stated != value and not (isinstance(assumed, list | tuple) and name in assumed):
            raise UsageError(
                f"--set {name}={text} contradicts {file}, which states {name}={stated}",
                "omit the setting, or import that file separately",
            )
        chosen[name] = value
    try:
        point = benchmark.point({name: value for name, value in chosen.items() if value != UNKNOWN})
    except UsageError as error:
        raise UsageError(f"{file}: {error.message}", error.todo) from error
    missing = tuple(name for name in point if chosen.get(name, UNKNOWN) == UNKNOWN)
    # The arguments of a program of ours show which values differ from the defaults.
    return point if found.is_ours else {**point, **dict.fromkeys(missing, UNKNOWN)}, missing


def _as_started(
    benchmark: Benchmark, parameters: Params, found: ImportedExperiment, machine: Machine, file: str
) -> Params:
    """The resolved parameters. Raises UsageError if they do not give the arguments that the program was started with:
    its figures would be recorded under the wrong parameters."""
    words = found.notes.get("arguments")
    if not isinstance(words, list):
        raise UsageError(f"{file} does not contain the program's arguments", "write it with a program of this version")
    try:
        machine, parameters = on_placed_nodes(machine, parameters)
        parameters = benchmark.on_devices(benchmark.prepare(machine, parameters), _are_processors(found))
        arguments = list(benchmark.program.stated_arguments(parameters))
    except (Skip, *UNREADABLE) as problem:
        raise UsageError(
            f"{file}: the parameters cannot be resolved without the machine ({problem})", "describe it with --from"
        ) from problem
    started = dict(zip(words[::2], words[1::2], strict=False))
    for name, value in zip(arguments[::2], arguments[1::2], strict=True):
        if name in started and started[name] != value:
            raise UsageError(
                f"{file} was made with {name} {started[name]}, but these parameters of {benchmark.name} give {value}",
                "set the parameters that it was made with: --set key=value",
            )
    return parameters


def _are_processors(found: ImportedExperiment) -> bool:
    devices = found.notes.get("devices")
    return isinstance(devices, list) and bool(devices) and isinstance(devices[0], dict) and bool(devices[0].get("cpu"))


def _judge(
    benchmark: Benchmark, machine: Machine, parameters: Params, found: ImportedExperiment, failed: str
) -> Outcome:
    """The outcome of an imported repeat: what the tool reports, then what can be checked here."""
    if failed or found.failed:
        return Outcome.invalid("validation", failed or found.failed)
    if found.skipped:
        return Outcome.skipped(found.skipped)
    return (
        wrong_sample(benchmark, parameters, found.samples, found.notes)
        or _failed_check(benchmark, machine, parameters, found)
        or impossible_figure(benchmark, machine, parameters, found.samples, is_complete=found.is_ours)
        or Outcome.ok()
    )


def _failed_check(
    benchmark: Benchmark, machine: Machine, parameters: Params, found: ImportedExperiment
) -> Outcome | None:
    """The benchmark's own checks; for results of other tools, only those whose value and bounds are known."""
    if not found.is_ours:
        cpus = tuple(sorted(machine.pus))
        if not cpus or machine.last_level_cache_bytes(cpus) is None:
            return None
        # Which CPUs a process may use is unknown on another machine: then all of them count.
        machine = machine if machine.allowed_cpus else replace(machine, allowed_cpus=cpus)
    return failed_check(
        benchmark, machine, parameters, found.samples, found.checks, found.notes, is_complete=found.is_ours
    )
