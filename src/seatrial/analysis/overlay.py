"""A machine with measured values for display: facts of kind `measured`, each with its experiment.

The discovered machine is never changed; this makes a copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from seatrial.analysis.device_copies import Seen
from seatrial.analysis.link_rates import copy_facts, measured_fact, with_link_rates
from seatrial.analysis.roles import figures_with
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.benchmark.role import Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.model.results.figure_result import ExperimentResult, FigureResult


class _Shown(Frozen):
    """Role of the figure whose best value is shown as `fact`; `precision` is required if given."""

    fact: str
    role: Role
    precision: str | None = None


_SHOWN = (
    _Shown("memory_bandwidth_measured", Role.MEMORY_BANDWIDTH),
    _Shown("fp64_rate_measured", Role.FMA_RATE, "fp64"),
    _Shown("fp32_rate_measured", Role.FMA_RATE, "fp32"),
    _Shown("dgemm_measured", Role.MATRIX_PRODUCT, "fp64"),
    _Shown("sgemm_measured", Role.MATRIX_PRODUCT, "fp32"),
    _Shown("line_bounce_measured", Role.LINE_BOUNCE),
)


def with_measured(machine: Machine, results: Sequence[ExperimentResult], seen: Seen | None = None) -> Machine:
    """The machine with the best measured rates among its facts; those of a NUMA node or GPU at that device, and those
    of copies at their links. `seen` identifies the devices of GPU figures (see `Trial.seen`).
    """
    machine = with_link_rates(machine, results, seen or {})
    copies = copy_facts(machine, results, seen or {})
    found = [(shown.fact, node, fact) for shown in _SHOWN for node, fact in _best_by_node(shown, results)]
    whole = {name: fact for name, node, fact in found if node is None}
    by_node = {(name, node): fact for name, node, fact in found if node is not None}
    devices = tuple(_device(device, by_node, copies.get(device.id, {})) for device in machine.devices)
    return replace(machine, devices=devices, facts=_with(machine.facts, whole))


def _device(device: Device, by_node: dict[tuple[str, int], Fact], copies: Mapping[str, Fact]) -> Device:
    own = dict(copies)
    if device.kind is DeviceKind.NUMA:
        own |= {name: fact for (name, node), fact in by_node.items() if node == device.numa}
    return replace(device, facts=_with(device.facts, own)) if own else device


def _with(facts: Facts, more: dict[str, Fact]) -> Facts:
    return Facts({**facts.by_name, **{name: (fact,) for name, fact in more.items()}})


def _best_by_node(shown: _Shown, results: Sequence[ExperimentResult]) -> Iterator[tuple[int | None, Fact]]:
    best: dict[int | None, tuple[FigureResult, ExperimentResult]] = {}
    for result, figure in figures_with(results, shown.role):
        parameters = {**result.experiment.parameters, **figure.point}
        if shown.precision not in (None, parameters.get("precision")):
            continue
        number = parameters.get("node")
        node = number if isinstance(number, int) else None
        if node not in best or _is_better(figure, best[node][0]):
            best[node] = (figure, result)
    for node, (figure, result) in best.items():
        yield node, measured_fact(figure, result)


def _is_better(figure: FigureResult, other: FigureResult) -> bool:
    return figure.median > other.median if figure.better is Better.HIGHER else figure.median < other.median
