"""Compare two sides, or one folder along an axis."""

from __future__ import annotations

from pathlib import Path

from seatrial.analysis.compare_along import Comparisons, compare_along
from seatrial.analysis.compare_folders import NamedFolder, compare_folders
from seatrial.analysis.compare_reference import PREFIX, compare_with_reference
from seatrial.analysis.measured_again import second_stage
from seatrial.errors import UnknownNameError, UsageError, nearest_names
from seatrial.interface.folder import contents_in
from seatrial.model.study import DEFAULT_MARGIN
from seatrial.model.study_result import Compared


def compare(*sides: str | Path, along: str | None = None, margin: float = DEFAULT_MARGIN) -> Comparisons:
    """Compare two results folders (baseline, candidate), one of which may be a published value (`reference:ID`), or
    the results in one folder `along` an axis: a parameter, node, repeat, rank, pair. Two folders along `node` are a
    screen and its second stage: new repeats of the farthest nodes, and of others beside them.

    `margin` is the relative difference (0.02 is 2 %) that counts as none. Nothing is measured, and every verdict has
    its interval. Raises UsageError if there is nothing to compare.
    """
    refuse_margin(margin)
    if along is not None:
        if along == "node" and len(sides) == 2:
            first, again = (contents_in(Path(side)) for side in sides)
            return Comparisons(screen=second_stage(first, again, margin))
        if len(sides) != 1:
            if len(sides) == 2 and nearest_names(along, ["node"]):
                raise UnknownNameError("axis along which two folders are compared", along, ["node"])
            raise UsageError(
                "--along takes one results folder, or two with --along node",
                "seatrial compare DIR --along AXIS, or seatrial compare SCREEN AGAIN --along node",
            )
        return compare_along(contents_in(Path(sides[0])), along, margin)
    if len(sides) != 2:
        raise UsageError(
            f"compare takes two sides, or one results folder with --along, not {len(sides)}",
            "seatrial compare A B, or seatrial compare DIR --along AXIS (node, repeat, rank, pair, or a parameter)",
        )
    return Comparisons((_two_sides(str(sides[0]), str(sides[1]), margin),))


def refuse_margin(margin: float) -> None:
    """Raise UsageError for a margin that is not a share."""
    if not 0 < margin < 1:
        raise UsageError(f"margin={margin!r} is not between 0 and 1", "give a fraction: 0.02 is 2 %")


def _two_sides(baseline: str, candidate: str, margin: float) -> Compared:
    if baseline.startswith(PREFIX) or candidate.startswith(PREFIX):
        folders = {side: contents_in(Path(side)) for side in (baseline, candidate) if not side.startswith(PREFIX)}
        return compare_with_reference(baseline, candidate, folders, margin)
    return compare_folders(
        NamedFolder(baseline, contents_in(Path(baseline))), NamedFolder(candidate, contents_in(Path(candidate))), margin
    )
