"""Records of the repeats that a node without Python made (jobs/node_plan.py)."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from seatrial.engine.ready import Ready
from seatrial.engine.repeat import record_made, time_limit_s
from seatrial.errors import StoreError
from seatrial.jobs.node_plan import NodeRepeat, commands_of, variables_with_lines
from seatrial.launch.local import Completed, evidence_in
from seatrial.model.machine.machine import Machine
from seatrial.probes.system import performance_variables
from seatrial.store.claim import abandoned, claim_next
from seatrial.store.folder import ResultsFolder
from seatrial.store.record_heads import read_heads
from seatrial.store.writers import RecordWriter

NOT_OBSERVED = "what else ran, clocks and load: no Python on the node"
"""In the record of each of these repeats."""
_MARK = "job_repeat"


def record_node_repeats(
    folder: ResultsFolder,
    made: Sequence[tuple[Ready, NodeRepeat]],
    machine: Machine,
    source: Path,
    job: str,
    noted: Mapping[str, Any],
    variables: Mapping[str, str],
    *,
    keep: bool,
) -> None:
    """Record these repeats of a job, each once, also if an earlier call was killed. Their folders are in `source`, and
    stay. `noted` is in each record; `variables` are those of the job. Raises StoreError."""
    host = platform.node()
    taken: dict[str, set[int]] = {}
    known: set[str] = set()
    for key in {ready.experiment.id for ready, _ in made}:
        for left in abandoned(folder, host, key):
            if _MARK in left.noted:
                left.release()  # its files are still in `source`
        heads = read_heads(folder, {key})[key]
        taken[key] = {head.repeat for head in heads}
        known |= {str(head.seen.get(_MARK)) for head in heads}
    writer = RecordWriter(folder, host)
    try:
        for order, (ready, repeat) in enumerate(made):
            mark, key = f"{job}/{repeat.folder}", ready.experiment.id
            if mark in known:
                continue
            notes = {
                **noted,
                "order": order,
                "block": f"{job}:{repeat.round}",
                "t0": repeat.began_s,
                _MARK: mark,
                "not_observed": NOT_OBSERVED,
                "variables": performance_variables(variables_with_lines(commands_of(ready), variables)),
            }
            claimed = claim_next(folder, host, key, partial(taken.__getitem__, key), notes)
            try:
                _fill(source / repeat.folder, claimed.path)
                completed = Completed(
                    repeat.status,
                    repeat.wall_s,
                    time_limit_s(ready),
                    repeat.timed_out,
                    evidence_in(claimed.path),
                    used=repeat.used,
                )
                record = record_made(ready, machine, claimed, writer, completed, keep=keep)
            except OSError as error:
                claimed.release()
                why = f"the files of a repeat in {source} cannot be read: {error.strerror or error}"
                raise StoreError(why, "free some space, and give the same command again") from error
            taken[key].add(record.repeat)
    finally:
        writer.close()


def _fill(source: Path, target: Path) -> None:
    """Copy what a repeat left into the folder of its claim. Links are not followed."""
    for entry in os.scandir(source):
        if entry.is_file(follow_symlinks=False):
            shutil.copyfile(entry.path, target / entry.name, follow_symlinks=False)
    for name in ("stdout", "stderr"):
        (target / name).touch(mode=0o600)
