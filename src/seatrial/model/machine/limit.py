"""Limits: upper bounds of figures with their derivations, and the formulas for them.

A limit that cannot be derived has the value None and a derivation that states what is missing; it is never guessed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Positive, Sparse
from seatrial.model.units import SIUnit

IMPOSSIBLE_ABOVE = 1.02
"""A value above this multiple of a physical limit is a measurement error, not a fast machine."""


class Basis(StrEnum):
    """What a limit is based on."""

    PHYSICAL = "physical"
    MEASURED = "measured"
    UNKNOWN = "unknown"


class Limit(Frozen):
    """The upper bound of a figure, with its derivation.

    `value` is in `unit`; None when unknown. `confirmed` is False if the derivation uses values that were neither
    documented nor measured: such a limit is shown, but a figure above it is not a measurement error.
    """

    value: Positive | None
    unit: SIUnit
    derivation: str
    basis: Basis
    confirmed: Sparse[Annotated[bool, "Absent: confirmed."]] = True

    @classmethod
    def unknown(cls, unit: SIUnit, missing: str) -> Limit:
        """A limit that cannot be derived; `missing` states why."""
        return cls(None, unit, missing, Basis.UNKNOWN)

    @property
    def is_physical(self) -> bool:
        """Whether a value above it is impossible."""
        return self.value is not None and self.basis is Basis.PHYSICAL and self.confirmed


DRAM_CHANNEL_BYTES = 8
"""Data width of a DDR4 channel, and of the two sub-channels of a DDR5 channel together (JESD79-4, JESD79-5)."""


def dram_bandwidth(
    populated_channels: int, configured_MTps: float, where: str = "", *, confirmed: bool = True
) -> Limit:
    """Peak of a set of DRAM channels: populated channels x 8 B x transfer rate. Never slots, never the rated speed."""
    value = populated_channels * DRAM_CHANNEL_BYTES * configured_MTps * 1e6
    derivation = f"{populated_channels} populated channels x 8 B x {configured_MTps:g} MT/s configured"
    return Limit(value, "B/s", derivation + (f" ({where})" if where else ""), Basis.PHYSICAL, confirmed)


def soldered_bandwidth(devices: Sequence[tuple[int, float]], speed: str, where: str) -> Limit:
    """Peak of memory devices that each have their own bus (LPDDR, HBM): the sum of width x transfer rate.

    `devices` are (bits without those for ECC, MT/s); `speed` states which rate it is ("configured", "rated").
    """
    value = sum(bits / 8 * rate * 1e6 for bits, rate in devices)
    terms = (
        f"{f'{count} x ' if count > 1 else ''}{bits} bit x {rate:g} MT/s"
        for (bits, rate), count in Counter(devices).items()
    )
    return Limit(value, "B/s", f"{' + '.join(terms)} {speed} ({where})", Basis.PHYSICAL)


ELEMENT_BITS = {"fp64": 64, "fp32": 32}
"""Precision -> width of a number."""

CLOCK_OF_THE_RUN = "measured in the run"


class FmaUnit(Frozen):
    """The FMA hardware of a core: pipes, bits of a vector in each, cycles from an FMA to a dependent one (None:
    unknown). `confirmed` is False if one of these is not documented."""

    pipes: int
    vector_bits: int
    latency_cycles: float | None
    source: str
    confirmed: bool = True


def fma_rate(cores: Sequence[tuple[float, FmaUnit]], precision: str, clock: str = CLOCK_OF_THE_RUN) -> Limit:
    """Peak FMA rate of some cores, each with its own clock (Hz) and unit: sum of clock x pipes x lanes x 2 flop.

    An FMA counts as 2 flop. `clock` states the source of the clocks, for the derivation. Equal cores make one term of
    it.
    """
    terms: dict[tuple[int, int, str], list[float]] = {}
    for clock_Hz, unit in cores:
        terms.setdefault((unit.pipes, unit.vector_bits, unit.source), []).append(clock_Hz)
    total = 0.0
    derivation: list[str] = []
    for (pipes, vector_bits, source), clocks_Hz in terms.items():
        lanes = vector_bits // ELEMENT_BITS[precision]
        flop_per_cycle = pipes * lanes * 2
        total += sum(clocks_Hz) * flop_per_cycle
        mean_GHz = sum(clocks_Hz) / len(clocks_Hz) / 1e9
        derivation.append(
            f"{len(clocks_Hz)} core{'s' if len(clocks_Hz) > 1 else ''} x {mean_GHz:.3f} GHz {clock} x "
            f"{flop_per_cycle} flop/cycle ({pipes} FMA pipes x {lanes} {precision} lanes x 2; {source})"
        )
    confirmed = all(unit.confirmed for _, unit in cores)
    return Limit(total, "flop/s", " + ".join(derivation), Basis.PHYSICAL, confirmed)


_PCIE_ENCODING = {2.5: 8 / 10, 5.0: 8 / 10, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
"""GT/s -> payload share of the raw rate. PCIe 6.0 sends FLITs of 256 B, of which CRC (8 B) and FEC (6 B) leave 242."""

PCIE_GTps = tuple(_PCIE_ENCODING)
"""The speeds of a lane, from the first generation to the sixth."""


def pcie_bandwidth(GTps: float, lanes: int) -> Limit:
    """Raw rate of a PCIe link, per direction, after encoding and before protocol: lanes x GT/s x encoding / 8."""
    encoding = _PCIE_ENCODING.get(GTps)
    if encoding is None or lanes <= 0:
        return Limit.unknown("B/s", f"no PCIe generation runs at {GTps:g} GT/s on {lanes} lanes")
    value = lanes * GTps * 1e9 * encoding / 8
    return Limit(value, "B/s", f"x{lanes} x {GTps:g} GT/s x {encoding:.4g} encoding / 8 bit", Basis.PHYSICAL)
