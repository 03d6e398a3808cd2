"""Words beside a figure or a path: its interval, where its limit is from, what its class means."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from enum import Enum

from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.expectation import UNSTEADY_WIDTH
from seatrial.model.benchmark.benchmark import Attainable
from seatrial.model.frozen import Frozen
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Path
from seatrial.model.results.figure_result import ExperimentResult, FigureResult, StatedRepeats
from seatrial.model.results.no_cpu import NOT_JUDGED
from seatrial.model.spelling import count, show_percent
from seatrial.stats.interval import MINIMUM_REPEATS


def no_interval_words(n_repeats: int) -> str:
    """Why a figure with so many repeats has no interval."""
    if n_repeats < MINIMUM_REPEATS:
        return f"needs {MINIMUM_REPEATS} repeats"
    return "none: repeats depend on each other"


def no_interval_of(figure: FigureResult) -> str:
    """Why a figure has no interval, in a few words for a cell."""
    is_stated = isinstance(figure.repeats, StatedRepeats)
    return "none: its source states none" if is_stated else no_interval_words(figure.n_repeats)


def share_words(result: ExperimentResult, figure: FigureResult) -> str:
    """The share of its limit that a figure reaches; that it is not judged, if its programs had no CPU; "" without a
    share."""
    if figure.fraction_of_limit is None:
        return ""
    return show_percent(figure.fraction_of_limit) if result.no_cpu is None else NOT_JUDGED


def of_limit_words(result: ExperimentResult, figure: FigureResult) -> str:
    """Such as "82 % of the limit"; "not judged" if its programs had no CPU; "" without a share."""
    share = share_words(result, figure)
    return share if not share or result.no_cpu is not None else f"{share} of the limit"


_VISIBLE = 1e-3
"""The resolution from which it is mentioned."""
_FEWEST_TO_SHARE = 3
"""Fewer figures keep their remarks beside them."""


class RemarkKind(Enum):
    """What may qualify a figure."""

    UNSTEADY = "unsteady"
    FEW = "few"
    CORRELATED = "correlated"
    ROUNDED = "rounded"
    SENSOR = "sensor"


_LONG = frozenset({RemarkKind.CORRELATED, RemarkKind.ROUNDED, RemarkKind.SENSOR})


class Remark(Frozen):
    """What qualifies a figure, with the number behind it (the correlation, the resolution in percent)."""

    kind: RemarkKind
    amount: float = 0.0


def remarks(figure: FigureResult) -> list[Remark]:
    """Why a figure has no interval or a wide one: few or correlated repeats, a coarse timer or few printed digits."""
    found = []
    if figure.dependence:
        found.append(Remark(RemarkKind.CORRELATED, figure.dependence))
    elif figure.ci95 is None and figure.n_repeats < MINIMUM_REPEATS:
        found.append(Remark(RemarkKind.FEW, figure.n_repeats))
    if figure.error is not None:
        found.append(Remark(RemarkKind.SENSOR, 50.0 * figure.resolution))
    elif figure.resolution >= _VISIBLE:
        found.append(Remark(RemarkKind.ROUNDED, 100.0 * figure.resolution))
    return found


def remark_words(kind: RemarkKind, amounts: Sequence[float]) -> str:
    """A remark on one figure, or on several."""
    if kind is RemarkKind.UNSTEADY:
        return (
            f"unsteady: an interval wider than {show_percent(UNSTEADY_WIDTH)} of the median, or repeats on two levels"
        )
    if kind is RemarkKind.FEW:
        return f"no interval, {no_interval_words(int(min(amounts)))}"
    form = "{:.2f}" if kind is RemarkKind.CORRELATED else "{:.2g}"
    ends = list(dict.fromkeys(form.format(end) for end in (min(amounts), max(amounts))))
    if kind is RemarkKind.SENSOR:
        return f"the sensor's error is up to {' to '.join(ends)} %, which the interval holds"
    if kind is RemarkKind.ROUNDED:
        return f"rounded to {' to '.join(ends)} % by the timer or the printed digits"
    return f"successive repeats are correlated (r = {' to '.join(ends)}): wider interval or none"


def widening_words(figure: FigureResult, said: Container[RemarkKind] = ()) -> str:
    """What widened the interval, except what was already `said` of several figures; "" if nothing did."""
    found = (one for one in remarks(figure) if one.kind is not RemarkKind.FEW and one.kind not in said)
    return "; ".join(remark_words(one.kind, [one.amount]) for one in found)


def shared_remarks(of: Sequence[Sequence[Remark]], fewest: int = _FEWEST_TO_SHARE) -> dict[RemarkKind, str]:
    """The remarks that several figures share, each as one sentence without a full stop, so that it is said once: "All
    12 figures: rounded to 1 % by the timer or the printed digits"; `of` are the remarks of each figure. Long ones are
    said so from `fewest` figures on."""
    found = grouped((one.kind, one.amount) for figure in of for one in figure)
    total = len(of)
    return {
        kind: f"{'All' if len(amounts) == total > 1 else f'{len(amounts)} of'} {count(total, 'figure')}: "
        f"{remark_words(kind, amounts)}"
        for kind, amounts in found.items()
        if len(amounts) >= (fewest if kind in _LONG else _FEWEST_TO_SHARE)
    }


def derivation(limit: Limit, attainable: Attainable) -> str:
    """Such as: "12 populated channels x 8 B x ...; plain stores: at most 75 % of it can be counted, 24 B of 32 B"."""
    known = limit.value is not None and attainable.why
    return f"{limit.derivation}; {attainable.why}" if known else limit.derivation


UNKNOWN = "?"
"""For a path whose class is unknown."""

MEANINGS = {
    "X": "itself",
    "NV": "number of NVLinks",
    "C2C": "NVLink chip-to-chip",
    "XGMI": "number of XGMI links (Infinity Fabric)",
    "PIX": "at most one PCIe switch",
    "PXB": "several PCIe switches, no host bridge",
    "PHB": "through a PCIe host bridge",
    "NODE": "through host bridges of one NUMA node",
    "SYS": "across NUMA nodes",
    "PCI": "over PCIe",
    UNKNOWN: "unknown",
}
"""Class -> meaning, from near to far."""

COUNTED = frozenset({"NV", "XGMI"})
"""Classes printed with the number of links."""
DIRECT = frozenset({"NV", "C2C", "XGMI"})
NEAR = frozenset({"PIX", "PXB"})
FAR = frozenset({"SYS"})


def path_cells(names: Iterable[str], paths: Iterable[Path]) -> dict[tuple[str, str], tuple[str, str]]:
    """Two devices -> (class with the number of links, class) for the cell of a matrix; "X" for one with itself."""
    found = {(name, name): ("X", "X") for name in names}
    for path in paths:
        kind = path.path_class or UNKNOWN
        number = path.links if kind in COUNTED and path.links is not None else ""
        for pair in ((path.a, path.b), (path.b, path.a)):
            found.setdefault(pair, (f"{kind}{number}", kind))
    return found
