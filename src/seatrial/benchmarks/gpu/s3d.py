"""gpu.s3d: the rates of chemical reactions at every point of a grid, as in SHOC's S3D, taken from the simulation of
turbulent combustion of that name (J. H. Chen et al., "Terascale direct numerical simulations of turbulent combustion
using S3D", 2009).

SHOC evaluates ethylene in air, 22 species and 206 reactions, in dozens of generated kernels. Here it is hydrogen in
air, in one kernel: the part of GRI-Mech 3.0 (G. P. Smith et al.) without carbon and the reactions of nitrogen, as in
Cantera's h2o2.yaml: 10 species, two of them inert, and 29 reversible reactions, ten with third bodies, one with Troe
falloff. Each point has its own temperature (800 to 2500 K), pressure (0.9 to 1.1 atm) and mass fractions; the result is
the production rates of the 8 other species, in kg/m^3/s. A point is the same kind of work as in SHOC, but less of it;
the grids are those of SHOC.

Flop are counted in the source, without constants, with the weights of F. H. McMahon ("The Livermore Fortran kernels",
UCRL-53745, 1986): 589 additions and multiplications of 1, 12 divisions of 4, 39 exponentials and 3 logarithms of 8: 973
per point. There is no limit, because these weights are not those of a device.
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.model.benchmark.parameter import Params

_TOLERANCE = {"fp32": 1e-4, "fp64": 1e-12}
"""Of a species' rate, relative to the sum of what each reaction makes or takes of it, forwards and backwards: some ten
times what rounding does to exponents of up to 60, far below a rate that is none."""
_EDGES = {
    "fp32": {"1": 24, "2": 32, "3": 40, "4": 48, "large": 128},
    "fp64": {"1": 16, "2": 24, "3": 32, "4": 40, "large": 128},
}


def _edge(params: Params) -> int:
    return device.chosen_size(_EDGES[str(params["precision"])], params)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.s3d",
    question="How fast does a device compute chemical reaction rates?",
    words=(lambda params: ["--edge", str(_edge(params))],),
    parameters=(
        device.mode_among("S", "EP"),
        device.PRECISION,
        device.size_class(
            _EDGES["fp32"],
            "grid; 1 to 4: SHOC's 24, 32, 40 and 48 cubed in fp32, 16, 24, 32 and 40 cubed in fp64; large: 128 cubed",
        ),
    ),
    figures=(
        *device.rates("rate", "flop/s", "973 flop per point: a division counts 4, an exp or log 8", series="rates"),
        *device.rates("points", "op/s", "points whose rates are evaluated", series="rates"),
    ),
    error="error of the worst rate of a species, relative to the sum of magnitudes of its reactions",
    tolerances=_TOLERANCE,
    estimate_s=lambda params: 4.0 + _edge(params) ** 3 * 1e-6,
)
