"""Real applications: their input is written and prepared in the folder of the repeat, their output is found there."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from seatrial.launch.local import run
from seatrial.model.benchmark import External, InputExchange
from seatrial.model.parameter import Params

_LOOK_EVERY_S = 0.01


class NotPreparedError(Exception):
    """The input of an application could not be made: what was tried and how it ended, and what the tool printed."""

    def __init__(self, message: str, evidence: str) -> None:
        super().__init__(message)
        self.evidence = evidence


def write_inputs(program: External, params: Params, directory: Path) -> None:
    """Write the files that the application reads. Raises OSError."""
    for name, content in program.inputs(params).items():
        (directory / name).write_bytes(content)


def run_preparation(
    program: External, path: Path, params: Params, variables: Mapping[str, str], directory: Path, limit_s: float
) -> None:
    """Let the application make further input, one process after another. Raises NotPreparedError, OSError."""
    for arguments in program.preparation(params):
        completed = run([str(path), *arguments], variables, directory, limit_s, runs_in=directory)
        if completed.timed_out or completed.returncode != 0:
            how = f"did not end within {limit_s:.0f} s" if completed.timed_out else completed.died_of
            raise NotPreparedError(f"{path.name} {' '.join(arguments)} {how}", completed.evidence)


def output_file(program: External, directory: Path) -> Path:
    """The file that the application leaves; one that is not there where it left none, or more than one that match."""
    if "*" not in program.output:
        return directory / program.output
    found = sorted(directory.glob(program.output))
    return found[0] if len(found) == 1 else directory / program.output


@contextmanager
def input_exchanged(program: External, params: Params, directory: Path) -> Iterator[None]:
    """While this lasts, the files of `input_exchange` are put in place as soon as the application has come so far."""
    if program.input_exchange is None:
        yield
        return
    stop = threading.Event()
    exchange = threading.Thread(target=_exchange, args=(program.input_exchange, params, directory, stop), daemon=True)
    exchange.start()
    try:
        yield
    finally:
        stop.set()
        exchange.join()


def _exchange(asked: InputExchange, params: Params, directory: Path, stop: threading.Event) -> None:
    """Look every 10 ms, and no more once it is done: nothing of ours runs while the application is measured."""
    contents = asked.inputs(params)
    while not stop.wait(_LOOK_EVERY_S):
        try:
            has_come_so_far = asked.after in (directory / asked.file).read_bytes()
        except OSError:
            continue
        if has_come_so_far:
            for name, content in contents.items():
                fresh = directory / f"{name}.later"
                fresh.write_bytes(content)
                fresh.replace(directory / name)
            return
