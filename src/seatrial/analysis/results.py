"""Results of experiments, with ceilings, from the contents of a results folder; and trials: everything in it about each
of its machines, for the page."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from seatrial.analysis.cost import priced
from seatrial.analysis.experiment_figures import (
    Computed,
    computed,
    figures_of,
    outcome_of,
    repeats_in_time,
    stated_figures,
)
from seatrial.analysis.grouped import grouped
from seatrial.analysis.match import hosts_of_records
from seatrial.analysis.pairs import screened_pairs
from seatrial.analysis.power import missing_energy
from seatrial.analysis.roles import with_ceilings
from seatrial.analysis.rules import findings
from seatrial.analysis.rules.finding import listed
from seatrial.benchmarks import registry
from seatrial.diagnosis.disturbance.missing import missing_and_beside
from seatrial.errors import ProtocolError, StoreError
from seatrial.model.benchmark.power import SCOPE
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.frozen import Frozen
from seatrial.model.lazy import Lazy
from seatrial.model.machine.document import machine_from_document
from seatrial.model.machine.identity import is_stored_as_emulated, why_not_comparable
from seatrial.model.machine.machine import Machine
from seatrial.model.results.figure_result import Emulated, ExperimentResult, FigureResult, Screening
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.rows import figure_rows, outcomes_text
from seatrial.model.results.sample import Outcome
from seatrial.model.secrets import is_masked
from seatrial.model.spelling import count
from seatrial.model.study.result import NOT_REQUESTED, NotMeasured, PerRepeat, RecordPlace, StudyResult, Trial
from seatrial.store.contents import Contents
from seatrial.version import __version__

_MOST_KERNEL_NOTES = 5
_MOST_SEEN = 5000
"""Repeats whose observations stay at hand."""


class RunResult(Frozen):
    """The experiments of a run in the requested order, with any outcome.

    `environments` describes each environment by the key that experiments refer to; `choices` has, by the id of an
    experiment, which parts of it were chosen. `study` is the result of a study, `trial` that of the standard trial with
    the findings about this machine. `problem` is set if writing to the
    results folder failed; earlier records are kept.
    """

    experiments: tuple[ExperimentResult, ...]
    environments: Mapping[str, Mapping[str, Any]] = {}
    choices: Mapping[str, EnvironmentChoice] = {}
    study: StudyResult | None = None
    trial: Trial | None = None
    problem: StoreError | None = None

    def __repr__(self) -> str:
        return f"<run of {outcomes_text(self.experiments)}>"

    def rows(self) -> list[dict[str, Any]]:
        """A plain dict for each figure (model/results/rows.py)."""
        return figure_rows(self.experiments)


class Asked(Frozen):
    """An experiment of this command: its refusal during preparation if any, and whether it was measured now."""

    experiment: Experiment
    refusal: Outcome | None = None
    measured_now: bool = False


def results_of(contents: Contents, asked: Sequence[Asked]) -> tuple[ExperimentResult, ...]:
    """The results of these experiments, in their order. Other experiments of the folder serve as ceilings."""
    machines = machines_of(contents)
    stored = {key: _stored(key, contents, machines) for key in contents.experiments}
    published: list[ExperimentResult] = []
    for item in asked:
        key = item.experiment.id
        if item.refusal is not None:
            published.append(ExperimentResult(key, item.experiment, _question(item.experiment), item.refusal))
        elif key in stored:
            published.append(replace(stored[key], reused=not item.measured_now))
        else:
            published.append(ExperimentResult(key, item.experiment, _question(item.experiment), outcome_of(())[0]))
    return _with_ceilings(published, list(stored.values()))


def all_results(contents: Contents) -> tuple[ExperimentResult, ...]:
    """The results of every experiment of the folder: by benchmark, then by parameters in declared order, then as they
    were measured."""
    machines = _Machines(contents)
    keys = sorted(contents.experiments, key=lambda key: rank_of(contents.experiments[key]))
    gone = _gone(contents)
    stored = [_stored(key, contents, machines) for key in keys if key not in gone]
    return _with_ceilings(stored, stored)


def _gone(contents: Contents) -> frozenset[str]:
    """The experiments of a folder that are `superseded`."""
    if contents.superseded is not None:
        return contents.superseded
    return superseded(
        contents.experiments,
        {key: max(record.t0 for record in own) for key, own in contents.records.items()},
        {key for key, own in contents.records.items() if any(record.samples for record in own)},
        contents.environments,
    )


def results_without_limits(contents: Contents) -> tuple[ExperimentResult, ...]:
    """The experiments that succeeded, without limits of their figures: for a screen of many nodes, which does not need
    the limits of each machine."""
    benchmarks = {
        name: replace(benchmark, figures=tuple(replace(f, limit=None, ceiling=None) for f in benchmark.figures))
        for name, benchmark in registry().items()
    }
    unknown_machine = Machine("")
    emulated = {key for key, document in contents.machines.items() if is_stored_as_emulated(document)}
    found: list[ExperimentResult] = []
    for key, experiment in contents.experiments.items():
        records, benchmark = contents.records[key], benchmarks.get(experiment.benchmark)
        outcome, notes = outcome_of(records)
        if benchmark is not None and outcome.is_ok and experiment.machine not in emulated:
            try:
                own = figures_of(benchmark, unknown_machine, experiment.parameters, records)
            except ProtocolError:
                continue
            found.append(ExperimentResult(key, experiment, benchmark.question, outcome, own, reused=True, notes=notes))
    return tuple(found)


class _Machines(dict[str, Machine]):
    """Identity -> machine, from its document when it is used."""

    def __init__(self, contents: Contents) -> None:
        self._documents = contents.machines

    def __missing__(self, identity: str) -> Machine:
        found = self[identity] = machine_from_document(self._documents[identity])
        return found


def machines_of(contents: Contents) -> dict[str, Machine]:
    """Key -> machine."""
    return {key: machine_from_document(document) for key, document in contents.machines.items()}


def superseded(
    experiments: Mapping[str, Experiment],
    latest: Mapping[str, float],
    with_samples: Collection[str],
    environments: Mapping[str, Mapping[str, Any]],
) -> frozenset[str]:
    """The experiments that could not run (no compiler, for example) and were run later in another environment, unless
    a study chose the one that they could not run in. `latest`: the start of the last repeat of each."""
    starts = grouped((_same(experiment), (latest[key], key)) for key, experiment in experiments.items())
    without = [
        key
        for key, experiment in experiments.items()
        if key not in with_samples and not {"chosen", "wanted"} & environments.get(experiment.environment, {}).keys()
    ]
    newest = {same: sorted(own)[-2:] for same, own in starts.items()}
    return frozenset(
        key
        for key in without
        if any(other != key and since > latest[key] for since, other in newest[_same(experiments[key])])
    )


def _same(experiment: Experiment) -> tuple[object, ...]:
    """What experiments share that differ only in their environment."""
    return experiment.benchmark, experiment.machine, frozenset(experiment.parameters.items())


def _notes_on_libraries(records: Sequence[RepeatRecord]) -> tuple[str, ...]:
    """Notes on libraries loaded besides those of the build (a profiler, an allocator), the MPI, and the BLAS.

    An MPI library loads dozens of others at startup: they are only counted.
    """
    added = sorted({name for libs in _distinct(records, "added_libs", ()) for name in libs})
    recorded = _distinct(records, "notes", {})
    versions = sorted({notes["mpi_version"] for notes in recorded if "mpi_version" in notes})
    if versions:
        beside = tuple(f"MPI: {version}; it loaded {len(added)} more libraries" for version in versions)
    else:
        beside = (f"loaded besides the libraries of the build: {', '.join(added)}",) if added else ()
    used = {
        f"{notes.get('blas_version') or notes.get('blas_path')}, kernels of {notes.get('blas_core', 'unknown')}"
        + (f"; {notes['blas_why']}" if "blas_why" in notes else "")
        for notes in recorded
        if "blas_version" in notes or "blas_path" in notes
    }
    return (*beside, *(f"BLAS: {blas}" for blas in sorted(used)))


def _distinct(records: Sequence[RepeatRecord], name: str, default: Any) -> list[Any]:
    """What was observed, without repetitions: stored records share equal values."""
    return list({id(value): value for record in records if (value := record.seen.get(name, default))}.values())


def _remarks(records: Sequence[RepeatRecord]) -> tuple[str, ...]:
    """What the files of imported repeats have but no figure shows, and what they may be missing."""
    return tuple(dict.fromkeys(str(remark) for remarks in _distinct(records, "remarks", ()) for remark in remarks))


def _kernel_notes(records: Sequence[RepeatRecord]) -> tuple[str, ...]:
    """What the kernel reported, with the repeats during which it did."""
    known = ((record.repeat, [str(event) for event in record.seen.get("kernel_events", ())]) for record in records)
    repeats = grouped(
        (events[0] + (f" (and {count(len(events) - 1, 'more line')})" if len(events) > 1 else ""), repeat)
        for repeat, events in known
        if events
    )
    shown = list(repeats.items())[:_MOST_KERNEL_NOTES]
    notes = [
        f"the kernel reported during {'repeat' if len(numbers) == 1 else 'repeats'} {listed(map(str, numbers))}: {text}"
        for text, numbers in shown
    ]
    if len(repeats) > len(shown):
        notes.append(f"the kernel reported {len(repeats) - len(shown)} more problems during repeats: see the records")
    return tuple(notes)


def _stored(key: str, contents: Contents, machines: Mapping[str, Machine]) -> ExperimentResult:
    known = contents.results.get(key)
    return result_of(key, contents, machines[contents.experiments[key].machine]) if known is None else known


def result_of(key: str, contents: Contents, machine: Machine, known: Computed | None = None) -> ExperimentResult:
    """The result of an experiment from its records, without ceilings. `known` are its outcome and figures if they were
    computed before; not used if repeats took turns with others, whose samples are compared."""
    experiment, records = contents.experiments[key], contents.records[key]
    outcome, notes = outcome_of(records)
    masked = ("arguments that look like secrets are masked",) if is_masked(experiment.parameters) else ()
    notes = (*notes, *_notes_on_libraries(records), *_remarks(records), *_kernel_notes(records), *masked)
    benchmark = registry().get(experiment.benchmark)
    stated = stated_figures(records[-1]) if outcome.is_ok else ()
    if benchmark is None and not stated:
        notes = (*notes, f"this version has no benchmark {experiment.benchmark}: its figures cannot be read")
    found: tuple[FigureResult, ...] = ()
    screening: Screening | None = None
    if stated:
        found = stated
    elif benchmark is not None and outcome.is_ok:
        if known is None or any(record.seen.get("together") for record in records):
            known = computed(benchmark, machine, experiment.parameters, records)
        outcome, found = known
        if outcome.is_ok:
            screening = screened_pairs(benchmark, experiment, machine, records)
    no_cpu, beside, why = missing_and_beside([one for one in records if one.outcome.is_ok], experiment.benchmark)
    missing = missing_energy(records) if outcome.is_ok else ()
    notes = (*notes, *(f"no {one.name} of the {one.point[SCOPE]}: {one.reason}" for one in missing))
    result = ExperimentResult(
        key,
        experiment,
        _question(experiment),
        outcome,
        found,
        reused=True,
        notes=notes,
        screening=screening,
        hosts=hosts_of_records(records),
        container=_container(contents.environments.get(experiment.environment, {})),
        no_cpu=no_cpu,
        beside=beside,
        missing=missing,
        why=why,
    )
    return as_comparable(result, machine)


def as_comparable(result: ExperimentResult, machine: Machine) -> ExperimentResult:
    """The result; without figures to compare if the processors of its machine are emulated."""
    why = why_not_comparable(machine) if result.outcome.is_ok else ""
    if not why:
        return result
    emulated = Emulated(why, result.figures)
    return replace(result, figures=(), screening=None, notes=(*result.notes, why), emulated=emulated)


def _container(environment: Mapping[str, Any]) -> str:
    """The image, its runtime and the placement of ranks: "app (Charliecloud, joined)"."""
    container = environment.get("container")
    if not isinstance(container, Mapping):
        return ""
    how = ", ".join(str(container[name]) for name in ("runtime", "mpi") if container.get(name))
    return f"{container.get('image')} ({how})"


def rank_of(experiment: Experiment) -> tuple[object, ...]:
    """The sort key of an experiment; values are ranked by type first, since types do not compare."""
    values = experiment.parameters.values()
    return (experiment.benchmark, tuple((isinstance(v, str), isinstance(v, tuple), v) for v in values))


def _with_ceilings(
    results: Sequence[ExperimentResult], others: Sequence[ExperimentResult]
) -> tuple[ExperimentResult, ...]:
    known = ((result, registry().get(result.experiment.benchmark)) for result in results)
    return priced([result if own is None else with_ceilings(own, result, others) for result, own in known])


def _question(experiment: Experiment) -> str:
    benchmark = registry().get(experiment.benchmark)
    return benchmark.question if benchmark else ""


def trials_of(contents: Contents) -> tuple[Trial, ...]:
    """One trial for each machine of the folder, in the order of their first experiment."""
    results = all_results(contents)
    machines = _Machines(contents)
    by_machine = grouped((result.experiment.machine, result) for result in results)
    return tuple(trial_of(machines[key], own, contents) for key, own in by_machine.items())


def not_measured(results: Sequence[ExperimentResult]) -> tuple[NotMeasured, ...]:
    """The benchmarks that were not run."""
    measured = {result.experiment.benchmark for result in results}
    return tuple(
        NotMeasured(name, benchmark.question, f"{NOT_REQUESTED}: seatrial run {name}")
        for name, benchmark in registry().items()
        if name not in measured and benchmark.program.can_run
    )


def trial_of(machine: Machine, results: Sequence[ExperimentResult], contents: Contents) -> Trial:
    """The trial of one machine with some of the results in a folder."""
    own = dict.fromkeys(result.id for result in results)
    used = {result.experiment.environment for result in results}
    seen = PerRepeat(Lazy(own, lambda key: _Observed(contents.records.get(key, ())), _MOST_SEEN))
    environments = {key: document for key, document in contents.environments.items() if key in used}
    return Trial(
        machine=machine,
        results=tuple(results),
        findings=findings(machine, results, seen, environments),
        not_measured=not_measured(results),
        environments=environments,
        places=_places(contents, seen, own),
        seen=seen,
        version=__version__,
    )


class _Observed(Mapping[int, Mapping[str, Any]]):
    """Repeat -> what was observed around it, in order of time; read when one is asked for."""

    __slots__ = ("_in_time", "_records", "_seen")

    def __init__(self, records: Sequence[RepeatRecord]) -> None:
        self._records, self._in_time = records, repeats_in_time(records)
        self._seen: dict[int, Mapping[str, Any]] | None = None

    def __getitem__(self, repeat: int) -> Mapping[str, Any]:
        if self._seen is None:
            self._seen = {one.repeat: one.seen for one in self._records}
        return self._seen[repeat]

    def __iter__(self) -> Iterator[int]:
        return iter(self._in_time)

    def __len__(self) -> int:
        return len(self._in_time)


def _places(
    contents: Contents, seen: PerRepeat[Mapping[str, Any]], experiments: Collection[str]
) -> Mapping[tuple[str, int], RecordPlace]:
    """Where the records are, the repeats of an experiment in order of time."""
    known = contents.places

    def of(key: str) -> Mapping[int, RecordPlace]:
        own, in_order = known.of(key), seen.of(key)
        return own if list(own) == list(in_order) else {repeat: own[repeat] for repeat in in_order if repeat in own}

    return PerRepeat(Lazy(experiments, of, _MOST_SEEN))
