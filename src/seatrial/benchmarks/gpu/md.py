"""gpu.md: Lennard-Jones forces between atoms (J. E. Lennard-Jones, 1924), as in SHOC's MD: each atom has a list of its
128 nearest neighbours, of which those within the cutoff of 4 contribute.

Atoms are placed randomly near the points of a lattice with about the density of SHOC's smallest class, in random order,
in a box that is not periodic. (SHOC places them anywhere; two very close atoms then have forces beyond fp32.)
"""

from __future__ import annotations

from seatrial.benchmarks.gpu import device

_TOLERANCE = {"fp32": 2e-5, "fp64": 4e-14}
"""Of the worst atom's force, relative to the sum of magnitudes of its pairs' forces: above rounding, below what a near
neighbour more or less does. Lists are in no order, so a list cut short misses near neighbours of some atom."""
_ATOMS = {"1": 12288, "2": 24576, "3": 36864, "4": 73728, "large": 1_000_000}
_NEIGHBOURS = 128


_OPS = "8 flop per distance to a neighbour, 13 per force from a neighbour within the cutoff"

BENCHMARK = device.benchmark(
    __file__,
    name="gpu.md",
    question="How fast does a device compute the forces between atoms?",
    parameters=(
        device.mode_among("S", "EP"),
        device.PRECISION,
        device.size_class(_ATOMS, "1 to 4: SHOC's 12288, 24576, 36864 and 73728 atoms; large: 1000000", "--atoms"),
    ),
    figures=device.rates("rate", "flop/s", _OPS, "ops", series="forces"),
    error="error of the worst atom's force, relative to its pairs' forces",
    tolerances=_TOLERANCE,
    words=(("--neighbours", str(_NEIGHBOURS)),),
    estimate_s=lambda params: 2.0 + device.chosen_size(_ATOMS, params) * 2e-5,
)
