"""Lane speeds of InfiniBand.

Source: IBTA, InfiniBand Architecture Specification Volume 2 and the InfiniBand roadmap. SDR, DDR and QDR use 8b/10b,
FDR10 to EDR 64b/66b; from HDR on, the name states the data rate of a lane, after FEC.
"""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.fabric.parts import LinkRate

LANE_bps: Mapping[str, float] = {
    "SDR": 2.5e9 * 8 / 10,
    "DDR": 5e9 * 8 / 10,
    "QDR": 10e9 * 8 / 10,
    "FDR10": 10.3125e9 * 64 / 66,
    "FDR": 14.0625e9 * 64 / 66,
    "EDR": 25.78125e9 * 64 / 66,
    "HDR": 50e9,
    "NDR": 100e9,
    "XDR": 200e9,
}
"""Name -> bit/s of one lane after encoding, slowest first."""

SIGNALLING: Mapping[str, str] = {
    "2.5": "SDR",
    "5.0": "DDR",
    "10.0": "QDR",
    "14.0625": "FDR",
    "25.78125": "EDR",
    "53.125": "HDR",
    "106.25": "NDR",
    "212.5": "XDR",
}
"""Gbit/s of a lane on the wire, as the tools write it -> name of the speed."""

WIDTHS = (1, 2, 4, 8, 12)
UNKNOWN_WIDTH = "??"
UNKNOWN_SPEED = "???"
"""What infiniband-diags write for a width or speed that they do not know."""


def rate_Bps(rate: LinkRate) -> float | None:
    """The rate of a link in B/s per direction; None if a part of it is unknown."""
    if rate.width is None or rate.speed is None:
        return None
    return rate.width * LANE_bps[rate.speed] / 8


def show_rate(rate: LinkRate) -> str:
    """As ibnetdiscover writes it: "4xEDR"."""
    return f"{rate.width if rate.width is not None else '?'}x{rate.speed or '?'}"
