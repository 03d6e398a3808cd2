"""gpu.sort: a stable radix sort of 32-bit keys, with 32-bit values (SHOC's Sort) or alone."""

from __future__ import annotations

from seatrial.benchmarks.gpu import device
from seatrial.model.benchmark.parameter import Parameter, Params

_ALGORITHM = Parameter.choice(
    "algorithm",
    "auto",
    "lsd: 8 passes of 4 bits, each by three kernels (N. Satish et al., 2009); onesweep: 4 passes of 8 bits with "
    "decoupled look-back (A. Adinets and D. Merrill, 2022); auto: onesweep with CUDA, else lsd",
    ("auto", "lsd", "onesweep"),
    option="--algorithm",
)
_PAYLOAD = Parameter.choice(
    "payload", "pairs", "pairs: keys with values; keys: keys alone", ("pairs", "keys"), option="--payload"
)


def _count(params: Params) -> list[str]:
    key_B = 8 if params["payload"] == "pairs" else 4  # with its value
    return ["--count", str(device.array_bytes(params) // key_B)]


BENCHMARK = device.benchmark(
    __file__,
    name="gpu.sort",
    question="How fast does a device sort keys, with or without values?",
    words=(_count,),
    parameters=(
        device.mode_among("S", "EP"),
        _ALGORITHM,
        _PAYLOAD,
        device.size_class(device.ARRAY_B, "size of keys and values; 1 to 4: SHOC's 1, 8, 32 and 64 MiB; large: 1 GiB"),
    ),
    figures=(
        *device.rates("keys", "op/s", "keys sorted, with their values if any; no copies beforehand", series="sort"),
        *device.rates("bandwidth", "B/s", "sorted data counts once: 8 B per pair, 4 B per key alone", series="sort"),
    ),
    error="keys and values whose position differs from a stable sort on the host",
    estimate_s=lambda params: 2.0 + device.array_bytes(params) * 3e-8,  # mostly the host's own sort
)
"""No limit: how often keys pass through memory is the algorithm's affair. For each pair LSD makes 8 passes of 20 B
(keys are read twice), Onesweep 4 of 16 B after one look at the keys."""
