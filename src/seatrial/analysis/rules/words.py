"""How findings name experiments. Numbers are formatted by `model.spelling`, as on the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.parameter import Value
from seatrial.model.spelling import settings

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
