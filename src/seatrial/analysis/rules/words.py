"""How the rules spell values inside their sentences.

`report.units` is above this room and must not be imported; findings are sentences all the same, and a sentence with
"25276510208 B" in it is one that nobody reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from seatrial.model.figure_result import ExperimentResult, FigureResult
from seatrial.model.parameter import Value
from seatrial.model.units import Unit

_PREFIXES = (
    (1e15, "P"),
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "µ"),
    (1e-9, "n"),
)
_MOST_NAMED = 6


def amount(value: float, unit: Unit) -> str:
    """Three significant digits under a decimal prefix: "57.3 GB/s"."""
    name = {"flop/s": "FLOP/s", "1": ""}.get(unit, unit)
    for scale, prefix in _PREFIXES:
        if abs(value) >= 0.9995 * scale or scale == _PREFIXES[-1][0]:
            return f"{_three_digits(value / scale)} {prefix}{name}".rstrip()
    raise AssertionError("unreachable: the last prefix always fits")


def memory_size(size_B: float) -> str:
    """Binary, as memory is sold: "23.5 GiB"."""
    for exponent, prefix in ((40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")):
        if size_B >= 2**exponent:
            return f"{size_B / 2**exponent:.3g} {prefix}B"
    return f"{size_B:g} B"


def percent(share: float) -> str:
    """A share in percent."""
    return f"{share * 100:.{0 if share >= 0.095 else 1}f} %"


def count(number: int, noun: str, plural: str = "") -> str:
    """Number and noun: "1 core", "2 cores"."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def listed(items: Iterable[str], most: int = _MOST_NAMED) -> str:
    """The first few of them: "a, b, c and 4 more"."""
    named = list(items)
    rest = len(named) - most
    return ", ".join(named[:most]) + (f" and {rest} more" if rest > 0 else "")


def spelled(value: Value) -> str:
    """A parameter's value as it is written on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings(params: Mapping[str, Value]) -> str:
    """Settings as they are written on the command line: "nontemporal=true, threads=2"."""
    return ", ".join(f"{name}={spelled(value)}" for name, value in params.items())


class Names:
    """Names experiments by the settings that tell them apart from the others of their benchmark, and by no more."""

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
        return result.experiment.benchmark + _in_brackets(settings(self._telling(result)))

    def figure(self, result: ExperimentResult, figure: FigureResult) -> str:
        """Such as: "memory.stream triad (threads=2, nontemporal=true)"."""
        told = settings({**self._telling(result), **figure.point})
        return f"{result.experiment.benchmark} {figure.name}" + _in_brackets(told)

    def _telling(self, result: ExperimentResult) -> dict[str, Value]:
        benchmark = result.experiment.benchmark
        return {
            name: value
            for name, value in result.experiment.parameters.items()
            if self._count.get(benchmark, 0) > 1 and len(self._values.get((benchmark, name), ())) > 1
        }


def _three_digits(value: float) -> str:
    size = abs(value)
    return f"{value:.{0 if size >= 99.95 else 1 if size >= 9.995 else 2}f}"


def _in_brackets(text: str) -> str:
    return f" ({text})" if text else ""
