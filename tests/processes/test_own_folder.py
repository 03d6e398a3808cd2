"""Folders of killed processes are removed by the next process that makes one, and nobody else's."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

import pytest

import seatrial
from seatrial.processes.own_folder import kernel_and_namespace, own_name, temporary_folder

_DEAD = f"{kernel_and_namespace()}-999999999-1-0123abcd"


def test_a_temporary_folder_of_a_killed_process_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    mine, kept = f"seatrial-facts-{os.geteuid()}-", tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    dead, alive, other = (tmp_path / name for name in (f"{mine}n1-{_DEAD}", own_name(mine), f"seatrial-x-n1-{_DEAD}"))
    for folder in (dead, alive, other):
        folder.mkdir()
        (folder / "file").touch()
    (tmp_path / f"{mine}n2-{_DEAD}").symlink_to(kept)
    with temporary_folder("facts") as made:
        assert made.parent == tmp_path and made.stat().st_mode & 0o777 == 0o700
        assert not dead.exists() and alive.exists() and other.exists() and (kept / "file").exists()
    assert not made.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_a_folder_of_another_user_stays_whatever_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    planted = tmp_path / f"seatrial-facts-0-n1-{_DEAD}"
    planted.mkdir()
    os.chown(planted, 65534, 65534)
    with temporary_folder("facts"):
        assert planted.exists()


def test_everything_temporary_is_removed_after_a_kill() -> None:
    """Only files without a name, and folders that state their process."""
    root = Path(seatrial.__file__).parent
    named = re.compile(r"tempfile\.(TemporaryDirectory|NamedTemporaryFile|mkdtemp|mkstemp|mktemp)")
    assert [str(path) for path in root.rglob("*.py") if named.search(path.read_text(encoding="utf-8"))] == []
