"""Where the processes of a run meet: they say it in files of the run's folder, which all share."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

_NUMBER_FROM = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID")
_FILE = "meeting-{}.json"
_PATIENCE_S = 120.0


def launched_number() -> int:
    """The number of this process, as the launcher counts. Raises KeyError if it does not say."""
    return int(os.environ[next(name for name in _NUMBER_FROM if name in os.environ)])


def meeting_point(number: int) -> tuple[str, int]:
    """Host and port of the first process. Raises TimeoutError if it does not say them in time."""
    return _say(0) if number == 0 else _said_by(0)


def meeting_points(number: int, count: int) -> list:
    """Host and port of every process. Raises TimeoutError if one does not say them in time."""
    own = _say(number)
    return [own if other == number else _said_by(other) for other in range(count)]


def _say(number: int) -> tuple[str, int]:
    with socket.socket() as one:
        one.bind(("", 0))
        port = one.getsockname()[1]
    path = Path(_FILE.format(number))
    part = path.with_suffix(".part")
    part.write_text(json.dumps([socket.gethostname(), port]))
    part.replace(path)
    return socket.gethostname(), port


def _said_by(number: int) -> tuple[str, int]:
    path = Path(_FILE.format(number))
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        try:
            host, port = json.loads(path.read_text())
        except FileNotFoundError:
            os.scandir(path.absolute().parent).close()  # a client of NFS asks its server again
            time.sleep(0.05)
        else:
            return str(host), int(port)
    raise TimeoutError(f"process {number} did not write {path.absolute()} within {_PATIENCE_S:.0f} s")
