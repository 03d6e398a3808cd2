"""The input of HPL: the file HPL.dat (hpcc: hpccinf.txt), the process grids, and the order of the matrix.

The lines of the file and their order are those of HPL 2.x (HPL_pdinfo.c; HPL's page "Tuning"); hpcc 1.5 reads the same
and four lines more (src/io.c). What is not a parameter has the value of the file that comes with HPL's documentation.
"""

from __future__ import annotations

from collections.abc import Sequence

Grid = tuple[int, int]
"""Rows and columns of the grid of processes, P x Q."""

_MOST_GRIDS = 2
_WORD_B = 8
_STEP = 128
_REST = """\
16.0         threshold of the scaled residual
1            # of panel fact
2            PFACTs (0=left, 1=Crout, 2=Right)
1            # of recursive stopping criterium
4            NBMINs (>= 1)
1            # of panels in recursion
2            NDIVs
1            # of recursive panel fact.
1            RFACTs (0=left, 1=Crout, 2=Right)
1            # of broadcast
1            BCASTs (0=1rg,1=1rM,2=2rg,3=2rM,4=Lng,5=LnM)
1            # of lookahead depth
1            DEPTHs (>=0)
2            SWAP (0=bin-exch,1=long,2=mix)
64           swapping threshold
0            L1 in (0=transposed,1=no-transposed) form
0            U  in (0=transposed,1=no-transposed) form
1            Equilibration (0=no,1=yes)
8            memory alignment in double (> 0)
##### what follows is read by hpcc alone #####
0            # of further sizes for PTRANS
0            values of N
0            # of further blocks for PTRANS
0            values of NB
"""
OUTPUT_FILE = "HPL.out"


def hpl_dat(n: int, blocks: Sequence[int], grids: Sequence[Grid], *, to_stdout: bool = False) -> bytes:
    """The input for a matrix of order `n`, solved once with each block size on each grid."""
    lines = (
        "HPLinpack benchmark input file",
        "written by seatrial",
        f"{OUTPUT_FILE}      output file name",
        f"{6 if to_stdout else 8}            device out (6=stdout,7=stderr,file)",
        "1            # of problems sizes (N)",
        f"{n} Ns",
        f"{len(blocks)} # of NBs",
        f"{' '.join(map(str, blocks))} NBs",
        "0            PMAP process mapping (0=Row-,1=Column-major)",
        f"{len(grids)} # of process grids (P x Q)",
        f"{' '.join(str(p) for p, _ in grids)} Ps",
        f"{' '.join(str(q) for _, q in grids)} Qs",
    )
    return ("".join(f"{line}\n" for line in lines) + _REST).encode()


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
