"""Writes a platform file for SimGrid's SMPI (`smpirun -platform`) from measured figures.

Each rank has its own host ("core") of 1 Gflop/s and its own link; all pairs of ranks communicate alike, with the
figures of the measured pair. The file contains SMPI's factors, as fitted by `analysis.network_fit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from xml.sax.saxutils import quoteattr

from seatrial.analysis.network_fit import EAGER_B, Affine, fit_network
from seatrial.report.profile.simgrid_ti import FLOPS_PER_S

HOST_PREFIX = "core-"


def platform_xml(
    one_way_s: Mapping[int, float],
    bandwidth_Bps: Mapping[int, float],
    hosts: int,
    ranks_per_host: int = 1,
    eager_B: int = EAGER_B,
) -> str:
    """The platform file. Tables map message sizes in bytes to one-way seconds of `mpi.latency` and to bytes per second
    of `mpi.bandwidth`. Sends of fewer than `eager_B` bytes do not wait for their receiver.

    Raises UsageError if a table is too small to be fitted.
    """
    fit = fit_network(one_way_s, bandwidth_Bps, eager_B)
    settings = {
        "surf/precision": "1e-10",
        "network/crosstraffic": "0",  # each direction of a link has its own bandwidth here
        "network/TCP-gamma": "1e15",  # no TCP window limits a message
        "smpi/bw-factor": ";".join(f"{p.above_B}:{1 / (p.s_per_B * fit.bandwidth_Bps):.9g}" for p in fit.wire),
        "smpi/lat-factor": ";".join(f"{p.above_B}:{p.at_zero_s / fit.latency_s:.9g}" for p in fit.wire),
        **dict.fromkeys(("smpi/os", "smpi/ois"), _overheads(fit.sender)),
        "smpi/or": _overheads(fit.receiver),
        "smpi/async-small-thresh": str(fit.eager_B),
        "smpi/send-is-detached-thresh": str(fit.eager_B),
    }
    last = hosts * ranks_per_host - 1
    link = f'bw="{fit.bandwidth_Bps:.9g}Bps" lat="{fit.latency_s / 2:.9g}s"'
    loop = f'loopback_bw="{fit.bandwidth_Bps:.9g}Bps" loopback_lat="{fit.latency_s:.9g}s"'
    lines = [
        "<?xml version='1.0'?>",
        '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">',
        '<platform version="4.1">',
        "  <config>",
        *(f"    <prop id={quoteattr(name)} value={quoteattr(value)}/>" for name, value in settings.items()),
        "  </config>",
        f'  <cluster id="measured" prefix="{HOST_PREFIX}" suffix="" radical="0-{last}"',
        f'           speed="{FLOPS_PER_S / 1e9:g}Gf" {link}',
        f"           {loop}/>",
        "</platform>",
    ]
    return "\n".join(lines) + "\n"


def host_file(ranks: int) -> str:
    """The file for `smpirun -hostfile`: one host per rank."""
    return "".join(f"{HOST_PREFIX}{rank}\n" for rank in range(ranks))


def _overheads(parts: Sequence[Affine]) -> str:
    return ";".join(f"{part.above_B}:{part.at_zero_s:.9g}:{part.s_per_B:.9g}" for part in parts)
