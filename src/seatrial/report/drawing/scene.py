"""The content of a drawing, before layout: sockets, attached devices, the links between processors and their speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from operator import itemgetter

from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Link
from seatrial.model.spelling import display_scale, show, show_percent


class Tone(StrEnum):
    """The style of a line of text."""

    PLAIN = "plain"
    MUTED = "muted"
    WARNING = "warning"
    ALARM = "alarm"

    @property
    def is_bold(self) -> bool:
        """Whether it is bold, which is wider."""
        return self in (Tone.WARNING, Tone.ALARM)


class Grade(StrEnum):
    """The style of a link. The bounds of measured ones are fractions of the trained rate."""

    PLAIN = "plain"
    LOW = "low"  # trained below its capability
    GOOD = "good"  # measured, at least 0.9
    FAIR = "fair"  # measured, 0.75 to 0.9
    POOR = "poor"  # measured, below 0.75
    UNMEASURED = "unmeasured"  # if others on the drawing are measured


class Note(Frozen):
    """One statement in a box; it may be wrapped."""

    text: str
    tone: Tone = Tone.PLAIN


class Rate(Frozen):
    """The rate of the path to a part: `text` is the narrowest link's speed ("" if unknown), `also` lists other links on
    the path that run below their capability, `share` is the measured fraction of the trained rate."""

    text: str = ""
    grade: Grade = Grade.PLAIN
    also: tuple[str, ...] = ()
    share: str = ""

    @property
    def is_low(self) -> bool:
        """Whether a link on the path deserves a warning."""
        return self.grade in (Grade.LOW, Grade.POOR) or bool(self.also)

    def lines(self) -> tuple[Note, ...]:
        """The lines for the box at the end of the link."""
        tone = {Grade.LOW: Tone.WARNING, Grade.POOR: Tone.ALARM}.get(self.grade, Tone.MUTED)
        first = tuple(Note(text, tone) for text in (self.text, self.share) if text)
        return first + tuple(Note(text, Tone.WARNING) for text in self.also)


class Card(Frozen):
    """A device, or several equal ones: the leaves of the drawing. `hint` is the full description."""

    kind: str
    title: str
    lines: tuple[Note, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()


class Hub(Frozen):
    """A switch, a host bridge with several items behind it, or a group from a matrix (`assumed`)."""

    title: str
    lines: tuple[Note, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()
    place: DrawnPlace | None = None
    assumed: bool = False


class DrawnPlace(Frozen):
    """The items attached to one point of the machine."""

    cards: tuple[Card, ...] = ()
    hubs: tuple[Hub, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.cards or self.hubs)

    def all_cards(self) -> Iterator[Card]:
        """The cards here and below."""
        yield from self.cards
        for hub in self.hubs:
            if hub.place is not None:
                yield from hub.place.all_cards()


class Area(Frozen):
    """Cores, caches or memory of a domain. `kind` is the style's name."""

    kind: str
    lines: tuple[Note, ...]


class Domain(Frozen):
    """A NUMA node, or the whole package if nodes are unknown."""

    title: str
    parts: tuple[Area, ...] = ()
    place: DrawnPlace = DrawnPlace()
    hint: str = ""
    devices: tuple[str, ...] = ()
    assumed: bool = False


class DrawnSlot(Frozen):
    """A memory channel or, if channels are unknown, one module."""

    filled: bool
    hint: str = ""


class Modules(Frozen):
    """The memory modules of a socket; `slots` are drawn, `lines` describe them."""

    slots: tuple[DrawnSlot, ...]
    lines: tuple[Note, ...]


class Socket(Frozen):
    """A package with its domains. Without `title` it has no frame: a bare NUMA node."""

    title: str
    lines: tuple[Note, ...] = ()
    modules: Modules | None = None
    domains: tuple[Domain, ...] = ()
    place: DrawnPlace = DrawnPlace()
    """The items attached to the package itself, or to an unknown node of it."""
    hint: str = ""
    devices: tuple[str, ...] = ()
    is_continued: bool = False
    """Whether it continues the socket before it, which was too wide."""


class PeerEdge(Frozen):
    """Direct links between two processors; `count` is their number, None if unknown."""

    a: str
    b: str
    count: int | None
    grade: Grade = Grade.PLAIN
    text: str = ""


class Bank(Frozen):
    """Switches that connect many processors, or a mesh too dense to draw; `assumed` if the links are inferred."""

    title: str
    lines: tuple[Note, ...]
    counts: tuple[tuple[str, str], ...]
    """(processor, label of its link to the bank: "12 links" or "")."""
    switches: int = 0
    devices: tuple[str, ...] = ()
    assumed: bool = False
    hint: str = ""


class Peers(Frozen):
    """The direct links between processors. `name` is NVLink or XGMI."""

    name: str
    edges: tuple[PeerEdge, ...] = ()
    bank: Bank | None = None
    note: str = ""


class Between(Frozen):
    """The text on the links between sockets, at most two lines beside the stroke. `name` is for the legend."""

    lines: tuple[str, ...]
    hint: str
    grade: Grade = Grade.PLAIN
    name: str = "inter-socket link"


class Scene(Frozen):
    """The whole drawing. `loose` are items without a known parent."""

    title: str
    lines: tuple[Note, ...]
    sockets: tuple[Socket, ...]
    loose: DrawnPlace = DrawnPlace()
    peers: Peers | None = None
    between: Between | None = None
    has_measured: bool = False

    def places(self) -> Iterator[DrawnPlace]:
        """All boxes, in reading order."""
        for socket in self.sockets:
            for domain in socket.domains:
                yield domain.place
            yield socket.place
        yield self.loose

    def cards(self) -> Iterator[Card]:
        """All cards, in reading order."""
        for place in self.places():
            yield from place.all_cards()


TRAINED_ENOUGH = 0.99
_GOOD, _FAIR = 0.9, 0.75


def rate_of(chain: Sequence[Link], *, has_measured: bool) -> Rate:
    """The rate of a chain of links.

    It is that of the narrowest link; other links trained below their capability are listed as well. `has_measured`:
    some link of the machine is measured, so unmeasured ones are drawn differently.
    """
    known = [link for link in chain if speed_of(link) is not None or link.measured_Bps is not None]
    if not known:
        return Rate(grade=Grade.UNMEASURED if has_measured else Grade.PLAIN)
    measured = [link.measured_Bps for link in known if link.measured_Bps is not None]
    with_speed = [(speed, not is_low(link), link) for link in known if (speed := speed_of(link)) is not None]
    narrowest = min(with_speed, key=itemgetter(0, 1), default=(None, None, None))[2]
    also = dict.fromkeys(
        f"on the path: {speed_text(link)}" for _, is_full, link in with_speed if link is not narrowest and not is_full
    )
    return Rate(
        speed_text(narrowest, min(measured, default=None)),
        _grade(narrowest, min(measured, default=None), has_measured=has_measured),
        tuple(text for text in also if narrowest is None or text != f"on the path: {speed_text(narrowest)}")[:2],
        _share(narrowest, min(measured, default=None)),
    )


def is_low(link: Link) -> bool:
    """Whether a link is trained below its capability."""
    if link.capable_Bps is None or link.trained_Bps is None:
        return False
    return link.trained_Bps < TRAINED_ENOUGH * link.capable_Bps


def speed_text(link: Link | None, measured_Bps: float | None = None) -> str:
    """Text such as "31.5 GB/s", "trained 3.94 of 31.5 GB/s", "measured 24.1, trained 31.5 GB/s"."""
    if link is None or speed_of(link) is None:
        return "" if measured_Bps is None else f"measured {show(measured_Bps, 'B/s')}"
    if is_low(link):
        text = f"trained {_pair(link.trained_Bps, link.capable_Bps, 'of')}"
    elif link.trained_Bps is None:
        text = f"capable {show(link.capable_Bps, 'B/s')}"
    elif link.capable_Bps is None or measured_Bps is not None:
        text = f"trained {show(link.trained_Bps, 'B/s')}"
    else:
        text = show(link.trained_Bps, "B/s")
    if measured_Bps is None:
        return text
    unit = display_scale([speed_of(link) or 0.0], "B/s")[1]
    spelled = show(measured_Bps, "B/s")
    return f"measured {spelled.removesuffix(f' {unit}')}, {text}"


def _pair(low: float | None, high: float | None, word: str) -> str:
    """Two rates, with a common unit only once: "3.94 of 31.5 GB/s"."""
    left, right = show(low, "B/s"), show(high, "B/s")
    unit = right.partition(" ")[2]
    return f"{left.removesuffix(f' {unit}')} {word} {right}"


def _share(link: Link | None, measured_Bps: float | None) -> str:
    speed = None if link is None else speed_of(link)
    if measured_Bps is None or link is None or not speed:
        return ""
    return f"{show_percent(measured_Bps / speed)} of {'trained' if link.trained_Bps is not None else 'capable'}"


def speed_of(link: Link) -> float | None:
    """The trained rate of a link, or else what it is capable of; None if neither is known."""
    return link.trained_Bps if link.trained_Bps is not None else link.capable_Bps


def _grade(link: Link | None, measured_Bps: float | None, *, has_measured: bool) -> Grade:
    speed = None if link is None else speed_of(link)
    if measured_Bps is not None and speed:
        share = measured_Bps / speed
        if share < _FAIR:
            return Grade.POOR
        if share < _GOOD:
            return Grade.FAIR
        return Grade.LOW if link is not None and is_low(link) else Grade.GOOD
    if link is not None and is_low(link):
        return Grade.LOW
    return Grade.UNMEASURED if has_measured and measured_Bps is None else Grade.PLAIN
