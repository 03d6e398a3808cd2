"""`seatrial.plan/1`: what a study would run, as one JSON object."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.environment_choice import EnvironmentChoice
from seatrial.model.study import Study
from seatrial.plan.planned_study import PlannedExperiment, PlannedStudy


def plan_document(plan: PlannedStudy) -> dict[str, Any]:
    """The object that CONTRACT names; experiments in the order of the study.

    `estimate_s` of an experiment is the expected time of its repeats up to the first planned look (`repeats` of them),
    0 where it cannot run here; that of the plan is their sum, at most the budget. Beyond the contract: the study with
    its axes, what cannot run and why, the groups that are compared, and `least_s`, the time of six repeats of each.
    """
    return {
        "schema": "seatrial.plan/1",
        "study": plan.study.name,
        "question": plan.study.question,
        "axes": [{"name": axis.name, "values": [_json(value) for value in axis.values]} for axis in plan.study.axes],
        "combinations": plan.combinations,
        "experiments": [_experiment(experiment, plan.first_look) for experiment in plan.experiments],
        "count": len(plan.experiments),
        "repeats": plan.first_look,
        "estimate_s": plan.estimate_s,
        "least_s": plan.least_s,
        "budget_s": plan.study.repeat.budget_s,
        "compare": _compare(plan),
        "scaling": _scaling(plan.study),
        "best_of": _best_of(plan.study),
        "probes": list(plan.study.probes),
    }


def _experiment(planned: PlannedExperiment, repeats: int) -> dict[str, Any]:
    return {
        "id": planned.id,
        "benchmark": planned.experiment.benchmark,
        "parameters": _values(planned.experiment.parameters),
        "environment": planned.experiment.environment or None,
        "chosen": _chosen(planned.point.environment),
        "given": _values(planned.point.given),
        "state": "ready" if planned.refusal is None else planned.refusal.state.value,
        "reason": None if planned.refusal is None else planned.refusal.reason,
        "estimate_s": repeats * planned.repeat_s,
    }


def _chosen(choice: EnvironmentChoice) -> dict[str, Any]:
    return {
        "compiler": choice.compiler,
        "flags": list(choice.flags),
        "mpi": choice.mpi,
        "settings": dict(choice.mpi_settings),
        "variables": dict(choice.variables),
    }


def _values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _json(value) for name, value in values.items()}


def _json(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _compare(plan: PlannedStudy) -> dict[str, Any] | None:
    compare = plan.study.compare
    if compare is None:
        return None
    return {
        "along": compare.along,
        "baseline": _json(compare.baseline),
        "margin": compare.margin,
        "figures": list(compare.figures),
        "groups": [[experiment.id for experiment in group] for group in plan.compared],
    }


def _scaling(study: Study) -> dict[str, Any] | None:
    return None if study.scaling is None else {"kind": study.scaling.kind, "along": study.scaling.along}


def _best_of(study: Study) -> dict[str, Any] | None:
    return None if study.best_of is None else {"over": list(study.best_of.over), "figure": study.best_of.figure}
