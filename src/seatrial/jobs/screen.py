"""Screen a cluster for its odd nodes, devices, links and switches, from results that are there."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.analysis.folder import tell_of_folder
from seatrial.analysis.screening.gathered import ScreenFolder, screen_folder
from seatrial.analysis.screening.inputs import screen_input
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.errors import UsageError
from seatrial.jobs.folder import JobFolder
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import Fabric
from seatrial.model.study.screen import MARGIN, Screen
from seatrial.model.study.study import refuse_margin
from seatrial.store.folder import ResultsFolder

FEWEST_NODES = 2


def screen(
    folders: Sequence[str | Path],
    fabric: Fabric | None = None,
    margin: float = MARGIN,
    *,
    switch_of: Mapping[str, str] | None = None,
    not_apart: Iterable[tuple[str, str]] = (),
    missing: Sequence[str] = (),
    with_later: bool = True,
) -> Screen:
    """The odd nodes, devices, links and switches in results of one cluster; nothing is measured.

    `folders` are results folders, of all nodes or of one node each; `fabric` tells which nodes share a switch.
    `switch_of` does so without a fabric; messages between nodes of `not_apart`, which share CPUs, are ignored.
    `missing` says what could not be measured. Without `with_later`, what was measured again is ignored.
    `margin`: nodes that differ from the others by less than this share are not named. Raises UsageError for a folder
    that is missing, and if there are results of fewer than two nodes.
    """
    refuse_margin(margin)
    if not folders:
        raise UsageError("no results folder given", "seatrial screen --from DIR, with the results of several nodes")
    measured = [_read(Path(folder)) for folder in folders]
    of_nodes, ratio = places(fabric) if fabric is not None else (dict(switch_of or {}), None)
    given = screen_input(measured, of_nodes, ratio, _confirmed_s(folders))
    if len(given.nodes) < FEWEST_NODES:
        found = f"results of one node ({given.nodes[0]})" if given.nodes else "no results with the name of their node"
        raise UsageError(
            f"{found} cannot be screened: there is nothing to compare it with",
            f"measure at least {FEWEST_NODES} nodes into the same folder, or give --from for the folder of each",
        )
    if not with_later:
        given = replace(given, figures=tuple(replace(figure, later={}) for figure in given.figures))
    answer = screen_cluster(replace(given, not_apart=frozenset(not_apart)), margin)
    return replace(answer, not_screened=(*missing, *answer.not_screened))


def _read(path: Path) -> ScreenFolder:
    """What a screen uses of a folder; damaged lines are logged. Raises UsageError if there is no folder, or no repeat
    in it."""
    found = screen_folder(ResultsFolder.existing(path))
    tell_of_folder(path, found.damaged, is_empty=not found.experiments)
    return found


def places(fabric: Fabric) -> tuple[dict[str, str], float | None]:
    """Node -> name of its leaf switch, and the designed oversubscription of leaf switches (None: not known)."""
    switch_of = {
        node: fabric.switch_by_id[switch].name or switch
        for switch, nodes in fabric.nodes_of_switch.items()
        for node in nodes
    }
    ratio = next((level.ratio for level in fabric.oversubscription if level.level == 1), None)
    return switch_of, ratio


class JobRow(Frozen):
    """One job. Times are in seconds since 1970, None if not known; `state` is what its files say."""

    batch_id: str
    where: str
    host: str
    nodes: int
    submitted_s: float | None
    started_s: float | None
    ended_s: float | None
    state: str
    measured: str

    @property
    def wait_s(self) -> float | None:
        """How long it waited; clocks of hosts may differ, so never below 0."""
        if self.submitted_s is None or self.started_s is None:
            return None
        return max(0.0, self.started_s - self.submitted_s)

    @property
    def ran_s(self) -> float | None:
        """How long it ran."""
        if self.started_s is None or self.ended_s is None:
            return None
        return max(0.0, self.ended_s - self.started_s)


def jobs_of(folders: Sequence[str | Path]) -> tuple[JobRow, ...]:
    """The jobs that measured into these folders, in order of submission. Raises StoreError."""
    rows = [_job_row(job) for folder in folders for job in JobFolder.all(ResultsFolder.existing(Path(folder)))]
    return tuple(sorted(rows, key=lambda row: row.submitted_s or 0.0))


def _confirmed_s(folders: Sequence[str | Path]) -> dict[str, list[tuple[float, float]]]:
    """Node -> when jobs measured it again because it was odd: from and until, by its clock."""
    found: dict[str, list[tuple[float, float]]] = {}
    for job in (job for folder in folders for job in JobFolder.all(ResultsFolder.existing(Path(folder)))):
        request, start = job.request, job.start()
        if request.get("confirms") and start is not None:
            ended_s = job.ended_s()  # in whole seconds, rounded down
            found.setdefault(start.host, []).append((start.time_s, math.inf if ended_s is None else ended_s + 1.0))
    return found


def _job_row(job: JobFolder) -> JobRow:
    request = job.request
    start, over = job.start(), job.over()
    targets, nodes = request.get("targets"), request.get("nodes")
    return JobRow(
        batch_id=job.batch_id or "",
        where=str(request.get("where", "")),
        host="" if start is None else start.host,
        nodes=nodes if isinstance(nodes, int) and nodes > 0 else 1,
        submitted_s=job.submitted_s or None,
        started_s=None if start is None else start.time_s,
        ended_s=job.ended_s(),
        state=job.phase().value if over is None else over.state,
        measured=", ".join(map(str, targets)) if isinstance(targets, list) else "",
    )
