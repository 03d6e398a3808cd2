"""`place`, which binds a rank and records where it runs, `share`, which starts the ranks of a node in one container,
and `keep`, which leaves no process of a launcher running.

All are small native programs (native/launch/); this module makes their command lines and reads their files.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.launch.mpi import RankCommand
from seatrial.model.benchmark.program import Layout, ProgramRecord, parse_record
from seatrial.model.frozen import Frozen

GRACE_S = 8.0
"""The time that a launcher has to end its ranks and remove its temporary files: Open MPI takes up to two seconds."""

_RANK_FILES = "rank-[0-9][0-9][0-9][0-9][0-9][0-9]*.jsonl"


class Helpers(Frozen):
    """The paths of the programs."""

    keep: Path
    place: Path
    share: Path


def kept(helpers: Helpers, parent: int) -> list[str]:
    """The command prefix of a launcher that ends it, with all its descendants, when process `parent` ends."""
    return [str(helpers.keep), "--parent", str(parent), "--grace", f"{GRACE_S:g}", "--"]


def placed(helpers: Helpers, starter: RankCommand, layout: Layout, record: Path | None) -> list[str]:
    """The command prefix of a rank's program: empty if the launcher binds and the program itself records where it runs.

    `record`: the folder for files with the placement of each rank, for programs that do not record it.
    """
    binds = layout.is_bound and not starter.binds
    if not binds and record is None:
        return []
    prefix = [str(helpers.place), "--rank-from", ",".join(starter.rank_from), "--ranks", str(layout.ranks)]
    if binds:
        lists = layout.cpus_of_a_host or layout.cpus
        prefix += ["--cpus", "/".join(",".join(map(str, rank)) for rank in lists)]
    if record is not None:
        prefix += ["--record", str(record)]
    return [*prefix, "--"]


def shared(helpers: Helpers, name: str, option: str, holder: str, start: Sequence[str]) -> list[str]:
    """The command prefix of a rank's program that starts it in the container `name` of its node. The words `start`
    start a container; with `option` and a process id they enter that of this process. `holder` is the path inside of
    the program that holds it (places/containers/tiny_root.py)."""
    words = [str(helpers.share), "--name", name, "--option", option, "--holder", holder, "--words", str(len(start))]
    return [*words, "--", *start]


def rank_records(folder: Path) -> dict[int, ProgramRecord]:
    """Rank -> the record in its file: where it was placed, or its state when a run died.

    Raises OSError, and ProtocolError for invalid files.
    """
    records: dict[int, ProgramRecord] = {}
    for path in sorted(folder.glob(_RANK_FILES)):
        record = parse_record(path.read_bytes())
        if record.hello is not None:
            records[int(path.stem.removeprefix("rank-"))] = record
    return records


def runs_of(numbers: Sequence[int]) -> str:
    """Numbers as a list of ranges: `0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
