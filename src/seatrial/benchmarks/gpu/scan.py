"""gpu.scan: the exclusive prefix sum of n numbers, counted as in SHOC's Scan: each number once."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks.gpu import device
from seatrial.benchmarks.gpu.limits import memory_limit
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_TOLERANCE = {"fp32": 1e-5, "fp64": 1e-13}
"""Of each prefix sum, relative to the root of the sum of squares, how far a random walk of such steps gets (sqrt(n/3)
for steps of (-1, 1)). Rounding grows with the root of the number of tiles that a group adds up in turn (N. J. Higham,
"The accuracy of floating point summation", 1993): 7e-7 seen for 64 tiles in fp32, 2.4e-6 for 2441; a number left out of
2^28 is 5e-5."""
_ALGORITHM = Parameter.choice(
    "algorithm",
    "auto",
    "three-kernels: sum blocks, scan their sums, scan the blocks; single-pass: decoupled look-back (D. Merrill and "
    "M. Garland, 2016), which reads each number once; auto: single-pass with CUDA, else three-kernels",
    ("auto", "three-kernels", "single-pass"),
    option="--algorithm",
)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """Half of the memory's rate: whatever the algorithm, a number is read and its sum written, and it counts once."""
    memory = memory_limit(lambda p: 2 * device.array_bytes(p))(machine, params, samples)
    if memory.value is None:
        return memory
    return Limit(memory.value / 2, memory.unit, f"{memory.derivation} / 2 (read and written)", memory.basis)


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.scan",
    question="How fast does a device compute the prefix sums of an array in its memory?",
    words=(lambda params: ["--count", str(device.array_bytes(params) // device.element_bytes(params))],),
    parameters=(
        device.mode_among("S", "EP", "TP", together="--together"),
        device.PRECISION,
        _ALGORITHM,
        device.size_class(device.ARRAY_B, "1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=device.rates(
        "bandwidth",
        "B/s",
        "each number counts once; single-pass reads it once and writes its sum, three-kernels reads it twice",
        series="scan",
        limit=_limit,
    ),
    error="error of the worst prefix sum, relative to the root of the sum of squares before it",
    tolerances=_TOLERANCE,
    estimate_s=lambda params: 2.0 + device.array_bytes(params) * 3e-8,
)
"""`size` is that of one device; for TP that of all together, where a single pass follows a look at the sums: no device
can begin before it knows what the others' numbers come to."""
