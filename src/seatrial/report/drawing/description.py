"""The drawing in words, for screen readers: the same boxes in the same order."""

from __future__ import annotations

from collections.abc import Iterator

from seatrial.report.drawing.names import clean
from seatrial.report.drawing.scene import Card, Hub, Peers, Place, Scene
from seatrial.report.units import count

_MOST = 400


def describe(scene: Scene) -> str:
    """The whole drawing as sentences."""
    sentences: list[str] = [f"{scene.title}: {'; '.join(line.text for line in scene.lines) or 'no data'}."]
    for socket in scene.sockets:
        sentences += _sentence(socket.title, [line.text for line in socket.lines])
        if socket.modules is not None:
            sentences += _sentence("memory modules", [line.text for line in socket.modules.lines])
        for domain in socket.domains:
            sentences += _sentence(domain.title, [line.text for part in domain.parts for line in part.lines])
            sentences += _place(domain.place, domain.title or socket.title)
        sentences += _place(socket.place, socket.title)
    sentences += _place(scene.loose, "no known node")
    if scene.between is not None:
        sentences.append(f"{scene.between.hint}.")
    sentences += _peers(scene.peers)
    left = len(sentences) - _MOST
    return " ".join(sentences[:_MOST] + ([f"And {count(left, 'more statement')}."] if left > 0 else []))


def _sentence(what: str, words: list[str]) -> list[str]:
    text = ", ".join(words)
    return [f"{what}: {text}." if text else f"{what}."] if what or text else []


def _place(place: Place, at: str) -> Iterator[str]:
    for card in place.cards:
        yield f"On {at}: {_card(card)}."
    for hub in place.hubs:
        yield f"On {at}: {_hub(hub)}."
        if hub.place is not None:
            yield from _place(hub.place, f"the {hub.title}")


def _card(card: Card) -> str:
    return ", ".join([card.title, *(line.text for line in (*card.lines, *card.rate.lines()))])


def _hub(hub: Hub) -> str:
    return ", ".join([hub.title, *(line.text for line in hub.lines)])


def _peers(peers: Peers | None) -> list[str]:
    if peers is None:
        return []
    if peers.bank is not None:
        bank = peers.bank
        names = ", ".join(clean(name) for name, _ in bank.counts)
        return [f"{peers.name}: {bank.title}, {'; '.join(line.text for line in bank.lines)}, connected to {names}."]
    edges = []
    for edge in peers.edges:
        number = "" if edge.count is None else f" {count(edge.count, 'link')}"
        edges.append(f"{clean(edge.a)} to {clean(edge.b)}{number}{f' {edge.text}' if edge.text else ''}")
    return [f"{peers.name}: {', '.join(edges)}."]
