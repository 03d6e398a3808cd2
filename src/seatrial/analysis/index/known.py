"""The contents of a folder as its index has them: nothing of its records is decoded, checked or computed again."""

from __future__ import annotations

import os
from pickle import UnpicklingError

from seatrial.analysis.index.index import damaged_lines, opened_index
from seatrial.analysis.index.records import kept_records, kept_results
from seatrial.errors import StoreError
from seatrial.store.contents import Contents, kept_environments, kept_machines, kept_studies
from seatrial.store.files import opened_folder
from seatrial.store.folder import ResultsFolder
from seatrial.store.reading import LARGE_B

_UNREADABLE = (UnpicklingError, EOFError, ValueError, TypeError, LookupError, AttributeError, ImportError)
"""What a kept result that is not one raises (pickle.loads), as after an error of the disk."""


def is_large(folder: ResultsFolder) -> bool:
    """Whether the records of a folder are so many that its index saves time. Raises StoreError."""
    with opened_folder(folder.path, "records") as descriptor:
        sizes = (os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_size for name in folder.record_files())
        return sum(sizes) >= LARGE_B


def known_contents(folder: ResultsFolder) -> Contents | None:
    """The contents of a folder from its index, which is made, or brought up to date, first. None if part of the folder
    is damaged: reading it reports each line. Raises StoreError."""
    import duckdb

    try:
        with opened_index(folder, threads=1) as connection:  # each takes memory, and rows are only fetched
            if damaged_lines(connection):
                return None
            rows = connection.execute("SELECT number, id, superseded FROM stored.experiments").fetchall()
            keys = {number: key for number, key, _ in rows}
            results = {keys[number]: result for number, result in kept_results(connection, keys.keys()).items()}
            kept = kept_records(connection, folder.path, keys)
    except (duckdb.Error, *_UNREADABLE) as error:
        raise StoreError(f"the index of {folder.path} cannot be read: {error}") from error
    experiments = {key: results[key].experiment for key in kept.records}
    damaged: list[str] = []
    return Contents(
        experiments=experiments,
        records=kept.records,
        places=kept.places,
        machines=kept_machines(folder, experiments, damaged),
        environments=kept_environments(folder, experiments, damaged),
        studies=kept_studies(folder, damaged),
        damaged=tuple(damaged),
        results=results,
        superseded=frozenset(key for _, key, is_gone in rows if is_gone),
    )
