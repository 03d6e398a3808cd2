"""The lock of a folder that only we can write to."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import pytest

from seatrial.errors import BusyError
from seatrial.places.cluster.shape import existing_home


def test_a_lock_that_a_killed_process_leaves_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    folder = tmp_path / "c"
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    released = threading.Timer(0.3, os.close, (descriptor,))
    released.start()
    with existing_home(folder) as home:
        assert home is not None
    released.join()


def test_a_lock_that_is_held_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.places.owned_folder._STILL_LOCKED_S", 0.05)
    folder = tmp_path / "c"
    folder.mkdir(mode=0o700)
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    with pytest.raises(BusyError, match="another seatrial process is bringing the cluster"), existing_home(folder):
        pass
    os.close(descriptor)
