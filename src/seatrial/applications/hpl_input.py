"""The input of HPL: the file HPL.dat (hpcc: hpccinf.txt), the process grids, and the order of the matrix.

The lines of the file and their order are those of HPL 2.x (HPL_pdinfo.c; HPL's page "Tuning"); hpcc 1.5 reads the same
and four lines more (src/io.c). What is not a parameter has the value of the file that comes with HPL's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.applications.running.copies import input_files

Grid = tuple[int, int]
"""Rows and columns of the grid of processes, P x Q."""

_MOST_GRIDS = 2
_WORD_B = 8
_STEP = 128
OUTPUT_FILE = "HPL.out"


def hpl_dat(n: int, blocks: Sequence[int], grids: Sequence[Grid], *, to_stdout: bool = False) -> bytes:
    """The input for a matrix of order `n`, solved once with each block size on each grid."""
    (data,) = input_files(
        "hpl",
        output=OUTPUT_FILE,
        device=6 if to_stdout else 8,
        n=n,
        blocks=len(blocks),
        sizes=" ".join(map(str, blocks)),
        grids=len(grids),
        rows=" ".join(str(p) for p, _ in grids),
        columns=" ".join(str(q) for _, q in grids),
    ).values()
    return data


def grids_of(ranks: int) -> tuple[Grid, ...]:
    """The grids to try for so many ranks: the two nearest to a square, of equal ones the flat one (P < Q) first, which
    is what HPL's page "Tuning" says of both."""
    grids = [(p, ranks // p) for p in range(1, ranks + 1) if ranks % p == 0]
    return tuple(sorted(grids, key=lambda grid: (max(grid) / min(grid), grid[0]))[:_MOST_GRIDS])


def matrix_B(n: int) -> int:
    """The bytes of a matrix of order `n`."""
    return _WORD_B * n * n


def largest_in_memory(memory_B: float) -> int:
    """The largest order whose matrix takes no more than this memory."""
    return _rounded(int((memory_B / _WORD_B) ** 0.5))


def largest_in_time(seconds: float, flops: float, cores: int) -> int:
    """The largest order that one solution takes at most so long for, at this rate in flop/s."""
    low, high = 1, 1 << 24
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if solution_s(middle, flops, cores) <= seconds else (low, middle)
    return _rounded(low)


_ELEMENT_S = 3e-8
"""What a core needs to make an element of the matrix twice, and to check with it (hpcc 1.5 at 3.4 GHz, measured)."""


def solution_s(n: int, flops: float, cores: int) -> float:
    """The time of a solution at this rate, with what is not timed: the matrix is made, and made again for the check."""
    return 2 / 3 * float(n) ** 3 / flops + _ELEMENT_S * float(n) ** 2 / cores


def _rounded(n: int) -> int:
    return max(_STEP, n // _STEP * _STEP)
