"""Ask the tools of this machine: one short command, its output, a time limit."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from threading import Lock

from seatrial.errors import BuildError
from seatrial.model.frozen import Frozen
from seatrial.processes.output import OutOfTimeError, output_of
from seatrial.processes.start import Running

_ASK_LIMIT_S = 120.0
_LOOK_AGAIN_S = 0.1

Started = Callable[[Running], None]
"""Called with a tool when it has started."""


class Answer(Frozen):
    """What a tool printed."""

    stdout: str
    stderr: str


def ask(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float = _ASK_LIMIT_S,
    started: Started = lambda process: None,
) -> Answer:
    """The output of a tool. Raises BuildError if it fails or exceeds the time limit; its children are killed with it.

    The streams are separate: launchers and the loader write unrelated messages to stderr.
    """
    name = Path(command[0]).name
    variables = {**(os.environ if environment is None else environment), "LC_ALL": "C"}
    try:
        done = output_of(command, variables, limit_s, started=started)
    except OSError as error:
        hint = "programs cannot be run from there: set SEATRIAL_CACHE to another folder"
        todo = hint if isinstance(error, PermissionError) else ""
        raise BuildError(f"{command[0]} cannot be started: {error.strerror or error}", todo, tuple(command)) from error
    except OutOfTimeError as error:
        raise BuildError(
            f"{name} did not finish within {limit_s:g} s and was killed",
            "run the same command by hand to see what hangs, or set CXX to another compiler",
            tuple(command),
        ) from error
    stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    if done.returncode != 0:
        raise BuildError(
            f"{name} failed: {_summary(stderr + stdout, done.returncode)}", "", tuple(command), stderr + stdout
        )
    return Answer(stdout, stderr)


class _Tools:
    """The tools that parallel jobs run, so that all can be killed together."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: list[Running] = []
        self._is_over = False

    def started(self, process: Running) -> None:
        """Add a tool; it is killed at once if `end` was called before."""
        with self._lock:
            self._running.append(process)
            if self._is_over:
                self._end(process)

    def end(self) -> None:
        """Kill all tools, and any that starts later."""
        with self._lock:
            self._is_over = True
            for process in self._running:
                self._end(process)

    @staticmethod
    def _end(process: Running) -> None:
        process.kill()


def side_by_side(jobs: Iterable[Callable[[Started], object]]) -> None:
    """Run jobs in parallel, as many as this process has CPUs. Each passes its argument to `ask` as `started`, so that
    an interruption kills all their tools. Raises the first error of a job after all have ended."""
    tools = _Tools()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            running = [pool.submit(job, tools.started) for job in jobs]
            while wait(running, _LOOK_AGAIN_S).not_done:  # a signal just before an unlimited wait would not end it
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            tools.end()
            raise
    for job in running:
        job.result()


def _summary(output: str, returncode: int) -> str:
    """The most informative line about a failure."""
    if returncode < 0:
        return f"killed by {signal.Signals(-returncode).name}"
    lines = output.strip().splitlines()
    for mark in ("No space left", "error:"):
        for line in lines:
            if mark in line:
                return line.strip()
    return lines[-1] if lines else f"exit status {returncode}, no output"
