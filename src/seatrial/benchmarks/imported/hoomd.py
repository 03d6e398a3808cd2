"""imported.hoomd: how fast HOOMD-blue simulated."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.benchmarks.imported.declarations import (
    choice_parameter,
    count_parameter,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)
from seatrial.model.parameter import Params


def _steps_per_second(params: Params, step_s: float) -> str:
    return f"{1 / step_s:.4g} steps/s"


def _hours(params: Params, many_s: float) -> str:
    return f"{many_s / 3600:.4g} h"


BENCHMARK = imported(
    "hoomd",
    "HOOMD-blue",
    "How fast did HOOMD-blue simulate?",
    (
        choice_parameter("method", "molecular dynamics, or Monte Carlo of hard particles", "md", "hpmc"),
        count_parameter("particles", "particles of the system"),
        count_parameter("steps", "time steps of a run"),
        count_parameter("ranks", "processes"),
        text_parameter("device", "GPU, as named in the file"),
        choice_parameter("precision", "precision of the build", "fp64", "fp32"),
    ),
    (
        replace(
            time_figure("step", "elapsed time of a time step, by the mean rate of the runs"),
            customary=_steps_per_second,
        ),
        rate_figure("mps", "op/s", "particle steps (md) or trial moves (hpmc), of all particles"),
        replace(
            time_figure(
                "ten_million_steps",
                "elapsed time of 10e6 = 10 million steps (md), or trial moves of each particle (hpmc)",
            ),
            customary=_hours,
        ),
    ),
)
