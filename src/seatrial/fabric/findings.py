"""What is wrong or unusual in a fabric. Each rule is a function; a finding names the links or switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from seatrial.fabric.health import health_findings
from seatrial.fabric.parts import LinkRate, show_rate
from seatrial.fabric.readers.infiniband import SHARED_NAMES
from seatrial.model.machine.fabric import AdapterKind, CapableBasis, Fabric, FabricLink, LinkEnd
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.spelling import count, show

_MOST_NAMED = 8  # Links or switches that a sentence names; `devices` has all.
_USUAL = 0.75  # The share of switches of a level that must agree on a number of links for the others to be odd.

States = Mapping[tuple[str, int | None], str]
"""The logical state of the link at one of its ends, where the tool states it."""


def fabric_findings(
    fabric: Fabric, states: States, shared: Mapping[str, Sequence[str]], *, is_whole: bool
) -> tuple[Finding, ...]:
    """All findings, the most severe first. `shared` are ids that several adapters have, with their names. Nothing is
    said of missing links unless the dump `is_whole`."""
    found = [
        *_shared_guids(fabric, shared),
        *_below_capability(fabric),
        *_not_active(fabric, states),
        *(_fewer_uplinks(fabric) if is_whole else ()),
        *(_without_links(fabric) if is_whole else ()),
        *_shared_names(fabric),
        *_mixed_rates(fabric),
        *health_findings(fabric),
    ]
    order = list(reversed(Severity))
    return tuple(sorted(found, key=lambda finding: order.index(finding.severity)))


def _shared_guids(fabric: Fabric, shared: Mapping[str, Sequence[str]]) -> Iterator[Finding]:
    if shared:
        named = [f"{device} ({', '.join(names)})" for device, names in shared.items()]
        yield Finding(
            rule="guid-shared",
            severity=Severity.WARNING,
            devices=tuple(dict.fromkeys(name for names in shared.values() for name in names)),
            observation=f"{count(len(shared), 'GUID')} of several adapters: {_listed(named)}. Their links are left "
            "out.",
            diagnosis="Two adapters that were programmed with the same GUID, an adapter that was moved while the dump "
            "was made, or a damaged text: which link belongs to which adapter is unknown.",
            remedy="Compare the GUIDs on these nodes (`ibstat`); give one of two equal adapters its own with "
            "`mlxburn` or `flint`, then make the dump again",
            evidence=f"records and ports in {', '.join(fabric.sources)}",
        )


def _below_capability(fabric: Fabric) -> Iterator[Finding]:
    groups: dict[tuple[LinkRate, float, CapableBasis], list[FabricLink]] = {}
    for link in fabric.links:
        if link.is_low and link.capable_Bps is not None and link.capable_basis is not None:
            groups.setdefault((_rate(link), link.capable_Bps, link.capable_basis), []).append(link)
    for (rate, capable, basis), links in sorted(groups.items(), key=lambda item: -len(item[1])):
        is_stated = basis is CapableBasis.STATED
        yield Finding(
            rule="link-below-capability",
            severity=Severity.WARNING,
            devices=_ports(fabric, links),
            observation=f"{count(len(links), 'link')} at {show_rate(rate)}, {show(links[0].trained_Bps, 'B/s')}, of "
            f"{show(capable, 'B/s')}: {_named(fabric, links)}",
            diagnosis="Both ends of the link support more than it runs at."
            if is_stated
            else "Other links of the same switches and adapter models run faster. The dump does not state what these "
            "ports support; `iblinkinfo` does.",
            remedy="Compare the enabled widths and speeds of both ports (`ibportstate LID PORT`), and look at the "
            "error counters of the link (`perfquery LID PORT`). If the ports are equal, exchange the cable",
            evidence=f"width and speed in {', '.join(fabric.sources)}; capable rate {basis.value}",
        )


def _not_active(fabric: Fabric, states: States) -> Iterator[Finding]:
    waiting: dict[str, list[FabricLink]] = {}
    for link in fabric.links:
        state = states.get((link.a.device, link.a.port)) or states.get((link.b.device, link.b.port))
        if state and state not in ("Active", "NoChange"):  # the latter is what a port says that did not answer
            waiting.setdefault(state, []).append(link)
    for state, links in waiting.items():
        yield Finding(
            rule="link-not-active",
            severity=Severity.WARNING,
            devices=_ports(fabric, links),
            observation=f"{count(len(links), 'link')} in state {state}: {_named(fabric, links)}",
            diagnosis="The cable works, but the subnet manager has not brought the link into service.",
            remedy="Check that a subnet manager runs (`sminfo`) and what its log says about these ports",
            evidence=f"state {state} in {', '.join(fabric.sources)}",
        )


def _fewer_uplinks(fabric: Fabric) -> Iterator[Finding]:
    ups: Counter[str] = Counter()
    for link in fabric.links:
        if link.b.device in fabric.switch_by_id and fabric.level_of(link.a.device) != fabric.level_of(link.b.device):
            ups[link.b.device] += 1
    for level in fabric.levels[:-1]:
        here = [switch.id for switch in fabric.switches if switch.level == level]
        usual, number = Counter(ups[switch] for switch in here).most_common(1)[0]
        few = [switch for switch in here if ups[switch] < usual]
        if not few or number < _USUAL * len(here):
            continue
        names = [f"{fabric.name(switch)} {ups[switch]}" for switch in few]
        yield Finding(
            rule="fewer-uplinks",
            severity=Severity.WARNING,
            devices=tuple(fabric.name(switch) for switch in few),
            observation=f"{count(len(few), 'switch', 'switches')} of level {level} with fewer than {usual} links to "
            f"the level above, which {number} of {len(here)} have: {_listed(names)}",
            diagnosis="These switches have less bandwidth to the rest of the fabric. Why the links are missing is not "
            "in the dump.",
            remedy="Compare with the cabling plan; `iblinkinfo` lists the ports that are down",
            evidence=f"links that are up in {', '.join(fabric.sources)}",
        )


def _without_links(fabric: Fabric) -> Iterator[Finding]:
    linked = {end.device for link in fabric.links for end in (link.a, link.b)}
    alone = [switch.name for switch in fabric.switches if switch.id not in linked]
    alone += [adapter.name for adapter in fabric.adapters if adapter.id not in linked]
    if alone:
        yield Finding(
            rule="no-link",
            severity=Severity.WARNING,
            devices=tuple(dict.fromkeys(alone)),
            observation=f"{count(len(alone), 'device')} without any link: {_listed(alone)}",
            diagnosis="Nothing is connected to these devices, or the dump was made where the rest cannot be reached.",
            remedy="Check the cable and the state of the port with `ibstat` on that node",
            evidence=f"no connected port in {', '.join(fabric.sources)}",
        )


def _shared_names(fabric: Fabric) -> Iterator[Finding]:
    for name in SHARED_NAMES:
        number = sum(adapter.node == name for adapter in fabric.adapters)
        if number > 1:
            yield Finding(
                rule="unnamed-node",
                severity=Severity.INFO,
                devices=(name,),
                observation=f"{count(number, 'adapter')} of a node named {name}",
                diagnosis="That is the name of a host that has none: these may be several nodes.",
                remedy="Set the host name of these nodes; rdma-core then renames their adapters",
                evidence=f"node descriptions in {', '.join(fabric.sources)}",
            )


def _mixed_rates(fabric: Fabric) -> Iterator[Finding]:
    between: dict[tuple[int, int], Counter[LinkRate]] = {}
    for link in fabric.links:
        upper, lower = fabric.level_of(link.a.device), fabric.level_of(link.b.device)
        adapter = fabric.adapter_by_id.get(link.b.device)
        if adapter is not None and adapter.kind is AdapterKind.AGGREGATION:
            continue
        if upper is not None and lower is not None and link.trained_Bps is not None:
            between.setdefault((lower, upper), Counter())[_rate(link)] += 1
    for (lower, upper), rates in sorted(between.items()):
        if len(rates) > 1:
            shown = ", ".join(f"{number} x {show_rate(rate)}" for rate, number in rates.most_common())
            yield Finding(
                rule="mixed-rates",
                severity=Severity.INFO,
                devices=(),
                observation=f"links between {level_name(lower)} and {level_name(upper)}: {shown}",
                diagnosis="The links are not alike: hardware of several generations, or slow links.",
                remedy="Request nodes with one rate (a constraint of the batch system), or measure them separately",
                evidence=f"width and speed in {', '.join(fabric.sources)}",
            )


def level_name(level: int) -> str:
    """What is at a level: the nodes, or switches."""
    return "nodes" if level == 0 else f"level {level}"


def _rate(link: FabricLink) -> LinkRate:
    return LinkRate(link.width, link.speed)


def _ports(fabric: Fabric, links: Iterable[FabricLink]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_end(fabric, end) for link in links for end in (link.a, link.b)))


def _end(fabric: Fabric, end: LinkEnd) -> str:
    return fabric.port_name(end.device, end.port)


def _named(fabric: Fabric, links: list[FabricLink]) -> str:
    return _listed([f"{_end(fabric, link.a)} - {_end(fabric, link.b)}" for link in links])


def _listed(names: list[str]) -> str:
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")
