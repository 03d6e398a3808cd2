"""Direct links between processors (NVLink, XGMI): a bank of switches, or edges between processors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TypeVar

from seatrial.analysis.device_copies import PeerRates
from seatrial.analysis.direct_links import DirectLinks, Missing, direct_links, link_faults
from seatrial.analysis.rules.gpu_links import observed
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.machine.machine import Device, DeviceKind, Link, Machine, Path
from seatrial.model.spelling import arrow_meaning, count, show, show_percent, show_range
from seatrial.report.charts import heat
from seatrial.report.drawing.attached import PEER_KINDS
from seatrial.report.drawing.geometry import HEAD_SIZE, Drawing, Text, clean, several, text_width
from seatrial.report.drawing.place_layout import MARGIN
from seatrial.report.drawing.scene import Bank, Grade, Note, PeerEdge, Peers, Tone, rate_of, speed_of

_NAMES = {"nvlink": "NVLink", "xgmi": "XGMI", "c2c": "C2C"}
_CLASSES = {"NV": "nvlink", "XGMI": "xgmi", "C2C": "c2c"}
_MOST_EDGES = 36

Pair = tuple[str, str]
_T = TypeVar("_T")


def peers_of(machine: Machine, *, has_measured: bool = False) -> Peers | None:
    """The direct links between GPUs; None if there are none known."""
    gpus = machine.of_kind(DeviceKind.GPU)
    switches = machine.of_kind(DeviceKind.SWITCH)
    links = [link for link in machine.links if link.kind in PEER_KINDS]
    pairs, kind = _pairs(machine, links, gpus)
    to_switch = _to_switches(links, gpus, switches)
    name = _NAMES.get(kind, "NVLink")
    if len(gpus) < 2:
        return None
    if to_switch:
        return Peers(name, bank=_reported_bank(name, switches, to_switch, gpus))
    if switches:
        return Peers(name, bank=_bank(name, switches, pairs, gpus))
    if not pairs:
        return None
    known = direct_links(machine)
    if known.is_switched:
        return Peers(name, bank=_inferred_bank(name, known))
    if len(pairs) > _MOST_EDGES:
        return Peers(name, bank=_mesh(name, _even(pairs, gpus), pairs, gpus))
    edges = []
    for pair, number_of in pairs.items():
        rate = rate_of([link for link in links if {link.a, link.b} == set(pair)], has_measured=has_measured)
        edges.append(PeerEdge(*pair, number_of, rate.grade, rate.text))
    only = _only(edge.count for edge in edges)
    note = f"each {name} edge: {count(only, 'link')}" if only is not None else ""
    return Peers(name, edges=tuple(edges), note=note)


def _only(values: Iterable[_T]) -> _T | None:
    """The value that all have; None if they differ."""
    distinct = set(values)
    return distinct.pop() if len(distinct) == 1 else None


def notes_of(machine: Machine) -> dict[str, list[Note]]:
    """Device -> lines on its links to CPUs (NVLink-C2C, NVLink on POWER), and on links that it misses."""
    notes = _missing_notes(machine)
    for link in machine.links:
        ends = [machine.device(end) for end in (link.a, link.b)]
        if link.kind not in PEER_KINDS or None in ends:
            continue
        known = [end for end in ends if end is not None]
        gpus = [end for end in known if end.kind is DeviceKind.GPU]
        others = [end for end in known if end.kind not in (DeviceKind.GPU, DeviceKind.SWITCH)]
        if len(gpus) == 1 and len(others) == 1:
            rate = rate_of([link], has_measured=False)
            number = f" {count(link.count, 'link')}" if link.count is not None else ""
            text = f"{_NAMES[link.kind]}{number} to {clean(others[0].id)}"
            low = rate.grade in (Grade.LOW, Grade.POOR)
            speed = f": {rate.text}" if rate.text else ""
            notes.setdefault(gpus[0].id, []).append(Note(text + speed, Tone.WARNING if low else Tone.PLAIN))
    return notes


def warnings_of(machine: Machine) -> tuple[Note, ...]:
    """Statements on direct links that are missing between GPUs."""
    links = direct_links(machine)
    return tuple(
        Note(observed(links, fault), Tone.ALARM if fault.is_certain else Tone.WARNING) for fault in link_faults(links)
    )


def _missing_notes(machine: Machine) -> dict[str, list[Note]]:
    links = direct_links(machine)
    notes: dict[str, list[Note]] = {}
    for fault in link_faults(links):
        tone = Tone.ALARM if fault.is_certain else Tone.WARNING
        for gpu, number_of in fault.gpus.items():
            if fault.missing is Missing.ALL:
                notes[gpu] = [Note(f"no {links.name}", tone)]
            elif fault.missing is Missing.SOME and links.is_counted:
                notes[gpu] = [Note(f"{number_of} of {count(fault.usual, links.name)}", tone)]
    return notes


def _pairs(machine: Machine, links: Sequence[Link], gpus: Sequence[Device]) -> tuple[dict[Pair, int | None], str]:
    """(GPU pair in device order -> number of links, the most frequent kind)."""
    order = {gpu.id: position for position, gpu in enumerate(gpus)}

    def pair_of(one: Link | Path) -> Pair | None:
        if one.a not in order or one.b not in order or one.a == one.b:
            return None
        return (one.a, one.b) if order[one.a] < order[one.b] else (one.b, one.a)

    found: dict[Pair, int | None] = {}
    kinds: list[str] = [link.kind for link in links]
    for link in links:
        if (pair := pair_of(link)) is not None:
            found.setdefault(pair, link.count)
    for path in machine.paths:
        if path.path_class in _CLASSES and (pair := pair_of(path)) is not None:
            if found.get(pair) is None:
                found[pair] = path.links
            kinds.append(_CLASSES[path.path_class])
    kind = max(sorted(set(kinds)), key=kinds.count, default="nvlink")
    return {pair: found[pair] for pair in sorted(found, key=lambda p: (order[p[0]], order[p[1]]))}, kind


def _to_switches(links: Sequence[Link], gpus: Sequence[Device], switches: Sequence[Device]) -> dict[str, list[Link]]:
    """GPU -> its links to switches."""
    ids, ends = {gpu.id for gpu in gpus}, {switch.id for switch in switches}
    found: dict[str, list[Link]] = {}
    for link in links:
        if link.a in ids and link.b in ends:
            found.setdefault(link.a, []).append(link)
        elif link.b in ids and link.a in ends:
            found.setdefault(link.b, []).append(link)
    return found


def _reported_bank(
    name: str, switches: Sequence[Device], links: Mapping[str, list[Link]], gpus: Sequence[Device]
) -> Bank:
    numbers = {gpu.id: _sum([link.count for link in links[gpu.id]]) for gpu in gpus if gpu.id in links}
    counts = tuple((gpu, "" if number is None else count(number, "link")) for gpu, number in numbers.items())
    if None in numbers.values():
        return _of_switches(name, switches, [Note("number of links unknown", Tone.MUTED)], counts)
    even = _only(numbers.values())
    rate = _only(_sum([speed_of(link) for link in of_gpu]) for of_gpu in links.values())
    text = f"{count(even, 'link')} from each GPU" if even is not None else "links differ between GPUs"
    each = f", {show(rate, 'B/s')} per direction in total" if rate and even is not None else ""
    return _of_switches(name, switches, [Note(text + each), *_measured_lines(links)], counts)


def _of_switches(
    name: str,
    switches: Sequence[Device],
    lines: Sequence[Note],
    counts: tuple[tuple[str, str], ...],
    *,
    assumed: bool = False,
) -> Bank:
    """The bank of switches that a source reports."""
    ids = tuple(switch.id for switch in switches)
    title = f"{len(ids)} \N{MULTIPLICATION SIGN} NVSwitch" if len(ids) > 1 else "NVSwitch"
    return Bank(title, tuple(lines), counts, len(ids), ids, assumed, f"{name} through {several(ids)}")


def _measured_lines(links: Mapping[str, list[Link]]) -> list[Note]:
    """The measured rates of GPUs over their links to switches, lowest to highest; empty if not measured."""
    pairs = [
        (measured, _sum([speed_of(link) for link in of_gpu]))
        for of_gpu in links.values()
        if (measured := _sum([link.measured_Bps for link in of_gpu])) is not None
    ]
    if not pairs:
        return []
    least, most = min(pairs, key=lambda pair: pair[0]), max(pair[0] for pair in pairs)
    grade = rate_of([Link("", "", "nvlink", least[1], least[1], "", least[0])], has_measured=True).grade
    tone = {Grade.FAIR: Tone.WARNING, Grade.POOR: Tone.ALARM}.get(grade, Tone.PLAIN)
    rates = show(most, "B/s") if least[0] == most else show_range(least[0], most, "B/s")
    share = f", {show_percent(least[0] / least[1])} of that" if least[1] else ""
    return [Note(f"measured {rates} from one GPU to another{share}", tone)]


def _sum(numbers: Sequence[float | None]) -> float | None:
    """The sum; None if a number is unknown."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _bank(name: str, switches: Sequence[Device], pairs: Mapping[Pair, int | None], gpus: Sequence[Device]) -> Bank:
    """Switches with unknown links; the numbers of links per pair may be known from a matrix."""
    members = _members(pairs) if pairs else {gpu.id for gpu in gpus}
    even = _even(pairs, gpus)
    if not pairs:
        line = Note(f"{name}s unknown: drawn as if each GPU were connected", Tone.MUTED)
    elif even is not None:
        line = Note(_every_pair(even, len(members), len(gpus)))
    else:
        line = Note("pairs of GPUs differ in their links", Tone.WARNING)
    label = count(even, "link") if even else ""
    counts = tuple((gpu.id, label) for gpu in gpus if gpu.id in members)
    return _of_switches(name, switches, [line], counts, assumed=not pairs)


def _inferred_bank(name: str, links: DirectLinks) -> Bank:
    totals = links.totals
    counts = tuple((gpu, count(total, "link") if links.is_counted else "") for gpu, total in totals.items())
    each = _only(links.pairs.get(pair, 0) for pair in combinations(totals, 2))
    if each:
        what = Note(_every_pair(each, len(totals), len(links.gpus)))
    else:
        low, high = min(totals.values()), max(totals.values())
        numbers = count(high, "link") if low == high else f"{low} to {count(high, 'link')}"
        what = Note(f"{numbers} from each GPU; pairs differ", Tone.WARNING)
    lines = (
        what,
        Note("switches not reported, but a GPU has too few links to connect to the others directly", Tone.MUTED),
    )
    return Bank("NVSwitches" if name == "NVLink" else f"{name} switches", lines, counts, assumed=True,
                hint=f"{name} switches, inferred: {what.text}")  # fmt: skip


def _mesh(name: str, even: int | None, pairs: Mapping[Pair, int | None], gpus: Sequence[Device]) -> Bank:
    members = _members(pairs)
    full = len(pairs) == len(members) * (len(members) - 1) // 2
    what = f"{'full mesh' if full else 'mesh'}: {len(pairs)} pairs connected directly"
    if even is not None:
        what += f", {count(even, 'link')} each"
    else:
        known = any(links is not None for links in pairs.values())
        what += "; see the matrix for their links" if known else "; number of links unknown"
    return Bank(f"{name} mesh", (Note(what),), tuple((gpu.id, "") for gpu in gpus if gpu.id in members), hint=what)


def _even(pairs: Mapping[Pair, int | None], gpus: Sequence[Device]) -> int | None:
    """The number of links per pair if it is equal for all pairs of linked GPUs, else None."""
    members = [gpu.id for gpu in gpus if gpu.id in _members(pairs)]
    return _only(pairs.get(pair) for pair in combinations(members, 2)) if len(members) > 2 else None


def _members(pairs: Mapping[Pair, int | None]) -> set[str]:
    return {end for pair in pairs for end in pair}


def _every_pair(each: int, linked: int, gpus: int) -> str:
    which = "GPUs" if linked == gpus else f"{linked} of the {gpus} GPUs"
    return f"{count(each, 'link')} between every pair of {which}"


_WIDEST = 1900.0
"""The maximum width of a drawing with the map on its right; else the map is below."""
_GAP = 30.0
_HEAD = 44.0
_LABEL_ROOM = 68.0
_LABEL = 11.5
_LEFT, _ABOVE, _BELOW = 76.0, 40.0, 54.0
"""The space that `Matrix` leaves around its square for labels and the colour legend."""


def with_peer_map(picture: Drawing, peers: Sequence[PeerRates]) -> tuple[str, str]:
    """(the map as SVG, its description); enlarges the picture for it. Both are empty if nothing was measured."""
    rates = _shown(peers)
    if rates is None:
        return "", ""
    values = {place: figure.median for place, figure in rates.values.items() if place[0] != place[1]}
    some = next(figure for place, figure in rates.values.items() if place[0] != place[1])
    matrix = heat.HeatMatrix(values, len(rates.devices), some.unit, arrow_meaning(some.better), heat.CELL_WITH_LABEL)
    width = _LEFT + max(matrix.edge + 2, heat.LEGEND_WIDTH)
    height = _HEAD + _ABOVE + matrix.edge + _BELOW
    is_right = picture.width + _GAP + width <= _WIDEST
    x, y = (picture.width + _GAP - MARGIN, MARGIN) if is_right else (MARGIN, picture.height + _GAP - MARGIN)
    picture.width = max(picture.width, x + width + MARGIN)
    picture.height = max(picture.height, y + height + MARGIN)
    how = "directly" if rates.is_direct else "not directly"
    subtitle = f"{how}, from row to column, medians of {count(some.n_repeats, 'repeat')}"
    picture.labels.append(Text(x, y + HEAD_SIZE, rates.title, HEAD_SIZE, bold=True))
    picture.labels.append(Text(x, y + HEAD_SIZE + 18, subtitle, 12.0, Tone.MUTED))
    description = f"{rates.title}, {subtitle}: {_in_words(rates, values)}"
    drawn = matrix.drawn("peers", rates.title, description, _labels(rates, matrix.side))
    return f'<g transform="translate({heat.number(x)} {heat.number(y + _HEAD)})">{drawn.text}</g>', description


def _shown(peers: Sequence[PeerRates]) -> PeerRates | None:
    """The latest matrix of bandwidths in one direction, direct ones before others."""
    able = [one for one in peers if one.role is Role.PEER_COPY and any(row != column for row, column in one.values)]
    chosen = [one for one in able if one.is_direct] or able
    return chosen[-1] if chosen else None


def _labels(rates: PeerRates, side: float) -> Iterator[str]:
    if side < heat.CELL_WITH_LABEL:
        return
    for at, device in enumerate(rates.devices):
        name = clean(device.label)
        row = name if text_width(name, _LABEL) <= _LABEL_ROOM else str(device.number)
        yield heat.text(-6, (at + 0.5) * side + 4, row, "tick", "end")
        short = name if text_width(name, _LABEL) <= side - 3 else str(device.number)
        if text_width(short, _LABEL) <= side - 2:
            yield heat.text((at + 0.5) * side, -6, short, "tick")


def _in_words(rates: PeerRates, values: dict[heat.Place, float]) -> str:
    unit = next(iter(rates.values.values())).unit
    (low, high) = min(values, key=values.__getitem__), max(values, key=values.__getitem__)
    names = [clean(device.label) for device in rates.devices]
    if values[low] == values[high]:
        return f"{show(values[low], unit)} between all {count(len(names), 'device')}."
    return (
        f"{show_range(values[low], values[high], unit)}, lowest from {names[low[0]]} to {names[low[1]]}, highest from "
        f"{names[high[0]]} to {names[high[1]]}."
    )
