"""Links on one screen: what each is capable of, trained to and was measured at, side by side, and who says so; and
copies between GPUs as a matrix of numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import groupby

from seatrial.analysis.device_copies import PeerRates
from seatrial.model.host_links import PCIE
from seatrial.model.machine import DeviceKind, Link, Machine
from seatrial.report.charts.heat import short
from seatrial.report.text.terminal import PLAIN, Style, clean
from seatrial.report.units import display_scale, show, show_percent

_ASSERTED = ("NCCL", "RCCL")
"""Their topology files may be written by hand; all other sources read the hardware."""
_HEADINGS = ("link", "capable", "trained", "measured", "of capable", "link told")
_MOST = 24


def links_text(machine: Machine, style: Style = PLAIN) -> list[str]:
    """A line for each link that was measured; none where no link was. Neighbours that are alike in all
    of that (eight GPUs) stand in one line, and so do the links from one GPU to switches."""
    measured = _with_bundles(machine, [link for link in machine.links if link.measured_Bps is not None])
    alike = groupby(measured, key=lambda link: replace(link, a="", b=_kind(machine, link.b), source=_told(link)))
    rows = [_HEADINGS, *(_row(list(group)) for _, group in alike)]
    if len(rows) == 1:
        return []
    more = len(rows) - _MOST
    return [style.table(rows[:_MOST], has_head=True), *([f"  and {more} more: see --format json"] if more > 0 else [])]


def _with_bundles(machine: Machine, links: Iterable[Link]) -> list[Link]:
    """The links, those of a GPU to switches as one, whose rates and count are of all of them."""
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
    kind = "pcie, upwards" if first.kind == PCIE else first.kind
    kind += "" if first.count is None else f" x {first.count}"
    share = first.measured_Bps / first.capable_Bps if first.measured_Bps and first.capable_Bps else None
    rates = (show(rate, "B/s") for rate in (first.capable_Bps, first.trained_Bps, first.measured_Bps))
    return clean(f"{ends} ({kind})"), *rates, "unknown" if share is None else show_percent(share), _told(first)


def _kind(machine: Machine, end: str) -> str:
    device = machine.device(end)
    return "" if device is None else device.kind.value


def _ends(link: Link) -> str:
    """Both ends; of PCIe the lower one, which says it all."""
    return link.b if link.kind == PCIE else f"{link.a} - {link.b}"


def _told(link: Link) -> str:
    """In what capacity a link's source speaks."""
    return "asserted" if link.source.startswith(_ASSERTED) else "discovered"


def peers_title(rates: PeerRates) -> str:
    """What `peers_text` shows, with its unit."""
    unit = display_scale(_medians(rates), next(iter(rates.values.values())).unit)[1]
    return f"{rates.title}, in {unit}, from row to column{'' if rates.is_direct else ', not directly'}"


def peers_text(rates: PeerRates) -> list[str]:
    """A row for each source, a column for each target."""
    scale, _ = display_scale(_medians(rates), next(iter(rates.values.values())).unit)
    labels = [clean(device.label) for device in rates.devices]
    cells = {place: short(figure.median / scale) for place, figure in rates.values.items()}
    width = max(map(len, (*cells.values(), *labels)))
    lead = max(map(len, labels))
    lines = [f"  {'':<{lead}}  " + "  ".join(f"{label:>{width}}" for label in labels)]
    for row, label in enumerate(labels):
        told = (cells.get((row, column), "-") for column in range(len(labels)))
        lines.append(f"  {label:<{lead}}  " + "  ".join(f"{cell:>{width}}" for cell in told))
    return lines


def _medians(rates: PeerRates) -> list[float]:
    """Of pairs of two devices, where there are any: what one reaches within itself may be a hundred times that."""
    others = [figure.median for (row, column), figure in rates.values.items() if row != column]
    return others or [figure.median for figure in rates.values.values()]
