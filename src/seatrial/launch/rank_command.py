"""The launcher command that starts ranks, in the form common to all launchers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.frozen import Frozen


class RankCommand(Frozen):
    """`argv` comes before the program and its arguments; `variables` are set (None: unset) where it runs.

    A rank reads its number from the first of `rank_from` (environment variables) that is set. `binds`: the launcher
    binds each rank exactly as in the layout; otherwise the ranks bind themselves (launch/place.py).
    """

    argv: Sequence[str]
    rank_from: Sequence[str]
    binds: bool
    variables: Mapping[str, str | None] = {}
