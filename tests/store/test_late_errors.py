"""File systems of servers: a full quota, a stale handle, and errors that come with the write-back or the close."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from store.test_store import EXPERIMENT, record

from seatrial.errors import StoreError
from seatrial.store import writers as writing
from seatrial.store.contents import read_contents
from seatrial.store.files import is_local, is_remote
from seatrial.store.folder import ResultsFolder
from seatrial.store.writers import RecordWriter


def failing(monkeypatch: pytest.MonkeyPatch, call: str, number: int) -> None:
    def fail(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(writing.os, call, fail)


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ESTALE, errno.ENOSPC, errno.EIO])
@pytest.mark.parametrize("call", ["write", "fsync"])
def test_a_record_that_the_server_does_not_take_is_one_error_and_nothing_is_lost(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch, call: str, number: int
) -> None:
    monkeypatch.setattr(writing, "is_remote", lambda path: True)
    writer = RecordWriter(folder, "host")
    writer.append(record(0))
    with monkeypatch.context() as broken:
        failing(broken, call, number)
        with pytest.raises(StoreError) as raised:
            writer.append(record(1))
    assert os.strerror(number) in raised.value.message and "start the same command again" in str(raised.value)
    writer.append(record(2))
    writer.close()
    found = read_contents(folder)
    assert [one.repeat for one in found.records[EXPERIMENT.id]] == [0, 2] and not found.damaged


@pytest.mark.parametrize(("local", "synced"), [(True, 2), (False, 11)])
def test_a_record_reaches_a_local_disk_at_the_end_and_a_server_at_once(
    folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch, local: bool, synced: int
) -> None:
    calls: list[int] = []
    monkeypatch.setattr(writing, "is_local", lambda path: local)
    monkeypatch.setattr(writing, "_SYNC_EVERY_S", 1000.0)
    monkeypatch.setattr(writing.os, "fdatasync", calls.append)
    writer = RecordWriter(folder, "host")
    for repeat in range(10):
        writer.append(record(repeat))
        writer.sync()
    writer.close()
    assert len(calls) == synced


def test_an_error_at_the_close_is_reported(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = RecordWriter(folder, "host")
    writer.append(record(0))
    with monkeypatch.context() as broken:
        failing(broken, "close", errno.EDQUOT)
        with pytest.raises(StoreError, match="may not be complete"):
            writer.close()
    writer.close()


@pytest.mark.parametrize(("kind", "remote"), [("nfs4", True), ("lustre", True), ("ext4", False), ("overlay", False)])
def test_the_type_of_a_mount_decides(tmp_path: Path, kind: str, remote: bool) -> None:
    device = tmp_path.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "21 1 0:99999 / /other rw - nfs4 server:/x rw\n"
        f"22 1 {os.major(device)}:{os.minor(device)} / {tmp_path} rw,noatime shared:1 master:2 - {kind} source rw\n"
    )
    assert is_remote(tmp_path, mounts) is remote and is_local(tmp_path, mounts) is (kind == "ext4")
    assert not is_remote(tmp_path, tmp_path / "missing") and not is_remote(tmp_path / "missing", mounts)
    assert not is_local(tmp_path, tmp_path / "missing")
