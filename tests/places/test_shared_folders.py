"""Folders of killed processes are removed by later ones; those of others stay."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.places.containers import runtime as shared_folders
from seatrial.places.containers.runtime import shared_folder
from seatrial.processes.own_folder import kernel_and_namespace


def test_folders_of_killed_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_folders, "SHARED", tmp_path)
    killed = tmp_path / f"seatrial-ranks-n1-{kernel_and_namespace()}-999999999-1-0123abcd"
    other = tmp_path / f"seatrial-root-n1-{kernel_and_namespace()}-999999999-1-0123abcd"
    for path in (killed, other, tmp_path / "seatrial-ranks-mine"):
        path.mkdir()
    with shared_folder("seatrial-ranks-") as folder:
        assert folder.is_dir() and folder.stat().st_mode & 0o777 == 0o700
        assert not killed.exists() and other.exists() and (tmp_path / "seatrial-ranks-mine").exists()
        with shared_folder("seatrial-ranks-"):
            assert folder.exists()  # its process lives
    assert not folder.exists()
    monkeypatch.setattr("os.geteuid", lambda: 4711)
    with shared_folder("seatrial-root-"):
        assert other.exists()  # another user's
