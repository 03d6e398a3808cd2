"""Figures among results by their role (model/benchmark/role.py)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from seatrial.benchmarks import declared_figure, registry
from seatrial.model.benchmark.role import HostCopies, Role
from seatrial.model.results.figure_result import ExperimentResult, FigureResult

Source = tuple[ExperimentResult, FigureResult]


def role_of(result: ExperimentResult, figure: FigureResult) -> Role | HostCopies | None:
    """The role of a figure of a result; None if its benchmark declares none."""
    declared = declared_figure(result.experiment.benchmark, figure.name)
    return declared.role if declared is not None else None


def figures_with(results: Iterable[ExperimentResult], *roles: Role) -> Iterator[Source]:
    """The figures with one of these roles, each with its experiment, in the order of the results."""
    for result in results:
        for figure in result.figures:
            if role_of(result, figure) in roles:
                yield result, figure


def is_of_devices(result: ExperimentResult) -> bool:
    """Whether an experiment ran on GPUs, or on CPUs used as devices."""
    benchmark = registry().get(result.experiment.benchmark)
    return benchmark is not None and benchmark.program.uses_devices
