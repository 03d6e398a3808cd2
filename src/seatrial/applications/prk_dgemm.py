"""DGEMM of the Parallel Research Kernels in C++ with a BLAS (dgemm-cblas): what it prints.

The rate follows from the mean time of a multiplication and 2 n^3 operations, so damage to one of them is detected. A
run whose solution is wrong prints no `Solution validates`, and has no figure.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.text import Pattern, is_product

_KERNEL = Pattern(r"C\+\+11/CBLAS Dense matrix-matrix multiplication: C \+= A x B")
_ORDER = Pattern(r"Matrix order += ([0-9]{1,9})")
_NO_BATCHES = Pattern(r"No batching")
_VALID = Pattern(r"Solution validates")

IMPORTED = figures.imported(
    "prk-dgemm",
    "the Parallel Research Kernels",
    "How fast did DGEMM of the Parallel Research Kernels multiply matrices?",
    (figures.count("n", "order of the matrices"), figures.count("iterations", "measured multiplications")),
    (
        figures.rate("rate", "flop/s", "2 n^3 flop, over the mean time of a multiplication", figures.flops_limit()),
        figures.time("time", "mean elapsed time of a multiplication"),
    ),
)


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    log.only(_KERNEL, "line `C++11/CBLAS Dense matrix-matrix multiplication`")
    log.only(_NO_BATCHES, "line `No batching`")
    log.only(_VALID, "line `Solution validates`")
    n = log.only(_ORDER, "line `Matrix order`").whole(1, "the order of the matrix")
    rate, time = end.printed(1, "the rate"), end.printed(2, "the mean time")
    if not is_product(2e-9 * n**3, (rate.value, rate.error), (time.value, time.error)):
        raise end.error(f"{rate.value:g} Gflop/s for {time.value:g} s are not the {2 * n**3} operations of order {n}")
    return Measured([rate.rate_sample("rate", 1e9), time.sample("time")])


READER = log_reader(
    IMPORTED,
    "PRK",
    _measured,
    begin=("Parallel Research Kernels", "Parallel Research Kernels"),
    end=(r"FP64 Rate \(GF/s\): (\S{1,20}) Avg time \(s\): (\S{1,20})", "there is no `FP64 Rate (GF/s)`"),
    states={"n": _ORDER.text, "iterations": r"Number of iterations += ([0-9]{1,9})"},
)
