"""Spans of record files, and the processes that read those of a large folder: decoding is most of that work."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from msgspec.structs import replace

from seatrial.errors import StoreError
from seatrial.model.frozen import Frozen
from seatrial.processes.working_folder import without_working_folder
from seatrial.store.files import opened_file, opened_folder, reason
from seatrial.store.folder import ResultsFolder

SPAN_B = 32 << 20
"""Bytes of a record file that are read at a time."""
_BLOCK_B = 1 << 20


class FileSpan(Frozen):
    """Whole lines of a record file: bytes from `start` up to `end`, where the last line may be torn."""

    file: str
    start: int
    end: int


def spans_of(folder: ResultsFolder) -> list[FileSpan]:
    """The files of records, each whole. Raises StoreError.

    What is not a file is there, too, so that reading it says what it is.
    """
    found = []
    try:
        with opened_folder(folder.path, "records") as descriptor:
            for name in folder.record_files():
                with suppress(FileNotFoundError):
                    state = os.lstat(name, dir_fd=descriptor)
                    found.append(FileSpan(name, 0, state.st_size if stat.S_ISREG(state.st_mode) else 1))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder.path / 'records'} cannot be read: {reason(error)}") from error
    return found


def parts_of(folder: ResultsFolder, span: FileSpan) -> Iterator[FileSpan]:
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


LARGE_B = 64 << 20
"""From so many bytes of records on, several processes read them."""
_MOST_PROCESSES = 8
_DIES_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)

_Task = TypeVar("_Task")
_Answer = TypeVar("_Answer")
_Reader = Callable[[_Task], _Answer]


def read_in_order(
    start: Callable[..., _Reader[_Task, _Answer]], arguments: tuple[Any, ...], tasks: Iterable[_Task], size_B: int
) -> Iterator[_Answer]:
    """The answers to all tasks, in order. `start` makes, from the arguments, what answers a task, and is a function of
    a module. If many bytes are to be read, there is a process for each CPU; the kernel ends them with this one.

    Raises StoreError if a process is killed, and what a reader raises.
    """
    workers = min(_MOST_PROCESSES, len(os.sched_getaffinity(0)))
    if size_B < LARGE_B or workers < 2:
        yield from map(start(*arguments), tasks)
        return
    with _without_working_folder():  # it starts a process, too
        executor = ProcessPoolExecutor(
            workers, multiprocessing.get_context("spawn"), _start_process, (os.getpid(), start, arguments)
        )
    waiting: deque[Future[_Answer]] = deque()
    try:
        for task in tasks:
            with _without_working_folder():  # it may start a process
                waiting.append(executor.submit(_answer, task))
            if len(waiting) > workers + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise StoreError("a process that read the records was killed", "start the same command again") from error
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def _without_working_folder() -> Iterator[None]:
    """What is started with the variables of this process loads no library or module of the working folder: these
    processes cannot be given others, and their `python -c` searches that folder first."""
    before = dict(os.environ)
    safe = {**without_working_folder(before), "PYTHONSAFEPATH": "1"}
    changed = {name for name in {*before, *safe} if before.get(name) != safe.get(name)}

    def become(variables: Mapping[str, str]) -> None:
        for name in changed:
            os.environ.pop(name, None)
            if name in variables:
                os.environ[name] = variables[name]

    become(safe)
    try:
        yield
    finally:
        become(before)


_reader_here: Callable[[Any], Any] | None = None


def _start_process(parent: int, start: Callable[..., Callable[[Any], Any]], arguments: tuple[Any, ...]) -> None:
    """Prepare a process that reads. The kernel ends it if its parent dies."""
    global _reader_here
    gc.disable()  # the parts of records have no cycles, and the process ends soon
    ctypes.CDLL(None).prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends it
    _reader_here = start(*arguments)


def _answer(task: Any) -> Any:
    assert _reader_here is not None  # noqa: S101 - made by `_start_process`
    return _reader_here(task)
