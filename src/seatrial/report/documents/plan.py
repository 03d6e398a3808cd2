"""`seatrial.plan/1`, what a study would run, and `seatrial.jobs/1`, the jobs of a batch system, as JSON objects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, NotRequired, TypedDict

from seatrial.jobs.folder import JobFolder
from seatrial.model.environment.choice import EnvironmentChoice
from seatrial.model.json_object import filled
from seatrial.model.json_shape import (
    ABSENT,
    GIVEN,
    OPEN,
    From,
    Json,
    Keywords,
    NonNegative,
    OneOrMore,
    Positive,
    Setting,
    Text,
    shape,
    when,
)
from seatrial.model.study.study import Axis, BestOf, Scaling
from seatrial.plan.planned import LinkedProgram, PlannedExperiment, PlannedJob, PlannedJobs, PlannedStudy, PlannedTrial
from seatrial.plan.points import SameSides


def _state(planned: PlannedExperiment) -> str:
    if planned.is_open:
        return "unknown"
    return "ready" if planned.refusal is None else planned.refusal.state.value


@shape(
    PlannedExperiment,
    OPEN
    | when(
        "state",
        "ready",
        {"reason": {"type": "null"}},
        {"reason": {"type": "string", "minLength": 1}, "estimate_s": {"const": 0}},
    ),
)
class PlannedJson(TypedDict):
    """One experiment, and whether it can run here."""

    id: Annotated[str, Keywords(pattern="^[0-9a-f]{16}$")]
    benchmark: Annotated[str, From("experiment.benchmark")]
    parameters: Annotated[dict[str, Setting | None], From("experiment.parameters")]
    environment: Annotated[
        str | None,
        From(lambda planned: planned.experiment.environment or None),
        "its key; null if none could be chosen",
    ]
    chosen: NotRequired[Annotated[EnvironmentChoice, From("point.environment")]]
    given: NotRequired[
        Annotated[dict[str, Setting | None], From("point.given"), "the values of the axes as written in the study"]
    ]
    state: NotRequired[
        Annotated[
            Literal["ready", "skipped", "unsupported", "failed", "unknown"],
            From(_state),
            "unknown: it cannot run on this machine (`reason`), and may on the nodes of its job",
        ]
    ]
    reason: NotRequired[Annotated[str | None, From("refusal.reason")]]
    estimate_s: Annotated[NonNegative, GIVEN, "time of its repeats up to the first planned look; 0 if it cannot run"]


@shape(PlannedStudy)
class ComparedJson(TypedDict):
    """The comparisons that the study makes."""

    along: Annotated[str, From("study.compare.along")]
    baseline: Annotated[Setting | None, From("study.compare.baseline")]
    margin: Annotated[float, Keywords(exclusiveMinimum=0, exclusiveMaximum=1), From("study.compare.margin")]
    figures: Annotated[list[str], From("study.compare.figures"), "empty: all"]
    groups: Annotated[
        list[Annotated[list[str], Keywords(minItems=2)]],
        From(lambda plan: [[experiment.id for experiment in group] for group in plan.compared]),
        "ids of experiments that are compared, the baseline first",
    ]


@shape(PlannedStudy, OPEN)
class PlanJson(TypedDict):
    """What a study would run: its experiments in the order of the study."""

    schema: Literal["seatrial.plan/1"]
    study: NotRequired[Annotated[str, Keywords(pattern="^[A-Za-z0-9_-]+$"), From("study.name")]]
    question: NotRequired[Annotated[Text, From("study.question")]]
    axes: NotRequired[Annotated[list[Axis], From("study.axes")]]
    combinations: NotRequired[Annotated[OneOrMore, "combinations of the axes, before duplicates are merged"]]
    experiments: Annotated[list[PlannedJson], Keywords(minItems=1), GIVEN]
    count: Annotated[OneOrMore, From(lambda plan: len(plan.experiments))]
    repeats: NotRequired[
        Annotated[int, Keywords(minimum=6), From("first_look"), "of each experiment up to the first planned look"]
    ]
    estimate_s: Annotated[NonNegative, "time of all experiments together, at most the budget"]
    least_s: NotRequired[Annotated[NonNegative, "time of six repeats of each experiment, regardless of the budget"]]
    build_s: NotRequired[Annotated[NonNegative, "time to build the missing programs, which is additional"]]
    budget_s: NotRequired[Annotated[Positive, From("study.repeat.budget_s")]]
    compare: NotRequired[
        Annotated[ComparedJson | None, From(lambda plan: None if plan.study.compare is None else plan)]
    ]
    same: NotRequired[list[SameSides]]
    linked: NotRequired[list[LinkedProgram]]
    scaling: NotRequired[Annotated[Scaling | None, From("study.scaling")]]
    best_of: NotRequired[Annotated[BestOf | None, From("study.best_of")]]
    probes: NotRequired[Annotated[list[Literal["mpi", "io", "power"]], From("study.probes")]]

    system: NotRequired[
        Annotated[
            str,
            GIVEN,
            "where its jobs are submitted to: NAME:PARTITION; of a study with the axis `system` all, joined by commas",
        ]
    ]
    jobs: NotRequired[Annotated[list[PlannedJob], GIVEN]]
    node_hours: NotRequired[Annotated[NonNegative, GIVEN, "the time limits of all jobs, times their nodes"]]


_OF_STUDIES = (
    *("study", "question", "axes", "combinations", "repeats", "least_s", "budget_s"),
    *("compare", "same", "linked", "scaling", "best_of", "probes"),
)
"""Keys that the plan of a trial does not have."""


def plan_document(plan: PlannedStudy | PlannedTrial, jobs: PlannedJobs | None = None) -> Json:
    """The document of CONTRACT. In addition to the contract: the study with its axes, the experiments that cannot run
    and why, the groups that are compared, the time of six repeats of each, and the jobs of a batch system."""
    of_jobs: Json = {}
    if jobs is not None:
        of_jobs = {"system": jobs.system, "jobs": jobs.jobs, "node_hours": jobs.node_hours}
    if isinstance(plan, PlannedTrial):
        planned = [filled(PlannedJson, one, estimate_s=plan.estimate_of(one)) for one in plan.experiments]
        absent = dict.fromkeys(_OF_STUDIES, ABSENT)
        return filled(PlanJson, plan, experiments=planned, **absent, **of_jobs)
    experiments = [filled(PlannedJson, one, estimate_s=plan.first_look * one.repeat_s) for one in plan.experiments]
    return filled(PlanJson, plan, experiments=experiments, **of_jobs)


@shape(None)
class SubmittedJson(TypedDict):
    """One job, as its files describe it."""

    id: Annotated[str, "of its folder"]
    batch_id: Annotated[str | None, "the batch system's; null: it was not accepted, or its submitter was killed"]
    phase: Literal["submitting", "waiting", "running", "stopped", "ended", "over"]
    host: Annotated[str | None, "the node that it started on; null: it has not started"]
    exit_status: Annotated[int | None, "of what ran in it; null: it has not ended by itself"]
    ending: Annotated[str | None, "how the batch system ended it, such as cancelled or timed out; null: it did not"]
    reason: Annotated[str, "what the batch system said about that"]
    folder: str


@shape(None)
class JobsJson(TypedDict):
    """The jobs of a command."""

    schema: Literal["seatrial.jobs/1"]
    system: Annotated[
        str, "where they were submitted to: NAME:PARTITION, of a study with the axis `system` all, joined by commas"
    ]
    jobs: list[SubmittedJson]


def jobs_document(system: str, jobs: Sequence[JobFolder]) -> JobsJson:
    """The document."""
    return JobsJson(schema="seatrial.jobs/1", system=system, jobs=[_job(job) for job in jobs])


def _job(job: JobFolder) -> SubmittedJson:
    start, over = job.start(), job.over()
    return SubmittedJson(
        id=job.id,
        batch_id=job.batch_id,
        phase=job.phase().value,
        host=None if start is None else start.host,
        exit_status=job.exit_status(),
        ending=None if over is None else over.state,
        reason="" if over is None else over.reason,
        folder=str(job.path),
    )
