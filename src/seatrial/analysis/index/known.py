"""The figures of experiments as an index has them, so that those of a large folder are not computed from its samples by
each command."""

from __future__ import annotations

import os

from seatrial.analysis.index.chunk import ChunkReader
from seatrial.analysis.index.finish import finished, summaries
from seatrial.analysis.index.index import opened_index
from seatrial.model.results.figure_result import Computed
from seatrial.store.contents import kept_facts, kept_machine_keys
from seatrial.store.files import opened_folder
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import LARGE_B


def is_large(folder: ResultsFolder) -> bool:
    """Whether the records of a folder are so many that its index saves time. Raises StoreError."""
    with opened_folder(folder.path, "records") as descriptor:
        sizes = (os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size for name in folder.record_files())
        return sum(sizes) >= LARGE_B


def computed_figures(folder: ResultsFolder) -> dict[str, Computed]:
    """By experiment. The index is made, or brought up to date, first. Raises StoreError."""
    with opened_index(folder) as connection:
        numbers = dict(connection.execute("SELECT number, id FROM stored.experiments").fetchall())
        experiments = kept_facts(folder, dict.fromkeys(numbers.values(), 0), []).experiments
        reader = ChunkReader(folder.path, experiments, kept_machine_keys(folder, experiments, []))
        wanted = {number: experiments[key] for number, key in numbers.items() if key in experiments}
        found = summaries(connection)
        results = finished(connection, reader, wanted, found, keeps_repeats=True)
    return {
        one.id: Computed(
            one.outcome,
            one.figures if one.emulated is None else one.emulated.figures,
            found[number].n_repeats,
            found[number].last_t0,
        )
        for number, one in results.items()
        if one.outcome.is_ok or not one.figures
    }
