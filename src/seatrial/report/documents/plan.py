"""`seatrial.plan/1`: what a study would run, as one JSON object."""

from __future__ import annotations

from typing import Annotated, Any, Literal, NotRequired, TypedDict

from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.json_shape import (
    ABSENT,
    GIVEN,
    OPEN,
    From,
    Keywords,
    NonNegative,
    Positive,
    Setting,
    Text,
    filled,
    shape,
    when,
)
from seatrial.model.study import Axis, BestOf, Scaling
from seatrial.plan.planned_jobs import PlannedJob, PlannedJobs
from seatrial.plan.planned_study import LinkedProgram, PlannedExperiment, PlannedStudy
from seatrial.plan.planned_trial import PlannedTrial
from seatrial.plan.study_points import SameSides


@shape(Axis)
class AxisJson(TypedDict):
    """A parameter, or a part of the environment, that the study varies."""

    name: str
    values: Annotated[list[Setting | None], Keywords(minItems=1)]


@shape(EnvironmentChoice)
class ChosenJson(TypedDict):
    """The parts of the environment that the study sets."""

    compiler: str | None
    flags: list[str]
    mpi: Annotated[str | None, "null: the first one found"]
    settings: Annotated[dict[str, str], From("mpi_settings"), "of the MPI library, such as collective_algorithm"]
    container: Annotated[str | None, "the image, or container of the site, that programs run in; null: none"]
    container_runtime: Annotated[str | None, "null: the first one that starts the image"]
    container_mpi: Annotated[str | None, "where the launcher of ranks is; null: where ranks can meet"]
    container_mounts: Annotated[str | None, "what is mounted besides: SOURCE:INSIDE[:ro], with + between several"]
    container_devices: Annotated[str | None, "the devices that it gets, with + between several"]
    container_build: Annotated[str | None, "where programs are built; null: outside, if the image's C library fits"]
    vm: Annotated[str | None, "the guest that programs run in; null: this machine"]
    variables: Annotated[dict[str, str | None], "null: unset"]


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
    chosen: NotRequired[Annotated[ChosenJson, From("point.environment")]]
    given: NotRequired[
        Annotated[dict[str, Setting | None], From("point.given"), "the values of the axes as written in the study"]
    ]
    state: NotRequired[
        Annotated[
            Literal["ready", "skipped", "unsupported", "failed"],
            From(lambda planned: "ready" if planned.refusal is None else planned.refusal.state.value),
        ]
    ]
    reason: NotRequired[Annotated[str | None, From("refusal.reason")]]
    estimate_s: Annotated[NonNegative, GIVEN, "time of its repeats up to the first planned look; 0 if it cannot run"]


@shape(PlannedJob)
class JobJson(TypedDict):
    """One job of a batch system."""

    system: Annotated[str, "where it is submitted to: NAME:PARTITION"]
    benchmarks: list[str]
    nodes: Annotated[int, Keywords(minimum=1)]
    expected_s: Annotated[NonNegative, "its time with few repeats"]
    limit_s: Annotated[Positive, "its time limit"]
    node_hours: NonNegative
    script: Annotated[str, "what is submitted, with JOB in place of the job's id"]


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


@shape(Scaling)
class ScaledJson(TypedDict):
    """How figures change with a numeric axis."""

    kind: Literal["strong", "weak"]
    along: str


@shape(BestOf)
class SweepJson(TypedDict):
    """A sweep for the best setting."""

    over: list[str]
    figure: str


@shape(LinkedProgram)
class LinkedJson(TypedDict):
    """An installed program, and the MPI library that it is linked with."""

    benchmark: str
    program: Annotated[Text, "its path"]
    library: Annotated[Text, "the name in the program's file"]
    path: Annotated[str, "where the loader finds the library; empty: it does not"]
    mpi: Annotated[str | None, "its name in environment.mpi; null: not a known library"]


@shape(SameSides)
class SameJson(TypedDict):
    """Values of the compared axis that are one experiment on this machine, and so not compared."""

    benchmark: str
    values: list[Setting | None]


@shape(PlannedStudy, OPEN)
class PlanJson(TypedDict):
    """What a study would run: its experiments in the order of the study."""

    schema: Literal["seatrial.plan/1"]
    study: NotRequired[Annotated[str, Keywords(pattern="^[A-Za-z0-9_-]+$"), From("study.name")]]
    question: NotRequired[Annotated[Text, From("study.question")]]
    axes: NotRequired[Annotated[list[AxisJson], From("study.axes")]]
    combinations: NotRequired[
        Annotated[int, Keywords(minimum=1), "combinations of the axes, before duplicates are merged"]
    ]
    experiments: Annotated[list[PlannedJson], Keywords(minItems=1), GIVEN]
    count: Annotated[int, Keywords(minimum=1), From(lambda plan: len(plan.experiments))]
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
    same: NotRequired[list[SameJson]]
    linked: NotRequired[list[LinkedJson]]
    scaling: NotRequired[Annotated[ScaledJson | None, From("study.scaling")]]
    best_of: NotRequired[Annotated[SweepJson | None, From("study.best_of")]]
    probes: NotRequired[Annotated[list[Literal["mpi", "io", "power"]], From("study.probes")]]

    system: NotRequired[
        Annotated[
            str,
            GIVEN,
            "where its jobs are submitted to: NAME:PARTITION; of a study with the axis `system` all, joined by commas",
        ]
    ]
    jobs: NotRequired[Annotated[list[JobJson], GIVEN]]
    node_hours: NotRequired[Annotated[NonNegative, GIVEN, "the time limits of all jobs, times their nodes"]]


_OF_STUDIES = (
    *("study", "question", "axes", "combinations", "repeats", "least_s", "budget_s"),
    *("compare", "same", "linked", "scaling", "best_of", "probes"),
)
"""Keys that the plan of a trial does not have."""


def plan_document(plan: PlannedStudy | PlannedTrial, jobs: PlannedJobs | None = None) -> PlanJson:
    """The document of CONTRACT. In addition to the contract: the study with its axes, the experiments that cannot run
    and why, the groups that are compared, the time of six repeats of each, and the jobs of a batch system."""
    of_jobs: dict[str, Any] = dict.fromkeys(("system", "jobs", "node_hours"), ABSENT)
    if jobs is not None:
        own = [filled(JobJson, job) for job in jobs.jobs]
        of_jobs = {"system": jobs.system, "jobs": own, "node_hours": jobs.node_hours}
    if isinstance(plan, PlannedTrial):
        planned = [filled(PlannedJson, one, estimate_s=plan.estimate_of(one)) for one in plan.experiments]
        absent = dict.fromkeys(_OF_STUDIES, ABSENT)
        return filled(PlanJson, plan, experiments=planned, **absent, **of_jobs)
    experiments = [filled(PlannedJson, one, estimate_s=plan.first_look * one.repeat_s) for one in plan.experiments]
    return filled(PlanJson, plan, experiments=experiments, **of_jobs)
