"""Spans of record files: a large file is read in parts."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.store.files import opened_file, opened_folder, reason
from seatrial.store.folder import ResultsFolder

SPAN_B = 32 << 20
"""Bytes of a record file that are read at a time."""
_BLOCK_B = 1 << 20


class Span(Frozen):
    """Whole lines of a record file: bytes from `start` up to `end`, where the last line may be torn."""

    file: str
    start: int
    end: int


def spans_of(folder: ResultsFolder) -> list[Span]:
    """The files of records, each whole. Raises StoreError.

    What is not a file is there, too, so that reading it says what it is.
    """
    found = []
    try:
        with opened_folder(folder.path, "records") as descriptor:
            for name in folder.record_files():
                with suppress(FileNotFoundError):
                    state = os.lstat(name, dir_fd=descriptor)
                    found.append(Span(name, 0, state.st_size if stat.S_ISREG(state.st_mode) else 1))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder.path / 'records'} cannot be read: {reason(error)}") from error
    return found


def parts_of(folder: ResultsFolder, span: Span) -> Iterator[Span]:
    """Spans of about `SPAN_B` that end with a line."""
    start = span.start
    while start < span.end:
        end = span.end
        if end - start > SPAN_B:
            try:
                with opened_file(folder.path, "records", span.file) as stream:
                    stream.seek(start + SPAN_B - 1)
                    while (part := stream.readline(_BLOCK_B)) and not part.endswith(b"\n"):
                        pass
                    end = min(span.end, stream.tell())
            except OSError as error:
                raise StoreError(f"{folder.path / 'records' / span.file} cannot be read: {reason(error)}") from error
        yield replace(span, start=start, end=end)
        start = end
