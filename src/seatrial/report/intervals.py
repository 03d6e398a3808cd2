"""Words beside a figure or a path: its interval, where its limit is from, what its class means."""

from __future__ import annotations

from collections.abc import Iterable

from seatrial.model.benchmark.benchmark import Attainable
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Path
from seatrial.model.results.figure_result import FigureResult
from seatrial.stats.interval import MINIMUM_REPEATS


def no_interval_words(n_repeats: int) -> str:
    """Why a figure with so many repeats has no interval."""
    if n_repeats < MINIMUM_REPEATS:
        return f"needs {MINIMUM_REPEATS} repeats"
    return "none: repeats depend on each other"


_VISIBLE = 1e-3
"""The resolution from which it is mentioned."""


def widening_words(figure: FigureResult) -> str:
    """What widened the interval: correlated repeats, and a coarse timer or few printed digits; "" if nothing did."""
    words = []
    if figure.dependence:
        then = "no interval" if figure.ci95 is None else "wider interval"
        words.append(f"successive repeats are correlated (r = {figure.dependence:.2f}): {then}")
    if figure.resolution >= _VISIBLE:
        words.append(f"rounded to {100.0 * figure.resolution:.2g} % by the timer or the printed digits")
    return "; ".join(words)


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
