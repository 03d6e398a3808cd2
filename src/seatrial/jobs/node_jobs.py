"""Jobs on nodes without Python: planned before they are submitted, and recorded after they have ended.

`plan`     what `native/launch/repeats.cpp` makes on the node
`programs/` the programs that run there
`patterns` the files that describe the node, for `native/launch/copy_facts.cpp`
`facts.tar` what they hold there
`variables` the variables there that affect performance
`repeats/` what was made
`machine.json` the machine of these facts, once the job was recorded
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.engine.engine import StudyWork
from seatrial.engine.listener import Listener
from seatrial.engine.policy import Alone, Policy, Shared
from seatrial.engine.pool import Pool
from seatrial.engine.prepare import prepared_points
from seatrial.engine.ready import Ready, Refused
from seatrial.engine.study_work import study_work
from seatrial.engine.trial import BUDGET_EACH_S, keep_trial
from seatrial.environments.chosen import Environments
from seatrial.errors import StoreError, UsageError
from seatrial.jobs.batch.portable import facts_first, node_script
from seatrial.jobs.folder import PROGRAMS, JobFolder, job_document
from seatrial.jobs.following import is_over
from seatrial.jobs.node_plan import (
    NodePlan,
    can_run,
    commands_in,
    commands_of,
    least_repeats,
    name_in_job,
    needs_python,
    node_plan,
    record_node_repeats,
    repeats_in,
)
from seatrial.jobs.queue import Where, bringing, folder_on_node
from seatrial.jobs.request import Command, Portion, batch_request, part_of_job, points_of
from seatrial.machine.copied import PATTERNS, copied_cpu_words, cpu_words, discover_copied
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Outcome, Stage
from seatrial.places.rank_helpers import helper
from seatrial.plan.points import Point
from seatrial.probes.system import starts_of_performance_variables
from seatrial.stats.interval import StoppingRule
from seatrial.store.files import read_file
from seatrial.store.folder import IN_JOB, JOBS, ResultsFolder
from seatrial.store.record_heads import read_heads

OTHER_MACHINE = "another machine"
"""The state of a job that found another kind of node than its plan is for; the next one is planned for that."""
_MOST_B = 64 << 20
_REMEDY = "give the partition a Python on its nodes: `python: /path/to/python` in the site file"


class NodeJob(Frozen):
    """What a job on a node without Python needs: its plan, the CPU that it is for, and the two programs."""

    plan: NodePlan
    cpu: str
    facts: Path
    repeats: Path

    def script(self, folder: Path, job: str, cwd: Path) -> str:
        """`job.sh`, for a job that finds its files in `folder`."""
        programs = folder / PROGRAMS
        facts, repeats = (programs / name_in_job(str(path)) for path in (self.facts, self.repeats))
        command = [str(repeats), "--plan", str(folder / "plan"), "--programs", str(programs)]
        make = 'mkdir -p -- "$folder/repeats" || exit 125\n'
        first = make + facts_first(facts, self.cpu, starts_of_performance_variables())
        return node_script(folder, job, IN_JOB, [*command, "--into", str(folder / "repeats")], cwd, {}, first)

    def texts(self) -> dict[str, str]:
        """The texts that it finds in its folder."""
        return {"plan": self.plan.text, "patterns": "\n".join(PATTERNS) + "\n"}

    def programs(self) -> dict[str, bytes]:
        """The programs that it finds there, by their names below `programs`. They are copies: the submitter may have
        ended when the job starts."""
        own = {name_in_job(str(path)): path for path in (self.facts, self.repeats)}
        return {name: path.read_bytes() for name, path in (own | self.plan.programs).items()}


def node_job(command: Command, points: Sequence[Point], machine: Machine, folder: ResultsFolder, cpu: str) -> NodeJob:
    """The job for these points on nodes like this machine. Raises UsageError for what was named and needs Python there,
    BuildError for programs that cannot be built here."""
    return NodeJob(_plan(command, _prepared(points, machine), folder), cpu, helper("copy_facts"), helper("repeats"))


def job_without_python(
    folder: ResultsFolder, request: Mapping[str, Any], planned: NodeJob, where: Where, portion: Portion
) -> tuple[JobFolder, str]:
    """The folder of a job on nodes without Python, and its batch script. Raises StoreError, UsageError."""
    is_shared = where.place.partition.is_shared

    def folder_of(job: str) -> Path:
        return folder.path.absolute() / JOBS / job if is_shared else folder_on_node(where, job)

    def script(job: str) -> str:
        return planned.script(folder_of(job), job, Path.cwd() if is_shared else folder_of(job))

    job = JobFolder.create(folder, request, script)
    texts, programs = planned.texts(), planned.programs()
    for name, text in texts.items():
        job.write_text(name, text)
    if is_shared:
        for name, data in programs.items():
            job.write_program(name, data)
        return job, where.batch.script(batch_request(where, job, portion))
    there = folder_of(job.id)
    brought = bringing(there, {**texts, "job.sh": script(job.id)}, programs)
    return job, where.batch.script(batch_request(where, job, portion, there, brought))


def settle(folder: ResultsFolder, job: JobFolder, command: Command) -> None:
    """A job that was ended from outside has its result if what it has made is enough: then nothing is submitted again.
    Raises StoreError, UsageError."""
    found = job.read("planned.json")
    if not is_over(job) or found is None or job.has("result.json"):
        return
    machine = discover_copied(read_file(job.results, JOBS, job.id, "facts.tar", most=_MOST_B))
    part = part_of_job(command, job)
    if not _plan(part, _prepared(points_of(part, machine), machine), folder).experiments:
        job.write("result.json", found)


def _plan(command: Command, prepared: Sequence[Ready | Refused], folder: ResultsFolder) -> NodePlan:
    """What is missing, of all with `--again`."""
    works = _works(command, prepared)
    if command.is_fresh:
        return node_plan(works)
    keys = {ready.experiment.id for work in works for group in work.groups for ready in group}
    heads = {key: sorted(found, key=lambda head: head.repeat) for key, found in read_heads(folder, keys).items()}
    ok = {key: [head for head in found if head.outcome.is_ok] for key, found in heads.items()}
    failed = {key for key, found in heads.items() if found and not found[-1].outcome.is_ok}
    missing = [_missing(work, {key: len(found) for key, found in ok.items() if key not in failed}) for work in works]
    return node_plan(missing, {key: [head.wall_s for head in found] for key, found in ok.items() if key not in failed})


def is_of_other_machine(job: JobFolder) -> bool:
    """Whether a job found another kind of node than its plan is for."""
    over = job.over()
    return over is not None and over.state == OTHER_MACHINE


def cpu_of(job: JobFolder | None) -> str:
    """What the script of a job compares with the CPU of its node: as an earlier job found it, else of this machine."""
    found = None if job is None else (job.read("machine.json") or {}).get("cpu")
    return found if isinstance(found, str) else cpu_words(Path("/proc/cpuinfo").read_text(encoding="utf-8"))


def refuse_what_needs_python(points: Sequence[Point], place: str) -> None:
    """Raise UsageError if something that was named cannot be measured on nodes without Python."""
    for point in points:
        if point.named and (why := needs_python(point)) is not None:
            raise UsageError(
                f"{point.benchmark.name} cannot be measured on {place}, which has no Python: {why}", _REMEDY
            )


def _prepared(points: Sequence[Point], machine: Machine) -> list[Ready | Refused]:
    """As experiments; those that need Python on the node are refused."""
    able = [
        point if (why := needs_python(point)) is None else replace(point, refusal=Outcome.unsupported("python", why))
        for point in points
    ]
    key = machine_identity(machine)[:16]
    return [_startable(item) for item in prepared_points(able, Environments(machine), key, Listener())]


def _startable(item: Ready | Refused) -> Ready | Refused:
    why = can_run(item) if isinstance(item, Ready) else None
    if why is None:
        return item
    return Refused(item.point, item.experiment, Outcome.unsupported("python", why), item.environment)


def _works(command: Command, prepared: Sequence[Ready | Refused]) -> list[StudyWork]:
    """The groups of a command with their policies, as a run here would have them."""
    if command.study is not None:
        repeat = command.study.repeat
        budget_s = repeat.budget_s if command.budget_s is None else command.budget_s
        return study_work(replace(command.study, repeat=replace(repeat, budget_s=budget_s)), prepared)
    unique = {item.experiment.id: item for item in prepared if isinstance(item, Ready)}
    rule = StoppingRule(budget_s=BUDGET_EACH_S)
    policy: Policy = Alone(rule)
    if command.budget_s is not None:
        policy = Shared(Pool(command.budget_s), rule.precision, rule.maximum, shares=max(1, len(unique)))
    return [StudyWork(tuple((ready,) for ready in unique.values()), policy)]


def _missing(work: StudyWork, counts: Mapping[str, int]) -> StudyWork:
    """Without the groups that have enough of these repeats. As on nodes with Python, more time does not reopen what an
    earlier job gave its least repeats, but in a study, whose time is for all of it."""
    if work.study:
        return work
    least = least_repeats(work.policy)
    open_groups = (group for group in work.groups if any(counts.get(one.experiment.id, 0) < least for one in group))
    return replace(work, groups=tuple(open_groups))


def record_job(folder: ResultsFolder, job: JobFolder, command: Command) -> bool:
    """Record what a job without Python has made. False if its node is another machine than its plan was made for.
    Raises StoreError, UsageError."""
    try:
        archive = read_file(job.results, JOBS, job.id, "facts.tar", most=_MOST_B)
    except StoreError:
        return True  # it ended before it said what the node is
    machine = discover_copied(archive)
    part = part_of_job(command, job)
    prepared = _prepared(points_of(part, machine), machine)
    kept = keep_trial(folder, machine, prepared, command.study)
    job.write("machine.json", {"identity": machine_identity(machine)[:16], "cpu": copied_cpu_words(archive)})
    planned = commands_in(_text(job, "plan"))
    by_lines = {commands_of(item): item for item in prepared if isinstance(item, Ready)}
    found = {number: by_lines[lines] for number, lines in enumerate(planned) if lines in by_lines}
    made = list(repeats_in(_text(job, "repeats", "repeats")))
    if planned and (not found or (not made and job.exit_status() == 0)):
        return False
    repeats = [one for one in made if one.experiment in found]
    works = {ready.experiment.id: work for work in _works(part, prepared) for group in work.groups for ready in group}
    variables = dict(line.split("=", 1) for line in _text(job, "variables").splitlines() if "=" in line)
    for work in {id(work): work for work in works.values()}.values():
        own = [(found[one.experiment], one) for one in repeats if works[found[one.experiment].experiment.id] is work]
        noted: dict[str, Any] = {"budget_s": work.policy.budget_s, "maximum": work.policy.most_repeats, "limit_s": 60.0}
        noted |= {"study": work.study} if work.study else {}
        source = job.path / "repeats"
        record_node_repeats(folder, own, machine, source, job.id, noted, variables, keep=command.keep)
    experiments = {item.experiment.id: item for item in prepared}.values()
    measured = {ready.experiment.id for ready in found.values()}
    entries = [
        (item.experiment, item.point.environment, _outcome(item, is_planned=item.experiment.id in measured))
        for item in experiments
    ]
    document = job_document(entries, kept)
    job.write("planned.json", document)
    if job.exit_status() == 0:
        job.write("result.json", document)
    shutil.rmtree(job.path / PROGRAMS, ignore_errors=True)
    return True


def _outcome(item: Ready | Refused, *, is_planned: bool) -> Outcome:
    """The outcome of an experiment without records."""
    if isinstance(item, Refused):
        return item.outcome
    return Outcome.ok() if is_planned else Outcome.failed(Stage.LAUNCH, "its command was planned for another machine")


def _text(job: JobFolder, *names: str) -> str:
    try:
        return read_file(job.results, JOBS, job.id, *names, most=_MOST_B).decode("utf-8", "replace")
    except StoreError:
        return ""
