"""What a link can do at most: as the tool states it, or inferred from other links of the same hardware.

`iblinkinfo` compares what both ends support. `ibnetdiscover` does not, so there it is inferred:

* The ports of a switch are alike: each end can do what the fastest link between switches at that switch does.
* Adapters of one model mostly are. A link of an adapter is compared with those of all adapters of its model; it counts
  as slow if only few are slower than the rest. One chip is sold with several speeds, so if more differ, nothing is
  inferred.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from seatrial.fabric.links import Cable
from seatrial.fabric.parts import DevicePart, LinkRate, PartKind
from seatrial.fabric.rates import rate_Bps
from seatrial.model.machine.fabric import CapableBasis

_FEWEST_OF_MODEL = 5
_MOST_SLOW = 0.05
"""The largest share of slow links of a model at which they are exceptions; a single one always is."""

Capability = tuple[float | None, CapableBasis | None]

_UNKNOWN: Capability = (None, None)


class Capabilities:
    """The capable rate of each link, in B/s."""

    def __init__(self, cables: Sequence[Cable], devices: Mapping[str, DevicePart]) -> None:
        self._devices = devices
        self._best_of_switch: dict[str, float] = {}
        of_model: dict[str, Counter[LinkRate]] = {}
        for cable in cables:
            rate = rate_Bps(cable.rate)
            if rate is None:
                continue
            kinds = [devices[device].kind for device, _ in cable.ends]
            for device, _ in cable.ends if kinds == [PartKind.SWITCH, PartKind.SWITCH] else ():
                self._best_of_switch[device] = max(self._best_of_switch.get(device, 0.0), rate)
            for model in self._models(cable):
                of_model.setdefault(model, Counter())[cable.rate] += 1
        self._usual = {model: rate for model, found in of_model.items() if (rate := _usual(found)) is not None}

    def _models(self, cable: Cable) -> list[str]:
        parts = [self._devices[device] for device, _ in cable.ends]
        return [part.model for part in parts if part.kind is PartKind.ADAPTER and part.model is not None]

    def of(self, cable: Cable) -> Capability:
        """The capable rate of a link, and how it is known."""
        if cable.could is not None:
            stated = rate_Bps(cable.could)
            return _UNKNOWN if stated is None else (stated, CapableBasis.STATED)
        if rate_Bps(cable.rate) is None:
            return _UNKNOWN
        found: list[float] = []
        for device, _ in cable.ends:
            part = self._devices[device]
            if part.kind is PartKind.SWITCH:
                found += [self._best_of_switch[device]] if device in self._best_of_switch else []
            elif part.model in self._usual:
                found.append(self._usual[part.model])
            else:
                return _UNKNOWN
        return (min(found), CapableBasis.INFERRED) if found else _UNKNOWN


def _usual(found: Counter[LinkRate]) -> float | None:
    """The rate of all links of a model but a few exceptions, which are slower; None if there is no such rate."""
    total = found.total()
    if total < _FEWEST_OF_MODEL:
        return None
    rates = {rate: rate_Bps(rate) or 0.0 for rate in found}
    fastest = max(rates.values())
    slow = sum(number for rate, number in found.items() if rates[rate] < fastest)
    return fastest if slow <= max(1, _MOST_SLOW * total) else None
