"""Runs one repeat of an experiment as the engine does, where a test asks what comes out, not how it scatters."""

from __future__ import annotations

from seatrial.engine.prepare import Ready
from seatrial.engine.repeat import make_repeat
from seatrial.model.machine import Machine
from seatrial.model.record import RepeatRecord
from seatrial.store.claim import claim
from seatrial.store.folder import ResultsFolder
from seatrial.store.writer import RecordWriter


def run_one(ready: Ready, machine: Machine, folder: ResultsFolder) -> RepeatRecord:
    """The record of the only repeat, judged."""
    claimed = claim(folder, "host", ready.experiment.id, 0, {"order": 0, "t0": 0.0})
    assert claimed is not None, "an experiment of its own for each call"
    writer = RecordWriter(folder, "host")
    try:
        return make_repeat(ready, machine, claimed, writer, keep=False)
    finally:
        writer.close()
