"""What the imported benchmarks of molecular dynamics share: the time of a simulated nanosecond, and of a step."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, text_parameter
from seatrial.model.benchmark import Better, Figure
from seatrial.model.parameter import Params
from seatrial.model.sample import Sample

_A_DAY_S = 86400.0

PARAMETERS = (
    count_parameter("atoms", "atoms of the system"),
    count_parameter("steps", "time steps of the run"),
    text_parameter("timestep", "simulated time of a step (2 fs)"),
    count_parameter("nodes", "hosts"),
    count_parameter("ranks", "processes"),
    count_parameter("threads", "threads of each process that compute"),
)


def time_per_ns_figure(name: str, work: str) -> Figure:
    """Elapsed seconds per simulated nanosecond: lower is better. Users know it as ns/day."""
    return Figure(name, name, "s", Better.LOWER, _elapsed, work, customary=ns_per_day)


def ns_per_day(params: Params, ns_s: float) -> str:
    """Seconds per simulated nanosecond in the customary unit."""
    value = _A_DAY_S / ns_s
    return f"{value:.4g} ns/day"


def _elapsed(sample: Sample) -> float:
    return sample.elapsed_s
