"""Where the processes of several nodes meet: the first node says it in a file of the run's folder, which all share."""

from __future__ import annotations

import json
import os
import socket
import time
from pathlib import Path

_NUMBER_FROM = ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "PALS_RANKID", "SLURM_PROCID")
_FILE = "meeting.json"
_PATIENCE_S = 120.0


def node_number() -> int:
    """The number of this node, as the launcher counts. Raises KeyError if it does not say."""
    return int(os.environ[next(name for name in _NUMBER_FROM if name in os.environ)])


def meeting_point(node: int) -> tuple[str, int]:
    """Host and port of the first node. Raises TimeoutError if it does not say them in time."""
    path = Path(_FILE)
    if node == 0:
        with socket.socket() as one:
            one.bind(("", 0))
            port = one.getsockname()[1]
        part = path.with_suffix(".part")
        part.write_text(json.dumps([socket.gethostname(), port]))
        part.replace(path)
        return socket.gethostname(), port
    end = time.monotonic() + _PATIENCE_S
    while time.monotonic() < end:
        try:
            host, port = json.loads(path.read_text())
        except FileNotFoundError:
            os.scandir(path.absolute().parent).close()  # a client of NFS asks its server again
            time.sleep(0.05)
        else:
            return str(host), int(port)
    raise TimeoutError(f"the first node did not write {path.absolute()} within {_PATIENCE_S:.0f} s")
