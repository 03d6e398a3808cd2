"""What benchmarks of message passing share: the check of wrong bytes, the figure of bandwidth, the limit of links."""

from __future__ import annotations

from seatrial.benchmarks.figures import rate, zero
from seatrial.model.benchmark.benchmark import Check, Figure, LimitOf
from seatrial.model.benchmark.parameter import Params, whole
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import DeviceKind, Machine

WRONG_BYTES = Check("wrong_bytes", "bytes that arrived wrong", zero)


def bandwidth(work: str, limit: LimitOf | None = None) -> Figure:
    """The figure `bandwidth`, of samples of that series; `work` says which bytes are counted."""
    return rate("bandwidth", "B/s", work, limit=limit)


def links_of_node(machine: Machine, params: Params, links: float = 1.0, times: str = "") -> Limit:
    """The rate of all adapters of a node together, per direction, times `links` (the nodes that send at once, described
    by `times`); unknown on one host, or if the rate of any adapter is unknown."""
    if whole(params["nodes"]) == 1:
        return Limit.unknown("B/s", "ranks of one host exchange messages through memory, not over a link")
    adapters = machine.of_kind(DeviceKind.NIC)
    rates = [adapter.facts.number("rate") for adapter in adapters]
    known = [rate for rate in rates if rate is not None]
    if not known or len(known) < len(rates):
        return Limit.unknown("B/s", "the rates of this node's adapters are not all known")
    names = " + ".join(f"{adapter.name} {rate / 1e9:.4g} GB/s" for adapter, rate in zip(adapters, known, strict=True))
    return Limit(sum(known) * links, "B/s", f"{names}{times}", Basis.PHYSICAL)
