"""apps.psdns: M-PSDNS, the turbulence of the OLCF-6 benchmark, on the inputs of its repository; its file `log` is read
as `seatrial import psdns=FILE` does. `apps.spectral` is a code of the same kind that runs anywhere."""

from __future__ import annotations

from seatrial.benchmarks.apps.given_input import FORMAT_SEEN, Made, application
from seatrial.benchmarks.imported.psdns import BENCHMARK as IMPORTED
from seatrial.model.given_input import InputCase

_SITE = "https://github.com/austinguish/OLCF-6_M-PSDNS, folder benchmarks/SINUSOIDAL_CASES"
_SIZES = (2048, 16384, 32768)

BENCHMARK = application(
    "apps.psdns",
    "How long does M-PSDNS take for a step of turbulence?",
    IMPORTED,
    tool="M-PSDNS",
    programs=("DNS_PEN_GPU_p8.x", "DNS_PEN_GPU_p4.x"),
    install="build M-PSDNS of the OLCF-6 benchmarks and put DNS_PEN_GPU_p8.x (or _p4.x) on PATH",
    arguments=lambda params: [],
    output="log",
    cases=tuple(InputCase(f"sinusoidal-{n}", f"{n}^3 points", f"{_SITE}/{n}", files=("input",)) for n in _SIZES),
    # It writes files into this folder, and does not make it.
    made=Made(inputs=lambda params: {"MPI_timings/made": b""}, parameters=()),
    has_start=False,
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
