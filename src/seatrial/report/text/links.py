"""Links on one screen: the capable, trained and measured rate of each, side by side, with the kind of source; and
copies between GPUs as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from msgspec.structs import replace

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.host_links import PCIE
from seatrial.model.machine import DeviceKind, Link, Machine
from seatrial.report.charts.heat import short
from seatrial.report.text.terminal import PLAIN, Style, clean
from seatrial.report.units import display_scale, show, show_percent

_ASSERTED = ("NCCL", "RCCL")
"""Their topology files may be written by hand; all other sources read the hardware."""
_HEADINGS = ("link", "capable", "trained", "measured", "of capable", "source")
_MOST = 24


def links_text(machine: Machine, style: Style = PLAIN) -> list[str]:
    """A line for each measured link; empty without any. Neighbours with equal rates (eight GPUs) share a line, and so
    do the links from one GPU to switches."""
    measured = _with_bundles(machine, [link for link in machine.links if link.measured_Bps is not None])
    alike = groupby(measured, key=lambda link: replace(link, a="", b=_kind(machine, link.b), source=_source(link)))
    rows = [_HEADINGS, *(_row(list(group)) for _, group in alike)]
    if len(rows) == 1:
        return []
    more = len(rows) - _MOST
    return [style.table(rows[:_MOST], has_head=True), *([f"  and {more} more: see --format json"] if more > 0 else [])]


def _with_bundles(machine: Machine, links: Iterable[Link]) -> list[Link]:
    """The links; those of a GPU to switches as one, with the sum of their rates and counts."""
    switches = {device.id for device in machine.of_kind(DeviceKind.SWITCH)}
    found: list[Link] = []
    places: dict[str, int] = {}
    for link in links:
        ends = (link.a, link.b) if link.b in switches else (link.b, link.a)
        if not {link.a, link.b} & switches:
            found.append(link)
        elif ends[0] in places:
            bundle = found[places[ends[0]]]
            found[places[ends[0]]] = replace(
                bundle,
                capable_Bps=_sum(bundle.capable_Bps, link.capable_Bps),
                trained_Bps=_sum(bundle.trained_Bps, link.trained_Bps),
                measured_Bps=_sum(bundle.measured_Bps, link.measured_Bps),
                count=(bundle.count or 0) + (link.count or 0) or None,
            )
        else:
            places[ends[0]] = len(found)
            found.append(replace(link, a=ends[0], b="switches"))
    return found


def _sum(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a + b


def _row(group: Sequence[Link]) -> tuple[str, ...]:
    first, last = group[0], group[-1]
    ends = _ends(first) + (f" .. {_ends(last)}" if len(group) > 1 else "")
    kind = "pcie, upstream" if first.kind == PCIE else first.kind
    kind += "" if first.count is None else f" x {first.count}"
    share = first.measured_Bps / first.capable_Bps if first.measured_Bps and first.capable_Bps else None
    rates = (show(rate, "B/s") for rate in (first.capable_Bps, first.trained_Bps, first.measured_Bps))
    return clean(f"{ends} ({kind})"), *rates, "unknown" if share is None else show_percent(share), _source(first)


def _kind(machine: Machine, end: str) -> str:
    device = machine.device(end)
    return "" if device is None else device.kind.value


def _ends(link: Link) -> str:
    """Both ends; of PCIe only the lower one, which identifies the link."""
    return link.b if link.kind == PCIE else f"{link.a} - {link.b}"


def _source(link: Link) -> str:
    """The kind of a link's source."""
    return "asserted" if link.source.startswith(_ASSERTED) else "discovered"


def peers_title(rates: PeerRates) -> str:
    """The title of `peers_text`, with the unit."""
    unit = display_scale(_medians(rates), next(iter(rates.values.values())).unit)[1]
    return f"{rates.title}, in {unit}, from row to column{'' if rates.is_direct else ', without peer access'}"


def peers_text(rates: PeerRates) -> list[str]:
    """A row for each source, a column for each target."""
    scale, _ = display_scale(_medians(rates), next(iter(rates.values.values())).unit)
    labels = [clean(device.label) for device in rates.devices]
    cells = {place: short(figure.median / scale) for place, figure in rates.values.items()}
    width = max(map(len, (*cells.values(), *labels)))
    lead = max(map(len, labels))
    lines = [f"  {'':<{lead}}  " + "  ".join(f"{label:>{width}}" for label in labels)]
    for row, label in enumerate(labels):
        values = (cells.get((row, column), "-") for column in range(len(labels)))
        lines.append(f"  {label:<{lead}}  " + "  ".join(f"{value:>{width}}" for value in values))
    return lines


def _medians(rates: PeerRates) -> list[float]:
    """Of pairs of two devices, if there are any: copies within one device may be a hundred times as fast."""
    others = [figure.median for (row, column), figure in rates.values.items() if row != column]
    return others or [figure.median for figure in rates.values.values()]
