"""`place`, which binds a rank and tells where it is, and `keep`, which leaves nothing of a launcher running.

Both are small programs of ours (native/launch/): their words, and what they leave in a repeat's folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from seatrial.launch.rank_command import RankCommand
from seatrial.model.layout import Layout
from seatrial.model.protocol import ProgramRecord, parse_record

GRACE_S = 8.0
"""How long a launcher has to end its ranks and to clear away what it laid down: Open MPI takes up to two seconds."""

_RANK_FILES = "rank-[0-9][0-9][0-9][0-9][0-9][0-9]*.jsonl"


@dataclass(frozen=True, slots=True)
class Helpers:
    """Where the two programs lie."""

    keep: Path
    place: Path


def kept(helpers: Helpers, parent: int) -> list[str]:
    """The words before a launcher's: it is ended with process `parent`, with all that comes from it."""
    return [str(helpers.keep), "--parent", str(parent), "--grace", f"{GRACE_S:g}", "--"]


def placed(helpers: Helpers, starter: RankCommand, layout: Layout, record: Path | None) -> list[str]:
    """The words before a rank's program: none where the launcher binds and the program itself tells where it is.

    `record`: the folder into which each rank's place is written, for programs that do not tell.
    """
    binds = layout.is_bound and not starter.binds
    if not binds and record is None:
        return []
    words = [str(helpers.place), "--rank-from", ",".join(starter.rank_from), "--ranks", str(layout.ranks)]
    if binds:
        lists = layout.cpus_of_a_host or layout.cpus
        words += ["--cpus", "/".join(",".join(map(str, rank)) for rank in lists)]
    if record is not None:
        words += ["--record", str(record)]
    return [*words, "--"]


def rank_records(folder: Path) -> dict[int, ProgramRecord]:
    """Rank -> what its own file holds: where ranks were placed, or where they were when a run died.

    Raises OSError, and ProtocolError for files that no program of ours would write.
    """
    records: dict[int, ProgramRecord] = {}
    for path in sorted(folder.glob(_RANK_FILES)):
        record = parse_record(path.read_bytes())
        if record.hello is not None:
            records[int(path.stem.removeprefix("rank-"))] = record
    return records


def runs_of(numbers: Sequence[int]) -> str:
    """Numbers as people write them: `0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
