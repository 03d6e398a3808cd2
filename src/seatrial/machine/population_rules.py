"""Memory population: the rules of each platform, as pure functions of sockets, channels and modules.

Two criteria: coverage (how many channels have a module) and interleaving (whether all memory is one uniform set of
channels, or split into regions with fewer channels each). Balanced: all channels and sockets populated identically.
Near-balanced: one set, but not the best one. Unbalanced: several sets, or unequal sockets. Unknown: no rule for the
platform, or the channels of the slots are unknown. The rule of the platform takes precedence over the general one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise

from seatrial.machine.processor_table import DELL_XEON, Interleaving
from seatrial.machine.processors import CpuPlatform
from seatrial.machine.slots import GIB, SlotPlace
from seatrial.machine.survey import MemoryModule
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Population
from seatrial.model.spelling import count as counted


class SocketLoad(Frozen):
    """The slots of one socket. `is_complete`: all of them are listed. `mapping` is the source of the channels,
    `is_confirmed` whether their number is."""

    name: str
    platform: CpuPlatform
    places: tuple[SlotPlace, ...]
    is_complete: bool
    mapping: str
    is_confirmed: bool

    @property
    def placed(self) -> tuple[SlotPlace, ...]:
        """The slots with a module."""
        return tuple(slot for slot in self.places if slot.is_filled)

    @property
    def dimms(self) -> int:
        """The number of modules."""
        return len(self.placed)

    @property
    def capacity_bytes(self) -> int:
        """The total size of the modules whose size is known."""
        return sum(placed.module.size_bytes or 0 for placed in self.placed)

    def by_channel(self) -> Mapping[str, Sequence[SlotPlace]] | None:
        """Channel -> its modules; None if the channel of one of them is unknown."""
        channels: dict[str, list[SlotPlace]] = {}
        for placed in self.placed:
            if placed.channel is None:
                return None
            channels.setdefault(placed.channel, []).append(placed)
        return channels

    def populated_channels(self) -> int | None:
        """The number of channels with a module; None if that is uncertain."""
        channels = self.by_channel()
        if channels is not None:
            return len(channels)
        if self.dimms == 1:
            return None if is_soldered(self.placed[0].module) else 1
        return self.platform.channels if self.is_filled_evenly() else None

    def is_filled_evenly(self) -> bool:
        """Whether all slots have identical modules, and all channels the same number of slots."""
        is_full = self.is_complete and bool(self.places) and all(slot.is_filled for slot in self.places)
        if not is_full or not is_alike([placed.module for placed in self.placed]):
            return False
        if self.platform.channels is not None:
            return self.dimms % self.platform.channels == 0
        return self.dimms not in _SLOTS_OF_UNEQUAL_CHANNELS


_SLOTS_OF_UNEQUAL_CHANNELS = frozenset({8, 10, 14})
"""Boards with six channels per socket may have 8 or 10 slots: some channels have a second one (Dell C6420, R540)."""


def is_soldered(module: MemoryModule) -> bool:
    """Whether a device has its own bus, whose width differs from that of a channel: LPDDR and HBM."""
    return (module.memory_type or "").startswith(("LPDDR", "HBM"))


def rule_of(platform: CpuPlatform) -> Interleaving | None:
    """The rule of a platform, or None; it applies only to processors with the same number of channels."""
    rule = platform.interleaving
    return rule if rule is not None and rule.channels == platform.channels else None


def is_alike(modules: Sequence[MemoryModule]) -> bool:
    """Whether all modules have the same capacity, type, rank and speed, as far as known. Manufacturers may differ."""
    names = ("memory_type", "buffering", "rank", "rated_MTps", "configured_MTps")
    known = ({getattr(module, name) for module in modules} - {None} for name in names)
    return len({module.size_bytes for module in modules}) == 1 and all(len(values) <= 1 for values in known)


def judge_population(sockets: Sequence[SocketLoad]) -> tuple[Population, str]:
    """The verdict on all sockets with a processor, and the reason: the modules, the rule, the loss."""
    modules = [placed.module for socket in sockets for placed in socket.placed]
    if not modules:
        return Population.UNKNOWN, "no module is listed"
    if any(module.size_bytes is None for module in modules):
        return Population.UNKNOWN, "the size of a module is unknown"
    unequal = _unequal_sockets(sockets) or _forbidden_mix(modules)
    if unequal is not None:
        return Population.UNBALANCED, unequal
    of_each = f"each of {len(sockets)} sockets: " if len(sockets) > 1 else ""
    judged = [_judge_socket(socket) for socket in sockets]
    for verdict in (Population.UNBALANCED, Population.UNKNOWN, Population.NEAR_BALANCED):
        worst = next((why for found, why in judged if found is verdict), None)
        if worst is not None:
            return verdict, of_each + worst
    if not is_alike(modules):
        return Population.NEAR_BALANCED, f"{of_each}the sockets are populated alike, but with different modules"
    return Population.BALANCED, of_each + judged[0][1]


def _unequal_sockets(sockets: Sequence[SocketLoad]) -> str | None:
    """Why the sockets are not populated alike, or None. Channels are compared if they are known for all sockets."""
    by_sizes: dict[object, SocketLoad] = {}
    by_loads: dict[object, SocketLoad] = {}
    for socket in sockets:
        by_sizes.setdefault(_sizes(socket.placed), socket)
        channels = socket.by_channel()
        loads = None if channels is None else tuple(sorted(_sizes(placed) for placed in channels.values()))
        by_loads.setdefault(loads, socket)
    differing = by_sizes if len(by_sizes) > 1 else by_loads if None not in by_loads else {}
    if len(differing) < 2:
        return None
    seen = "; ".join(f"{socket.name} has {_inventory(socket)}" for socket in list(differing.values())[:4])
    return (
        f"the sockets are unequal: {seen}. The processors differ in bandwidth or capacity, and memory that is "
        f"interleaved over the sockets splits into regions; all sockets must be populated alike ({DELL_XEON})"
    )


def _sizes(placed: Sequence[SlotPlace]) -> tuple[int, ...]:
    return tuple(sorted(one.module.size_bytes or 0 for one in placed))


def _inventory(socket: SocketLoad) -> str:
    """Such as "8 modules (8 x 32 GiB) on 4 channels"."""
    if not socket.placed:
        return "no module"
    channels = socket.by_channel()
    return _inventory_of(socket) + ("" if channels is None else f" on {counted(len(channels), 'channel')}")


def _inventory_of(socket: SocketLoad, mapping: str = "") -> str:
    """Such as "8 modules (8 x 32 GiB; channels from the slot names)"."""
    counts = Counter(one.module.size_bytes or 0 for one in socket.placed)
    sizes = " + ".join(f"{count} x {size / GIB:g} GiB" for size, count in sorted(counts.items(), reverse=True))
    return f"{counted(socket.dimms, 'module')} ({sizes}{f'; {mapping}' if mapping else ''})"


def _forbidden_mix(modules: Sequence[MemoryModule]) -> str | None:
    """Why these modules must not be combined in one machine, or None."""
    kinds = {module.buffering for module in modules} - {None}
    if len(kinds) > 1:
        return f"{' and '.join(sorted(str(kind) for kind in kinds))} must not be mixed ({_MIXING})"
    sizes = {module.size_bytes or 0 for module in modules}
    if "LRDIMM" in kinds and {64 * GIB, 128 * GIB} <= sizes:
        return f"64 GB and 128 GB LRDIMMs must not be mixed ({_MIXING})"
    if len(sizes) > 2:
        listed = ", ".join(f"{size / GIB:g} GiB" for size in sorted(sizes, reverse=True))
        return f"modules of {len(sizes)} capacities ({listed}): at most two interleave as one set ({_MIXING})"
    speeds = {module.configured_MTps for module in modules} - {None}
    if len(speeds) > 1:
        listed = " and ".join(f"{speed:g}" for speed in sorted(speed for speed in speeds if speed is not None))
        return f"the modules run at different speeds ({listed} MT/s)"
    return None


def _judge_socket(socket: SocketLoad) -> tuple[Population, str]:
    """The verdict on one socket by the rule of its platform, or else by the general rule."""
    if not socket.placed:
        return Population.UNBALANCED, "a processor without local memory fetches all data from the other one"
    channels = socket.by_channel()
    if channels is None:
        return _judge_by_counts(socket)
    all_channels = socket.platform.channels
    if all_channels is None:
        return Population.UNKNOWN, f"{_inventory(socket)}; the number of channels of the processor is unknown"
    if len(channels) > all_channels:
        seen = f"{len(channels)} channels are named, the processor has {all_channels}"
        return Population.UNKNOWN, f"{seen}: the slot names are misleading"
    if len(channels) == all_channels:
        return _judge_covered(socket, channels)
    return _judge_partly_covered(socket, channels, all_channels)


def _judge_covered(socket: SocketLoad, channels: Mapping[str, Sequence[SlotPlace]]) -> tuple[Population, str]:
    """Every channel has a module: balanced if all are populated alike."""
    seen = f"all {counted(len(channels), 'channel')} are populated, {_inventory_of(socket, socket.mapping)}"
    rule = rule_of(socket.platform)
    required = _by_rule(socket, rule)
    if len({_sizes(placed) for placed in channels.values()}) > 1:
        if rule is not None and socket.dimms in rule.near and len(set(_sizes(socket.placed))) == 1:
            return Population.NEAR_BALANCED, f"{seen}, but not with the same number of modules; {required}"
        return Population.UNBALANCED, f"{seen}, but not alike, which splits memory into several regions; {required}"
    if len(set(_sizes(socket.placed))) > 1:
        if not _largest_first(channels):
            why = "the larger of two capacities belongs in the first slot of each channel, but is in another one"
            return Population.UNBALANCED, f"{seen}: {why} ({_MIXING})"
        why = "two capacities, the same in every channel, form one interleave set, but not the best"
        return Population.NEAR_BALANCED, f"{seen}: {why} ({_MIXING})"
    if not is_alike([placed.module for placed in socket.placed]):
        ranks = _spread([placed.module.rank for placed in socket.placed], "ranks")
        rated = _spread([placed.module.rated_MTps for placed in socket.placed], "MT/s rated")
        differ = ", ".join(part for part in (ranks, rated) if part) or "kinds"
        return Population.NEAR_BALANCED, f"{seen} alike in capacity, but the modules are not identical ({differ})"
    return Population.BALANCED, f"{seen}: every channel alike, identical modules, {required}"


def _judge_partly_covered(
    socket: SocketLoad, channels: Mapping[str, Sequence[SlotPlace]], all_channels: int
) -> tuple[Population, str]:
    """Some channels are empty: at best, one set of fewer channels."""
    count = len(channels)
    seen = f"{count} of {counted(all_channels, 'channel')} are populated, {_inventory_of(socket, socket.mapping)}"
    cost = f"at most {count / all_channels:.0%} of the socket's bandwidth is available"
    rule = rule_of(socket.platform)
    is_even = len({_sizes(placed) for placed in channels.values()}) == 1 and len(set(_sizes(socket.placed))) == 1
    # The rule of EPYC 7002 allows 12 modules, which includes two in each of six channels.
    subsets = frozenset() if rule is None else rule.subsets | ({6} if 12 in rule.near and socket.dimms == 12 else set())
    if is_even and count in subsets:
        why = f"they interleave as one set with fewer channels: {cost}"
        return Population.NEAR_BALANCED, f"{seen}: {why}; {_by_rule(socket, rule)}"
    if rule is None and is_even and count > 1 and 2 * count >= all_channels:
        name = socket.platform.name or "this processor"
        return Population.UNKNOWN, f"{seen}: {cost}; how {name} interleaves them is unknown"
    return Population.UNBALANCED, f"{seen}: {cost}; {_by_rule(socket, rule)}"


def _judge_by_counts(socket: SocketLoad) -> tuple[Population, str]:
    """The verdict from the number of modules alone, if their channels are unknown."""
    seen = _inventory(socket)
    channels = socket.platform.channels
    rule = rule_of(socket.platform)
    if socket.is_filled_evenly() and (rule is None or socket.dimms in rule.balanced):
        return Population.BALANCED, f"{seen}: every slot has the same module, {_by_rule(socket, rule)}"
    if rule is not None and socket.dimms not in (*rule.balanced, *rule.near):
        return Population.UNBALANCED, f"{seen} for {rule.channels} channels, {_by_rule(socket, rule)}"
    if rule is None and channels is not None and channels > 1 and 2 * socket.dimms < channels:
        return Population.UNBALANCED, f"{seen} for {channels} channels: most of them are empty"
    missing = "neither the slot names nor a document for this product state the channel of each slot"
    if channels is None:
        missing += "; the number of channels of the processor is also unknown"
    return Population.UNKNOWN, f"{seen}; {missing}"


_MIXING = "mixing rule: at most two capacities, the larger first; Lenovo Press LP1089, Dell installation manuals"


def _largest_first(channels: Mapping[str, Sequence[SlotPlace]]) -> bool:
    """Whether no channel has a smaller module in an earlier slot than a larger one, as far as known."""
    for placed in channels.values():
        known = sorted((one.position, one.module.size_bytes or 0) for one in placed if one.position is not None)
        if len(known) == len(placed) and any(first[1] < second[1] for first, second in pairwise(known)):
            return False
    return True


def _spread(values: Sequence[float | None], what: str) -> str:
    known = sorted({value for value in values if value is not None})
    return f"{' and '.join(f'{value:g}' for value in known)} {what}" if len(known) > 1 else ""


def _by_rule(socket: SocketLoad, rule: Interleaving | None) -> str:
    """What the platform requires, with the source, and the published loss if this is not satisfied."""
    if rule is None:
        channels, source = socket.platform.channels, socket.platform.source
        return "the general rule" + (f" (all {channels} channels alike; {source})" if channels else "")
    required = " or ".join(str(count) for count in rule.balanced)
    near = f" ({' or '.join(str(count) for count in rule.near)}: near-balanced)" if rule.near else ""
    loss = f"; {rule.loss}" if rule.loss and socket.dimms not in rule.balanced else ""
    return f"{socket.platform.name} requires {required} modules per socket{near}; {rule.source}{loss}"
