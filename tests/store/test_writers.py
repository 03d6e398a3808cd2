"""A run and a merge in one folder exclude each other, and a merge that is killed at any moment can be repeated."""

from __future__ import annotations

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from analysis.test_index import put
from store.test_store import EXPERIMENT, machine, record

from seatrial.analysis.index.folders import drop, merge_folders, restore, write_merge
from seatrial.errors import UsageError
from seatrial.model.results.record import encode
from seatrial.store import writers
from seatrial.store.contents import read_contents
from seatrial.store.folder import ResultsFolder
from seatrial.store.merging import move_out
from seatrial.store.writers import RecordWriter, alone

_MOMENTS = 20


def made(path: Path, first: int, files: int = 1, each: int = 2) -> ResultsFolder:
    """A folder with files of another host; the repeats of all such folders have the same numbers."""
    folder = ResultsFolder.create(path)
    folder.put("machines", "machine", machine())
    folder.put("environments", "env", {"name": "gcc"})
    folder.put("experiments", EXPERIMENT.id, EXPERIMENT.document())
    for n in range(files):
        lines = [encode(replace(record(n * each + k), t0=1e9 + first + n * each + k)) for k in range(each)]
        (path / "records" / f"other-{first}-{n}.jsonl").write_bytes(b"".join(lines))
    return folder


def starts(path: Path) -> list[float]:
    contents = read_contents(ResultsFolder.existing(path))
    assert contents.damaged == ()
    return sorted(one.t0 for own in contents.records.values() for one in own)


def test_a_merge_waits_for_no_run_and_a_run_for_a_merge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = made(tmp_path / "a", 0)
    made(tmp_path / "b", 100)
    merge = merge_folders([tmp_path / "b"], tmp_path / "a")
    writer = RecordWriter(folder, "host")  # a run that has not claimed or recorded anything yet
    trash = ResultsFolder.create(tmp_path / "trash")
    for change in (lambda: write_merge(merge, tmp_path / "a"), lambda: move_out(folder, trash, {EXPERIMENT.id})):
        with pytest.raises(UsageError, match="a run is active"):
            change()
    RecordWriter(folder, "host").close()  # runs do not exclude each other
    writer.append(record(7))
    writer.close()
    with pytest.raises(UsageError, match="records were added"):  # its numbers may be taken now
        write_merge(merge, tmp_path / "a")
    assert len(starts(tmp_path / "a")) == 3
    write_merge(merge_folders([tmp_path / "b"], tmp_path / "a"), tmp_path / "a")
    assert len(starts(tmp_path / "a")) == 5
    monkeypatch.setattr(writers, "_LONGEST_WAIT_S", 0.0)
    with alone(folder.path) as has_locks, pytest.raises(UsageError, match="another process merges"):
        assert has_locks
        RecordWriter(folder, "host")


def test_files_of_another_host_can_be_dropped_where_locks_show_that_nobody_writes(tmp_path: Path) -> None:
    put(tmp_path / "a", 2)
    (file,) = (tmp_path / "a/records").glob("*.jsonl")
    file.rename(file.with_name("other-1-1.jsonl"))
    assert drop(tmp_path / "a", ["memory.stream"])[2] == 2 and not list((tmp_path / "a/records").glob("*.jsonl"))
    restore(tmp_path / "a", None)
    assert len(starts(tmp_path / "a")) == 2


def test_a_lock_file_that_is_a_trap_is_not_used(tmp_path: Path) -> None:
    folder = made(tmp_path / "a", 0)
    (tmp_path / "kept").write_text("text")
    (tmp_path / "a/.writers").symlink_to(tmp_path / "kept")
    RecordWriter(folder, "host").close()
    (tmp_path / "a/.writers").unlink()
    os.mkfifo(tmp_path / "a/.writers")
    RecordWriter(folder, "host").close()
    with alone(folder.path) as has_locks:
        assert not has_locks
    assert (tmp_path / "kept").read_text() == "text"


def test_a_repeat_in_two_files_of_a_source_is_merged_once(tmp_path: Path) -> None:
    made(tmp_path / "a", 0)
    (first,) = (tmp_path / "a/records").glob("*.jsonl")
    (tmp_path / "a/records/other-0-9.jsonl").write_bytes(first.read_bytes())
    write_merge(merge_folders([tmp_path / "a"], tmp_path / "b"), tmp_path / "b")
    assert len(starts(tmp_path / "b")) == 2


def test_a_merge_that_is_killed_leaves_nothing_half_and_can_be_repeated(tmp_path: Path) -> None:
    made(tmp_path / "a", 0, files=12)
    before = starts(tmp_path / "a")
    source = made(tmp_path / "b", 1000, files=12)
    kept = source.artefacts(EXPERIMENT.id, 3)
    kept.mkdir(parents=True)
    (kept / "stdout").write_text("its output")
    begun = time.monotonic()
    write_merge(merge_folders([tmp_path / "a", tmp_path / "b"], tmp_path / "whole"), tmp_path / "whole")
    took = time.monotonic() - begun
    wanted, rng = starts(tmp_path / "whole"), random.Random(5)
    assert len(wanted) == 48
    for moment in range(_MOMENTS):
        target = tmp_path / f"t{moment}"
        made(target, 0, files=12)
        child = os.fork()
        if child == 0:  # the command without its start, which would take most of the time
            try:
                write_merge(merge_folders([tmp_path / "b"], target), target)
            finally:
                os._exit(0)
        time.sleep(rng.uniform(0.0, took))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        assert set(before) <= set(starts(target)) <= set(wanted)
        write_merge(merge_folders([tmp_path / "b"], target), target)
        assert starts(target) == wanted
        assert [path.read_text() for path in target.glob("artefacts/*/*/stdout")] == ["its output"]
