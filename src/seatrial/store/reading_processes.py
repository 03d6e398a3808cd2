"""Processes that read the records of a large folder: decoding is most of that work."""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any, TypeVar

from seatrial.errors import StoreError

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
    executor = ProcessPoolExecutor(
        workers, multiprocessing.get_context("spawn"), _start_process, (os.getpid(), start, arguments)
    )
    waiting: deque[Future[_Answer]] = deque()
    try:
        for task in tasks:
            waiting.append(executor.submit(_answer, task))
            if len(waiting) > workers + 1:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool as error:
        raise StoreError("a process that read the records was killed", "start the same command again") from error
    finally:
        executor.shutdown(cancel_futures=True)


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
