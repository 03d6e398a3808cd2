"""A trial from end to end: environment, programs, facts for the folder, repeats."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from seatrial.engine.durations import Costs, learn
from seatrial.engine.engine import StudyWork, run_work
from seatrial.engine.group import Recorded
from seatrial.engine.host_lock import HostLock
from seatrial.engine.listener import Listener
from seatrial.engine.policy import Alone, Policy, Shared
from seatrial.engine.pool import Clock, Pool
from seatrial.engine.prepare import Preparation, prepared_points, refuse_secret_differences
from seatrial.engine.ready import Ready, Refused
from seatrial.engine.study_work import (
    Budget,
    WantedWork,
    study_work,
    wanted_of_study,
    wanted_of_targets,
    wanted_of_trial,
    without_time,
)
from seatrial.environments.chosen import Environments
from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.model.machine.document import machine_document
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, content_key
from seatrial.model.secrets import masked_parameters
from seatrial.model.study.study import KeptStudy, Study, StudyPoint, study_document, study_without_secrets
from seatrial.plan.points import Point, same_sides
from seatrial.stats.interval import StoppingRule
from seatrial.store.claim import claim_next
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads
from seatrial.store.writers import RecordWatch, RecordWriter

BUDGET_EACH_S = 20.0
"""The default time budget of one experiment."""


class TrialRun(Frozen):
    """The result of a trial: its experiments in the order of the points; `measured` are those that got a new repeat.

    `problem` is set if the results folder failed; what was recorded before stays. `study` is the study as stored in the
    folder.
    """

    experiments: tuple[Ready | Refused, ...]
    environments: Mapping[str, Mapping[str, Any]]
    measured: frozenset[str] = frozenset()
    problem: StoreError | None = None
    study: KeptStudy | None = None


class TrialToRun(Struct):
    """How something is measured on a machine, into a folder that is opened only after everything requested was found
    valid. `again` repeats what is finished, `keep` keeps the output of every repeat; `clock` began with the command."""

    machine: Machine
    open_folder: Callable[[], ResultsFolder]
    listener: Listener
    again: bool = False
    keep: bool = False
    lock: HostLock = field(default_factory=HostLock)
    clock: Clock = field(default_factory=Clock)

    def run_points(
        self, points: Sequence[Point], *, budget_s: float | None = None, repeats: int | None = None
    ) -> TrialRun:
        """Measure the points. `budget_s` is for the whole command: of a standard trial, what does not fit is left out;
        what the user named gets the minimum of repeats in any case. `repeats` runs exactly that many of each instead.

        Raises UsageError before anything runs; KeyboardInterrupt propagates, with finished repeats kept.
        """
        if budget_s is None or repeats is not None:
            rule = StoppingRule(budget_s=BUDGET_EACH_S)
            if repeats is not None:
                rule = StoppingRule(budget_s=0.0, maximum=repeats, minimum=repeats)
            return self._run(self._prepare(points), lambda items: [_independent(items, Alone(rule))])
        is_named = any(point.named for point in points)
        budget = Budget(budget_s, self.clock, must_have_all=is_named)

        def wanted(costs: Costs) -> list[WantedWork]:
            return wanted_of_targets(points) if is_named else wanted_of_trial(points, costs)

        def work(items: Sequence[Ready | Refused], pool: Pool) -> list[StudyWork]:
            policy = Shared(pool, StoppingRule().precision, StoppingRule().maximum, shares=max(1, len(items)))
            return [_independent(items, policy)]

        return self._run_within(budget, points, wanted, work)

    def run_study(self, study: Study, points: Sequence[Point], *, budget_s: float | None = None) -> TrialRun:
        """Measure the points of a study, and store it in the folder. Its own budget is for its repeats; `budget_s`
        replaces it and is for the whole command. See `run_points`.

        Raises UsageError also if every comparison would be of an experiment with itself.
        """
        if budget_s is not None:
            within = replace(study, repeat=replace(study.repeat, budget_s=budget_s))
            return self._run_within(
                Budget(budget_s, self.clock, needs_one=True),
                points,
                lambda costs: wanted_of_study(study, points),
                lambda items, pool: study_work(within, items, pool),
                within,
            )
        experiments = self._prepare(points)
        _refuse_itself(study, points, experiments)
        return self._run(experiments, lambda items: study_work(study, items), study)

    def _prepare(self, points: Sequence[Point]) -> list[Ready | Refused]:
        """One for each point; how long the builds took is noted."""
        prepared = prepared_points(points, Environments(self.machine), self._key, self.listener)
        self._note_start(prepared)
        return prepared

    def _note_start(self, prepared: Iterable[Ready | Refused]) -> None:
        """Note how long the builds took, and everything else until now."""
        builds = {
            item.program.path.name: item.program.build_s
            for item in prepared
            if isinstance(item, Ready) and item.program.build_s
        }
        learn(self._key, builds=builds, start_s=max(0.0, self.clock.elapsed_s() - sum(builds.values())))

    @property
    def _key(self) -> str:
        return machine_identity(self.machine)[:16]

    def _run_within(
        self,
        budget: Budget,
        points: Sequence[Point],
        wanted: Callable[[Costs], Sequence[WantedWork]],
        work: Callable[[Sequence[Ready | Refused], Pool], list[StudyWork]],
        study: Study | None = None,
    ) -> TrialRun:
        """Find what fits into the budget, report it, and measure that; the rest is skipped."""
        environments = Environments(self.machine)
        chosen = budget.fit(points, wanted, environments, self._key, self.open_folder, again=self.again)
        self.listener.fitted(chosen.fit)
        by_importance = budget.prepared(chosen, Preparation(environments, self._key, self.listener))
        self._note_start(by_importance.values())
        by_point = by_importance | chosen.left_out()
        in_order = [by_point[id(point)] for point in points]
        refuse_secret_differences(in_order)
        if study is not None:
            _refuse_itself(study, points, in_order)
        pool = budget.pool(chosen)
        found = self._run(in_order, lambda _: work(list(by_importance.values()), pool), study)
        return replace(found, experiments=tuple(without_time(pool, found.experiments)))

    def _run(
        self,
        prepared: Sequence[Ready | Refused],
        work: Callable[[Sequence[Ready | Refused]], list[StudyWork]],
        study: Study | None = None,
    ) -> TrialRun:
        """Store the facts, record what cannot run, measure the rest. Nothing is recorded of what is left out to keep a
        budget: it can run."""
        folder = self.open_folder()
        experiments = tuple({item.experiment.id: item for item in prepared}.values())
        kept = None if study is None else _kept(study, self._key, prepared)
        known = environments_of(experiments)
        facts = [item for item in experiments if isinstance(item, Ready) or not item.is_left_out]
        try:
            keep_facts(folder, self.machine, self._key, known, facts)
            for guest in self.machine.guests:
                if guest.machine is not None:
                    keep_machine(folder, guest.machine, machine_identity(guest.machine)[:16])
            _keep_study(folder, kept)
            self.listener.prepared(experiments, kept)
            _record_refusals(folder, [item for item in facts if isinstance(item, Refused)])
            measured = run_work(
                work(prepared),
                self.machine,
                folder,
                self.listener,
                again=self.again,
                keep=self.keep,
                lock=self.lock,
                clock=self.clock,
            )
        except StoreError as problem:
            return TrialRun(experiments, known, problem=problem, study=kept)
        return TrialRun(experiments, known, measured, study=kept)


def _refuse_itself(study: Study, points: Sequence[Point], experiments: Sequence[Ready | Refused]) -> None:
    """Raise UsageError if every comparison would be of an experiment with itself."""
    same_sides(study, points, {id(point): item.experiment.id for point, item in zip(points, experiments, strict=True)})


def _independent(items: Sequence[Ready | Refused], policy: Policy) -> StudyWork:
    """Each experiment in its own group."""
    return StudyWork(tuple((item,) for item in items if isinstance(item, Ready)), policy)


def keep_trial(
    folder: ResultsFolder, machine: Machine, prepared: Sequence[Ready | Refused], study: Study | None
) -> KeptStudy | None:
    """Store the facts of experiments whose repeats another program made, and record what cannot run. Returns the study
    as it is stored. Raises StoreError."""
    key = machine_identity(machine)[:16]
    experiments = tuple({item.experiment.id: item for item in prepared}.values())
    kept = None if study is None else _kept(study, key, prepared)
    keep_facts(folder, machine, key, environments_of(experiments), experiments)
    _keep_study(folder, kept)
    _record_refusals(folder, [item for item in experiments if isinstance(item, Refused)])
    return kept


def environments_of(experiments: Iterable[Ready | Refused]) -> dict[str, Mapping[str, Any]]:
    """The documents of their environments by key."""
    return {item.experiment.environment: item.environment for item in experiments if item.environment is not None}


def _keep_study(folder: ResultsFolder, kept: KeptStudy | None) -> None:
    if kept is not None:
        document = study_document(kept)
        folder.put("studies", content_key(document), document)


def _kept(study: Study, machine_key: str, prepared: Sequence[Ready | Refused]) -> KeptStudy:
    """The study with the experiments of its points, for pages and comparisons."""
    points = tuple(
        StudyPoint(item.experiment.id, item.point.benchmark.name, masked_parameters(item.point.given))
        for item in prepared
    )
    return KeptStudy(study_without_secrets(study), machine_key, points)


def keep_machine(folder: ResultsFolder, machine: Machine, identity: str) -> None:
    """Store a machine under the hash of what is known about it: root sees more of the same machine than a user."""
    document = {"identity": identity, **machine_document(machine)}
    knowledge = {name: document[name] for name in ("identity", "memory", "limits", "sources", "unread")}
    folder.put("machines", content_key(knowledge), document)


def keep_facts(
    folder: ResultsFolder,
    machine: Machine,
    machine_key: str,
    environments: Mapping[str, Mapping[str, Any]],
    experiments: Sequence[Ready | Refused],
) -> None:
    """Store what records will refer to, before the first record."""
    keep_machine(folder, machine, machine_key)
    for key, document in environments.items():
        folder.put("environments", key, document)
    for item in experiments:
        folder.put("experiments", item.experiment.id, item.experiment.document())


def _record_refusals(folder: ResultsFolder, refused: Sequence[Refused]) -> None:
    """Record what could not run, for reports; the same reason is not recorded twice, also if several processes find it
    at once."""
    if not refused:
        return
    watch, host = RecordWatch(folder), platform.node()
    known: dict[str, list[Recorded]] = {
        key: list(heads) for key, heads in read_heads(folder, {item.experiment.id for item in refused}).items()
    }

    def numbers(experiment: str) -> set[int]:
        for record in watch.new():
            known.setdefault(record.experiment, []).append(record)
        return {record.repeat for record in known.get(experiment, ())}

    def is_known(item: Refused) -> bool:
        latest = max(known.get(item.experiment.id, ()), key=lambda record: record.repeat, default=None)
        return latest is not None and latest.outcome == item.outcome

    writer, claims = RecordWriter(folder, host), []
    try:
        for item in refused:
            if is_known(item):
                continue
            key, t0 = item.experiment.id, time.time()
            claimed = claim_next(folder, host, key, partial(numbers, key), {"order": 0, "t0": t0})
            claims.append(claimed)
            if not is_known(item):  # of another process, meanwhile
                writer.append(RepeatRecord(key, claimed.repeat, 0, t0, 0.0, item.outcome))
        writer.sync()
    finally:
        writer.close()
        for claimed in claims:
            claimed.release()
