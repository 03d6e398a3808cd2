"""What a rule gets, and how it states a finding and its evidence; how it is registered; how findings name experiments,
and the command that measures one again. Numbers are formatted by `model.spelling`, as on the page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import partial, wraps
from typing import Any

from msgspec import field

from seatrial.analysis.grouped import grouped
from seatrial.analysis.power import RECORDED
from seatrial.benchmarks import registry
from seatrial.diagnosis.disturbance.diagnose import disturbances, is_slow
from seatrial.diagnosis.disturbance.signals import Signals, signals
from seatrial.model.benchmark.benchmark import Benchmark, Skip
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Aim, Fact, Facts, Finding, NamedCause, Severity
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult
from seatrial.model.spelling import PROGRAM, settings, surrounding, written
from seatrial.model.study.result import PerRepeat, of_experiment

Seen = Mapping[tuple[str, int], Mapping[str, Any]]
"""(experiment id, repeat) -> what probes recorded during that repeat."""


FINGERPRINT, ARRIVALS = "fingerprint", "arrivals"
"""What trainings note of a deterministic run, and collective operations of the ranks that came last."""
_NOTED = frozenset({FINGERPRINT, ARRIVALS})


class Gathered(Frozen):
    """What rules ask of all repeats, gathered in one pass: of a large folder, each look at what was observed makes all
    of its records.

    `links`: the counters of links that grew. `powered`: the experiments whose power was measured, `noted`: those whose
    programs noted something that rules ask for, by its key. `clocks`: the most exact reading of the clock of each host,
    as (its error, how far it is ahead), in seconds. `signals`: of the experiments whose repeats show that something
    took their time.
    """

    links: Sequence[Mapping[str, Any]]
    powered: frozenset[str]
    noted: Mapping[str, frozenset[str]]
    clocks: Mapping[str, tuple[float, float]]
    signals: Mapping[str, Signals]


class Case(Frozen):
    """One machine with its results."""

    machine: Machine
    results: tuple[ExperimentResult, ...] = ()
    seen: Seen = field(default_factory=dict)
    gathered: Gathered | None = None
    """Of `seen`; None: see `known`."""
    environments: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """The document of each environment, by the key that experiments refer to."""

    @property
    def known(self) -> Gathered:
        """What was gathered of all repeats."""
        return gathered(self.seen) if self.gathered is None else self.gathered

    def observed(self, experiment: str) -> list[Mapping[str, Any]]:
        """What was observed around each repeat of an experiment."""
        return list(of_experiment(self.seen, experiment).values())


def _by_experiment(seen: Seen) -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    if isinstance(seen, PerRepeat):
        return ((experiment, list(own.values())) for experiment, own in seen.by_experiment.items())
    return iter(grouped((experiment, one) for (experiment, _), one in seen.items()).items())


def gathered(seen: Seen) -> Gathered:
    """One pass over the repeats of all experiments."""
    links: list[Mapping[str, Any]] = []
    powered: set[str] = set()
    noted: dict[str, set[str]] = {key: set() for key in _NOTED}
    clocks: dict[str, tuple[float, float]] = {}
    disturbed: dict[str, Signals] = {}
    for experiment, own in _by_experiment(seen):
        for one in own:
            if "links" in one:
                links += one["links"]
            if RECORDED in one:
                powered.add(experiment)
            if isinstance(notes := one.get("notes"), Mapping):
                for key in _NOTED & notes.keys():
                    noted[key].add(experiment)
            folder = one.get("folder", {})
            if "clock_s" in folder and "clock_error_s" in folder:
                host, reading = str(one.get("host", "")), (folder["clock_error_s"], folder["clock_s"])
                clocks[host] = min(reading, clocks.get(host, reading))
        known = signals(own)
        if known is not None and (disturbances(known) or waits_for_files(known)):
            disturbed[experiment] = known
    every = {key: frozenset(experiments) for key, experiments in noted.items()}
    return Gathered(links, frozenset(powered), every, clocks, disturbed)


def waits_for_files(known: Signals) -> bool:
    """Whether the file system that was measured or worked in is not of this machine, or makes calls wait."""
    place = known.file_system
    return place is not None and (is_slow(place.type) or bool(place.options))


def cite(name: str, fact: Fact) -> str:
    """One fact as evidence: its value and source."""
    value = str(fact.value).lower() if isinstance(fact.value, bool) else fact.value
    unit = f" {fact.unit}" if fact.unit not in (None, "1") else ""
    return f"{name} = {value}{unit} ({fact.source})"


def cite_best(facts: Facts, name: str) -> str:
    """The most trusted fact of that name as evidence, or "" if there is none."""
    fact = facts.best(name)
    return "" if fact is None else cite(name, fact)


def is_true(facts: Facts, name: str) -> bool:
    """Whether the fact is known and true; some sources write 1 for true."""
    fact = facts.best(name)
    return fact is not None and not isinstance(fact.value, str) and fact.value == 1


def is_false(facts: Facts, name: str) -> bool:
    """Whether the fact is known and false."""
    fact = facts.best(name)
    return fact is not None and not isinstance(fact.value, str) and fact.value == 0


def finite_numbers(values: Iterable[object]) -> list[float]:
    """The finite numbers among values from probes, which write null for what they could not read."""
    return [float(v) for v in values if isinstance(v, int | float) and not isinstance(v, bool) and v - v == 0]


def cpu_facts(machine: Machine, name: str) -> list[tuple[Device, Fact]]:
    """A fact of the CPUs, cores or packages: the most trusted one of each device of the first of these kinds that has
    it."""
    for kind in (DeviceKind.PU, DeviceKind.CORE, DeviceKind.PACKAGE):
        found = [(device, fact) for device in machine.of_kind(kind) if (fact := device.facts.best(name)) is not None]
        if found:
            return found
    return []


def device_number(devices: Sequence[tuple[Device, Fact]]) -> float | None:
    """The largest number among these facts, or None."""
    numbers = [
        float(fact.value)
        for _, fact in devices
        if isinstance(fact.value, int | float) and not isinstance(fact.value, bool)
    ]
    return max(numbers, default=None)


Rule = Callable[[Case], Iterable[Finding]]


class Subject(Enum):
    """What rules are about; a file has one subject or a few. Findings that are alike in loss and severity are in this
    order, those of one subject in that of their rules in the file."""

    OUTCOMES = auto()
    LIBRARIES = auto()
    LIMITS = auto()
    INPUT = auto()
    STEADINESS = auto()
    WAITING = auto()
    LINK_COUNTERS = auto()
    SETTINGS = auto()
    MEMORY_SIZES = auto()
    MEMORY_MODULES = auto()
    MEMORY_KINDS = auto()
    MEMORY_ERRORS = auto()
    POWER = auto()
    GPU_STATE = auto()
    MEASURED_LINKS = auto()
    LINKS = auto()
    SIBLINGS = auto()
    UPLINKS = auto()
    COPIES = auto()
    PCIE_SETTINGS = auto()
    GPU_LINKS = auto()
    MISPLACED = auto()
    DISTANCES = auto()
    PORTS = auto()
    SOCKETS = auto()
    PLACES = auto()
    SURROUNDINGS = auto()


registered: dict[Subject, list[Rule]] = {subject: [] for subject in Subject}
"""The rules of each subject, in the order in which its file defines them."""


def rule(subject: Subject, *, of_hardware: bool = False) -> Callable[[Rule], Rule]:
    """Registers a rule of that subject; if it is `of_hardware`, it says nothing about virtual machines, which hide or
    emulate that."""

    def register(function: Rule) -> Rule:
        @wraps(function)
        def bare(case: Case) -> Iterable[Finding]:
            return () if is_virtual(case.machine) else function(case)

        registered[subject].append(bare if of_hardware else function)
        return function

    return register


def is_virtual(machine: Machine) -> bool:
    """Whether a source reports that this is a virtual machine."""
    return surrounding(machine.facts, "hypervisor") is not None


def at_hardware(machine: Machine, remedy: str) -> str:
    """A remedy at slots, cards or cables; of a virtual machine, who can look there."""
    if not is_virtual(machine):
        return remedy
    return (
        "Ask the host's administrator to check it there: the hypervisor decides which links and distances a guest sees"
    )


def finding(
    rule: str,
    *,
    severity: Severity,
    observation: str,
    diagnosis: str,
    remedy: str,
    evidence: str | Iterable[str],
    devices: Iterable[Device | str] = (),
    loss: float | None = None,
    aims: Iterable[Aim] = (),
    causes: tuple[NamedCause, ...] = (),
) -> Finding:
    """A finding under the name `rule`. It names each of `devices` once; empty parts of `evidence` are left out."""
    return Finding(
        rule,
        severity,
        tuple(dict.fromkeys(device if isinstance(device, str) else device.id for device in devices)),
        observation,
        diagnosis,
        remedy,
        evidence if isinstance(evidence, str) else "; ".join(filter(None, evidence)),
        loss,
        tuple(aims),
        causes,
    )


note = partial(finding, severity=Severity.INFO)
warning = partial(finding, severity=Severity.WARNING)
error = partial(finding, severity=Severity.ERROR)


NO_CPU_RULE = "repeats-waited-for-cpu"
"""The rule whose finding comes before all others."""
_MOST_NAMED = 6


def listed(items: Iterable[str], most: int = _MOST_NAMED) -> str:
    """The first few items: "a, b, c and 4 more"."""
    named = list(items)
    rest = len(named) - most
    return ", ".join(named[:most]) + (f" and {rest} more" if rest > 0 else "")


class Names:
    """Names experiments by the settings that distinguish them from the others of their benchmark."""

    def __init__(self, results: Sequence[ExperimentResult]) -> None:
        self._values: dict[tuple[str, str], set[Value]] = {}
        self._count: dict[str, int] = {}
        for result in results:
            benchmark = result.experiment.benchmark
            self._count[benchmark] = self._count.get(benchmark, 0) + 1
            for name, value in result.experiment.parameters.items():
                self._values.setdefault((benchmark, name), set()).add(value)

    def experiment(self, result: ExperimentResult) -> str:
        """Such as: "memory.stream (threads=2)"."""
        return result.experiment.benchmark + _in_brackets(settings(self._distinguishing(result), ", "))

    def figure(self, result: ExperimentResult, figure: FigureResult) -> str:
        """Such as: "memory.stream triad (threads=2, nontemporal=true)"."""
        parameters = settings({**self._distinguishing(result), **figure.point}, ", ")
        return f"{result.experiment.benchmark} {figure.name}" + _in_brackets(parameters)

    def _distinguishing(self, result: ExperimentResult) -> dict[str, Value]:
        benchmark = result.experiment.benchmark
        return {
            name: value
            for name, value in result.experiment.parameters.items()
            if self._count.get(benchmark, 0) > 1 and len(self._values.get((benchmark, name), ())) > 1
        }


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""


def noted(case: Case, key: str) -> Iterator[tuple[str, ExperimentResult, list[Mapping[str, Any]]]]:
    """Name, experiment and repeats of each valid experiment whose program noted this: its notes, and the host."""
    names, experiments = Names(case.results), case.known.noted[key]
    for result in (one for one in case.results if one.id in experiments):
        repeats: list[Mapping[str, Any]] = [
            {**notes, "host": seen.get("host")}
            for seen in case.observed(result.id)
            if isinstance(notes := seen.get("notes"), Mapping) and key in notes
        ]
        if repeats and result.outcome.is_ok:
            yield names.experiment(result), result, repeats


def again(machine: Machine, result: ExperimentResult) -> str:
    """Such as: "seatrial run memory.stream --set threads=1 --again", with the words of a program after `--`; or of the
    study if its parameters cannot be given on a command line. Values from records are quoted for a shell."""
    experiment = result.experiment
    benchmark = registry().get(experiment.benchmark)
    given = dict(experiment.parameters) if benchmark is None else _given(benchmark, machine, experiment.parameters)
    program = given.pop(PROGRAM, ()) if benchmark is not None else ()
    if not isinstance(program, tuple) or any(isinstance(value, tuple) for value in given.values()):
        return "seatrial run STUDY.yaml --again"  # only study files take other lists
    words = ["seatrial", "run", experiment.benchmark]
    for name, value in given.items():
        words += ["--set", f"{name}={written(name, value)}"]
    return shlex.join([*words, "--again", *(("--", *program) if program else ())])


def _given(benchmark: Benchmark, machine: Machine, params: Params) -> dict[str, Value]:
    """The parameters that must be set for `prepare` to return these: all but those whose default gives the same."""
    asked = dict(params)
    for parameter in benchmark.parameters:
        changed = {**asked, parameter.name: parameter.default}
        if parameter.name in asked and _prepared(benchmark, machine, changed) == dict(params):
            asked = changed
    defaults = {parameter.name: parameter.default for parameter in benchmark.parameters}
    return {name: value for name, value in asked.items() if name not in defaults or value != defaults[name]}


def _prepared(benchmark: Benchmark, machine: Machine, params: Params) -> Params | None:
    try:
        return dict(benchmark.prepare(machine, params))
    except (Skip, KeyError, TypeError, ValueError):  # a record of another version may have other parameters
        return None
