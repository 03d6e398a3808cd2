"""<nvlink> and <xgmi> of NCCL's topology XML -> links between processors, each once, and those without a known target.

Both ends of a link list it, with the same count. A link is refused if its two ends contradict each other.
Rates per link and direction: NVIDIA's architecture whitepapers of Pascal (GP100: NVLink of 20 GB/s), Volta (GV100),
Turing (TU102), Ampere (GA100; GA102 has links of 14.0625 GB/s) and Hopper (GH100), all others 25 GB/s; NVIDIA Blackwell
(NVLink 5: 18 links, 1.8 TB/s both ways together). XGMI's rate depends on the board and is not reported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from seatrial.machine.readers.xml import Element, XmlDocument
from seatrial.machine.survey import PciPart, PeerLink
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import DeviceKind

_NVLINK_Bps: Mapping[int, float] = {
    60: 20e9, 70: 25e9, 75: 25e9, 80: 25e9, 86: 14.0625e9, 90: 25e9, 100: 50e9, 103: 50e9,
}  # fmt: skip
_SWITCH_CLASS = "0x068000"
_GPU_CLASSES = ("0x03", "0x12")
_ADDRESS = re.compile(r"(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([01][0-9a-f])\.([0-7])\Z", re.ASCII)
_INVISIBLE = re.compile(r"f{4,8}:f{2,4}:ff(?:\.f)?\Z", re.ASCII)


def normal_address(text: str) -> str | None:
    """An address as in Linux: 0000:1b:00.0 for 1B:00.0 and 00000000:1B:00.0; None if it is not an address."""
    match = _ADDRESS.match(text.strip().lower())
    if match is None:
        return None
    domain = (match[1] or "0000").lstrip("0").rjust(4, "0")
    return f"{domain}:{match[2]}:{match[3]}.{match[4]}"


class DirectLink(Frozen):
    """One end of links: `count` links of `kind` ("nvlink", "xgmi") from the GPU at `gpu` to `target`."""

    gpu: str
    target: str
    count: int
    kind: str
    target_class: str
    element: Element


class ResolvedLinks(Frozen):
    """Links with known ends; switches that occur only as targets; whether the other end of every link is known; and
    sentences about the omitted links."""

    links: tuple[PeerLink, ...]
    switches: tuple[PciPart, ...]
    is_complete: bool
    unread: tuple[str, ...]


def resolve_links(
    document: XmlDocument,
    ends: Sequence[DirectLink],
    gpus: Mapping[str, tuple[Element, int | None]],
    pci: Mapping[str, PciPart],
    source: str,
) -> ResolvedLinks:
    """Combine the two ends of each link. `gpus`: address -> its <gpu> element and compute capability x 10 (None
    for AMD); `pci`: all functions of the file. Raises ParseError if the ends contradict each other."""
    by_pair: dict[tuple[str, str], DirectLink] = {}
    for link in ends:
        known = by_pair.setdefault((link.gpu, normal_address(link.target) or link.target), link)
        if known is not link:
            why = f"links of {link.gpu} to {link.target} are on line {known.element.line} already"
            raise document.error(link.element, why)

    def check_other_end(link: DirectLink, target: str) -> None:
        if target not in gpus:
            if pci[target].kind not in (DeviceKind.GPU, DeviceKind.SWITCH, None):
                raise document.error(link.element, f"its target {target} is neither a GPU nor a switch in this file")
            return
        other = by_pair.get((target, link.gpu))
        if other is None:
            later = max((link.element, gpus[target][0]), key=lambda element: element.line)
            raise document.error(later, f"{link.gpu} lists {link.count} links to {target}, which does not list them")
        if (other.count, other.kind) != (link.count, link.kind):
            first, second = sorted((link, other), key=lambda end: end.element.line)
            why = f"{second.count} {second.kind} links, but line {first.element.line} states {first.count} {first.kind}"
            raise document.error(second.element, why)

    links: dict[frozenset[str], PeerLink] = {}
    switches: dict[str, PciPart] = {}
    lost: list[DirectLink] = []
    outside: list[DirectLink] = []
    for link in ends:
        target = normal_address(link.target)
        if target is None and not _INVISIBLE.match(link.target.strip().lower()):
            raise document.error(link.element, "its target is not a PCI address")
        if target is None or target == link.gpu:
            lost.append(link)
        elif target in gpus or target in pci:
            check_other_end(link, target)
            links.setdefault(frozenset((link.gpu, target)), _peer_link(link, target, gpus, source))
        elif link.kind == "nvlink" and link.target_class == _SWITCH_CLASS:
            switches[target] = PciPart(target, "0680", kind=DeviceKind.SWITCH, source=source)
            links[frozenset((link.gpu, target))] = _peer_link(link, target, gpus, source)
        elif link.target_class.startswith(_GPU_CLASSES):
            outside.append(link)
        elif link.target_class == _SWITCH_CLASS or not link.target_class:
            lost.append(link)
        # The rest lead to a CPU (NVLink on POWER: class 0x068001), which has no address here.
    return ResolvedLinks(
        links=tuple(links.values()),
        switches=tuple(switches.values()),
        is_complete=not lost,
        unread=tuple(_sentences(source, lost, outside)),
    )


def _peer_link(link: DirectLink, target: str, gpus: Mapping[str, tuple[Element, int | None]], source: str) -> PeerLink:
    rates = [_NVLINK_Bps.get(gpus[end][1] or 0) for end in (link.gpu, target) if end in gpus]
    known = [rate for rate in rates if rate is not None]
    is_certain = link.kind == "nvlink" and len(known) == len(rates)
    capable_Bps = link.count * min(known) if is_certain else None
    return PeerLink(link.gpu, target, link.kind, link.count, capable_Bps, source=f"{source} ({link.kind})")


def _sentences(source: str, lost: Sequence[DirectLink], outside: Sequence[DirectLink]) -> Iterable[str]:
    if lost:
        gpus = len({link.gpu for link in lost})
        count = sum(link.count for link in lost)
        yield (
            f"{source}: {count} direct links of {gpus} GPUs have no known target (a switch hidden from a virtual "
            "machine, or the GPU itself): which GPUs they connect is unknown"
        )
    if outside:
        others = len({link.target for link in outside})
        yield f"{source}: links to {others} other GPUs were ignored: the file describes only the GPUs of one job"
