"""What a drawing shows, before anything has a place: sockets, what hangs on them, and the links between processors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum


class Tone(StrEnum):
    """How a line of text is set."""

    PLAIN = "plain"
    MUTED = "muted"
    WARNING = "warning"
    ALARM = "alarm"

    @property
    def is_bold(self) -> bool:
        """Whether it is set in bold, which takes more room."""
        return self in (Tone.WARNING, Tone.ALARM)


class Grade(StrEnum):
    """How a link is drawn. The bounds of the measured ones are shares of what the link is trained to."""

    PLAIN = "plain"
    LOW = "low"  # trained below what it can do
    GOOD = "good"  # measured, at least 0.9
    FAIR = "fair"  # measured, 0.75 to 0.9
    POOR = "poor"  # measured, below 0.75
    UNMEASURED = "unmeasured"  # where others on the drawing are measured


@dataclass(frozen=True, slots=True)
class Line:
    """One statement in a box; it may be wrapped."""

    text: str
    tone: Tone = Tone.PLAIN


@dataclass(frozen=True, slots=True)
class Rate:
    """What is known of the way to a part: the narrowest link's speed in words ("" when unknown), and `also`, what else
    runs below its capability on the way. `share` says in words how much of the trained rate was measured."""

    text: str = ""
    grade: Grade = Grade.PLAIN
    also: tuple[str, ...] = ()
    share: str = ""

    @property
    def is_low(self) -> bool:
        """Whether something on the way is worth a warning."""
        return self.grade in (Grade.LOW, Grade.POOR) or bool(self.also)

    def lines(self) -> tuple[Line, ...]:
        """The lines that stand in the box at the end of the link."""
        tone = {Grade.LOW: Tone.WARNING, Grade.POOR: Tone.ALARM}.get(self.grade, Tone.MUTED)
        first = tuple(Line(text, tone) for text in (self.text, self.share) if text)
        return first + tuple(Line(text, Tone.WARNING) for text in self.also)


@dataclass(frozen=True, slots=True)
class Card:
    """A device, or several alike: the leaves of the drawing. `hint` is the whole truth in words."""

    kind: str
    title: str
    lines: tuple[Line, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()


@dataclass(frozen=True, slots=True)
class Hub:
    """A switch, a host bridge with several things behind it, or a group that a matrix tells (`assumed`)."""

    title: str
    lines: tuple[Line, ...] = ()
    devices: tuple[str, ...] = ()
    hint: str = ""
    rate: Rate = Rate()
    place: Place | None = None
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """What hangs on one point of the machine."""

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


@dataclass(frozen=True, slots=True)
class Part:
    """Cores, caches or memory of a domain. `kind` is the style's name."""

    kind: str
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Domain:
    """A NUMA node, or the whole package where no nodes are told."""

    title: str
    parts: tuple[Part, ...] = ()
    place: Place = Place()
    hint: str = ""
    devices: tuple[str, ...] = ()
    assumed: bool = False


@dataclass(frozen=True, slots=True)
class Slot:
    """A memory channel (`modules` in it, 0 when it is empty) or, where channels are unknown, one module."""

    filled: bool
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Modules:
    """The memory modules of a socket; `slots` are drawn, `lines` say the same in words."""

    slots: tuple[Slot, ...]
    lines: tuple[Line, ...]


@dataclass(frozen=True, slots=True)
class Socket:
    """A package with its domains. Without `title` it has no frame of its own: a bare NUMA node."""

    title: str
    lines: tuple[Line, ...] = ()
    modules: Modules | None = None
    domains: tuple[Domain, ...] = ()
    place: Place = Place()
    """What hangs on the package itself, or on it without a known node."""
    hint: str = ""
    devices: tuple[str, ...] = ()
    is_continued: bool = False
    """Whether it is the rest of the socket before it, which was too wide."""


@dataclass(frozen=True, slots=True)
class PeerEdge:
    """A direct link between two processors; `count` links in it, None when unknown."""

    a: str
    b: str
    count: int | None
    grade: Grade = Grade.PLAIN
    text: str = ""


@dataclass(frozen=True, slots=True)
class Bank:
    """Switches that join many processors, or a mesh too dense to draw; `assumed` when no source tells the links."""

    title: str
    lines: tuple[Line, ...]
    counts: tuple[tuple[str, str], ...]
    """(processor, what its link to the bank is labelled with: "12 links" or "")."""
    switches: int = 0
    devices: tuple[str, ...] = ()
    assumed: bool = False
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Peers:
    """The links between processors beside PCI. `name` is the field's word: NVLink, XGMI."""

    name: str
    edges: tuple[PeerEdge, ...] = ()
    bank: Bank | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Between:
    """The links between sockets, in words; two lines at most beside the stroke. `name` is what the legend says."""

    lines: tuple[str, ...]
    hint: str
    grade: Grade = Grade.PLAIN
    name: str = "inter-socket link"


@dataclass(frozen=True, slots=True)
class Scene:
    """All of it. `loose` hangs on nothing that is known."""

    title: str
    lines: tuple[Line, ...]
    sockets: tuple[Socket, ...]
    loose: Place = Place()
    peers: Peers | None = None
    between: Between | None = None
    has_measured: bool = False

    def places(self) -> Iterator[Place]:
        """Every point on which something hangs, in reading order."""
        for socket in self.sockets:
            for domain in socket.domains:
                yield domain.place
            yield socket.place
        yield self.loose

    def cards(self) -> Iterator[Card]:
        """Every card, in reading order."""
        for place in self.places():
            yield from place.all_cards()
