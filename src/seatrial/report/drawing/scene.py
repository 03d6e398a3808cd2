"""The content of a drawing, before layout: sockets, attached devices, and the links between processors."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

from seatrial.model.frozen import Frozen


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


class Line(Frozen):
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

    def lines(self) -> tuple[Line, ...]:
        """The lines for the box at the end of the link."""
        tone = {Grade.LOW: Tone.WARNING, Grade.POOR: Tone.ALARM}.get(self.grade, Tone.MUTED)
        first = tuple(Line(text, tone) for text in (self.text, self.share) if text)
        return first + tuple(Line(text, Tone.WARNING) for text in self.also)


class Card(Frozen):
    """A device, or several equal ones: the leaves of the drawing. `hint` is the full description."""

    kind: str
    title: str
    lines: tuple[Line, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()


class Hub(Frozen):
    """A switch, a host bridge with several items behind it, or a group from a matrix (`assumed`)."""

    title: str
    lines: tuple[Line, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()
    place: Place | None = None
    assumed: bool = False


class Place(Frozen):
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


class Part(Frozen):
    """Cores, caches or memory of a domain. `kind` is the style's name."""

    kind: str
    lines: tuple[Line, ...]


class Domain(Frozen):
    """A NUMA node, or the whole package if nodes are unknown."""

    title: str
    parts: tuple[Part, ...] = ()
    place: Place = Place()
    hint: str = ""
    devices: tuple[str, ...] = ()
    assumed: bool = False


class Slot(Frozen):
    """A memory channel or, if channels are unknown, one module."""

    filled: bool
    hint: str = ""


class Modules(Frozen):
    """The memory modules of a socket; `slots` are drawn, `lines` describe them."""

    slots: tuple[Slot, ...]
    lines: tuple[Line, ...]


class Socket(Frozen):
    """A package with its domains. Without `title` it has no frame: a bare NUMA node."""

    title: str
    lines: tuple[Line, ...] = ()
    modules: Modules | None = None
    domains: tuple[Domain, ...] = ()
    place: Place = Place()
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
    lines: tuple[Line, ...]
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
    lines: tuple[Line, ...]
    sockets: tuple[Socket, ...]
    loose: Place = Place()
    peers: Peers | None = None
    between: Between | None = None
    has_measured: bool = False

    def places(self) -> Iterator[Place]:
        """All places, in reading order."""
        for socket in self.sockets:
            for domain in socket.domains:
                yield domain.place
            yield socket.place
        yield self.loose

    def cards(self) -> Iterator[Card]:
        """All cards, in reading order."""
        for place in self.places():
            yield from place.all_cards()
