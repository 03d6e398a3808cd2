"""What the benchmarks of message passing share: how many ranks, where they are, what memory they send from.

Their figures come from the result files of other tools. Such a file does not tell everything, and what it does not
tell is `unknown`: nobody may take two results for one experiment because both were silent.
"""

from __future__ import annotations

from itertools import permutations

from seatrial.model.benchmark import Elsewhere
from seatrial.model.machine import Machine
from seatrial.model.parameter import Parameter, ParameterKind, Params

UNKNOWN = "unknown"
"""The value of a parameter that an imported file does not tell."""

NOT_TOLD = f"{UNKNOWN}: an imported file does not tell"

RANKS = Parameter("ranks", ParameterKind.INTEGER, UNKNOWN, f"ranks; {NOT_TOLD}", words=(UNKNOWN,), minimum=1)

NODES = Parameter(
    "nodes", ParameterKind.INTEGER, UNKNOWN, f"nodes that the ranks are on; {NOT_TOLD}", words=(UNKNOWN,), minimum=1
)

_MIXED = tuple(f"{a}-{b}" for a, b in permutations(("host", "device", "managed"), 2))

BUFFERS = Parameter(
    "buffers",
    ParameterKind.CHOICE,
    "host",
    "memory that is sent from and received in; two words: of the sender, of the receiver",
    words=("host", "device", "managed", *_MIXED),
)

DATATYPE = Parameter("datatype", ParameterKind.TEXT, "MPI_CHAR", "MPI datatype of the elements")

FROM_OTHER_TOOLS = Elsewhere(
    why="seatrial has no MPI program yet: import a result (seatrial import osu=FILE or imb=FILE)", is_to_come=True
)


def no_placement(machine: Machine, params: Params) -> tuple[int, ...]:
    """No CPU: what is imported ran elsewhere, and the launcher placed it."""
    return ()
