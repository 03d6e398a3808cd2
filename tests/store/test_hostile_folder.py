"""Results folders from someone else: links, pipes, devices, and files that are no records."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import zlib
from pathlib import Path

import pytest
from machine.mutations import limited
from store.test_store import EXPERIMENT, machine, record, write

from seatrial.errors import StoreError, UsageError
from seatrial.model.results.record import encode
from seatrial.store.contents import read_contents
from seatrial.store.folder import FORMAT_LINE, ResultsFolder
from seatrial.store.writers import RecordWriter

KINDS = ("FIFO", "link", "socket", "folder", "loop")
FILES = ("FORMAT", "machines", "environments", "experiments", "studies", "records")
FOLDERS = ("artefacts", "environments", "experiments", "machines", "records", "studies")


@pytest.fixture
def folder(tmp_path: Path) -> ResultsFolder:
    made = ResultsFolder.create(tmp_path / "results")
    made.put("machines", "known", machine())
    made.put("environments", "env", {"name": "gcc"})
    made.put("experiments", EXPERIMENT.id, EXPERIMENT.document())
    write(made, 0)
    return made


def replaced(path: Path, kind: str) -> None:
    """Put something else in the place of a file. Behind a link is what was there."""
    kept = path.parents[2] / "outside" / path.name
    kept.parent.mkdir(exist_ok=True)
    shutil.move(path, kept)
    if kind == "FIFO":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(kept)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # /dev/zero: it never ends
    else:
        here = Path.cwd()
        os.chdir(path.parent)  # the name of a socket may have 107 bytes
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(path.name)
        os.chdir(here)


def file_of(folder: ResultsFolder, name: str) -> Path:
    """FORMAT, or the only file of a kind."""
    if name == "FORMAT":
        return folder.path / "FORMAT"
    if name == "studies":
        (folder.path / name / "one.json").write_text("{}")
    (path,) = (folder.path / name).iterdir()
    return path


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", FILES)
def test_what_is_not_a_file_is_not_opened(name: str, kind: str, folder: ResultsFolder) -> None:
    path = file_of(folder, name)
    replaced(path, kind)
    _refused(folder, path)


@pytest.mark.parametrize("name", FILES)
def test_a_device_is_not_opened(name: str, folder: ResultsFolder) -> None:
    path = file_of(folder, name)
    try:
        replaced(path, "device")
    except PermissionError:
        pytest.skip("only root can make a device")
    _refused(folder, path)


def _refused(folder: ResultsFolder, path: Path) -> None:
    with limited(5):
        if path.name == "FORMAT":
            with pytest.raises(UsageError, match="FORMAT cannot be read"):
                ResultsFolder.existing(folder.path)
            return
        contents = read_contents(ResultsFolder.existing(folder.path))
    assert any(str(path) in line for line in contents.damaged), contents.damaged
    assert path.parent.name == "studies" or not contents.records


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_is_a_link_is_neither_read_nor_written(name: str, folder: ResultsFolder, tmp_path: Path) -> None:
    outside = tmp_path / "elsewhere"
    shutil.move(folder.path / name, outside)
    (folder.path / name).symlink_to(outside)
    before = sorted(outside.iterdir())
    with pytest.raises(UsageError, match=f"{name}: it is a link, not a folder"):
        ResultsFolder.create(folder.path)
    if name != "artefacts":
        contents = read_contents(folder)
        assert any(name in line and "it is a link" in line for line in contents.damaged)
    if name == "records":
        with pytest.raises(StoreError, match="it is a link"):
            RecordWriter(folder, "host").append(record(1))
    elif name != "artefacts":
        with pytest.raises(StoreError, match="it is a link"):
            folder.put(name, "new", {"name": "x"})
    assert sorted(outside.iterdir()) == before


def test_a_link_in_the_place_of_a_document_is_replaced_and_not_written_through(folder: ResultsFolder) -> None:
    outside = folder.path.parent / "outside.json"
    outside.write_text("mine")
    (folder.path / "environments" / "new.json").symlink_to(outside)
    folder.put("environments", "new", {"name": "x"})
    assert outside.read_text() == "mine" and folder.get("environments", "new") == {"name": "x"}


def test_a_record_cannot_name_a_file_outside(folder: ResultsFolder) -> None:
    (folder.path.parent / "secret.json").write_text(json.dumps(EXPERIMENT.document()))
    path = file_of(folder, "records")
    line = encode(record(0)).replace(EXPERIMENT.id.encode(), b"../../secret")
    path.write_bytes(_with_checksum(line))
    contents = read_contents(folder)
    assert not contents.records and "'../../secret' is not the name of a document" in contents.damaged[0]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 70 + b"1" + b"}" * 70, "nested deeper"),
        (b'{"a": NaN}', "NaN is not valid JSON"),
        (b'{"a": -Infinity}', "-Infinity is not valid JSON"),
        (b'{"a": 1e999}', "a number is larger"),
        (b'{"a": 1' + b"0" * 400 + b"}", "a number is larger"),
        (b'{"a": 1' + b"0" * 5000 + b"}", "Exceeds the limit"),
        (b'{"a": 1, "a": 2}', "the key 'a' is in one object twice"),
        (b'{"a": "\\ud800"}', "half a surrogate pair"),
        (b'{"\\uDFFF": 1}', "half a surrogate pair"),
        (b'{"a": "\xff"}', "invalid UTF-8 at byte 7"),
        ('{"a": 1}'.encode("utf-16"), "invalid UTF-8"),
        (b"[1]", "is not a JSON object"),
        (b"", "invalid JSON"),
    ],
)
def test_damage_to_a_document_is_named_with_its_file(text: bytes, why: str, folder: ResultsFolder) -> None:
    for name in ("environments", "experiments", "machines"):
        file_of(folder, name).write_bytes(text)
        contents = read_contents(folder)
        assert any(f"{name}/" in line and why in line for line in contents.damaged), contents.damaged


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        (b'"repeat":0', b'"repeat":-1', "repeat is -1, not at least 0"),
        (b'"repeat":0', b'"repeat":true', "repeat is True, not an integer"),
        (b'"repeat":0', b'"repeat":0,"repeat":1', "the key 'repeat' is in one object twice"),
        (b'"t0":1000000000.0', b'"t0":"now"', "t0 is 'now', not a number"),
        (b'"t0":1000000000.0', b'"t0":1e999', "t0 is inf, not a number"),
        (b'"outcome":"ok"', b'"outcome":["ok"]', "outcome is a list of 1, not one of"),
        (b'"seen":{}', b'"seen":[]', "seen is a list of 0, not an object"),
        (b'"seen":{}', b'"seen":{"libs":{"x":{}}}', "seen.libs.x is an object of 0, not text"),
        (b'"seen":{}', b'"seen":{"more":' + b"[" * 80 + b"]" * 80 + b"}", "nested deeper"),
        (b'"point":{}', b'"point":{"size_B":[1]}', r"samples[0].point.size_B is a list of 1, not text or"),
        (b'"elapsed_s":[0.001]', b'"elapsed_s":["x"]', "samples[0] has a cell in 'elapsed_s' that is not a number"),
        (b'"elapsed_s":[0.001]', b'"elapsed_s":[1e999]', "a number is larger"),
        (b'"n":1', b'"n":1000000000000', "samples[0] claims 1000000000000 samples"),
        (b'"checks":{}', b'"checks":{"x":NaN}', "NaN is not valid JSON"),
        (b'"v":1', b'"v":2', "a record has version 2"),
        (b'"v":1', b'"v":{"x":1}', "a record has version"),
    ],
)
def test_damage_to_a_record_is_named_with_its_line(old: bytes, new: bytes, why: str, folder: ResultsFolder) -> None:
    path = file_of(folder, "records")
    line = path.read_bytes()
    assert old in line
    path.write_bytes(encode(record(1)) + _with_checksum(line.replace(old, new)))
    contents = read_contents(folder)
    assert [r.repeat for r in contents.records[EXPERIMENT.id]] == [1]
    (damaged,) = contents.damaged
    assert damaged.startswith(f"{path.name} line 2: ") and why in damaged


def _with_checksum(line: bytes) -> bytes:
    body = line[: -len(b',"crc":"00000000"}\n')]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def test_a_line_that_is_too_long_is_not_read_whole(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.folder.MOST_LINE_B", 2000)
    monkeypatch.setattr("seatrial.store.folder._PART_B", 64)
    path = file_of(folder, "records")
    path.write_bytes(encode(record(0)) + b"x" * 5000 + b"\n" + encode(record(1)) + b"y" * 5000)
    contents = read_contents(folder)
    assert [r.repeat for r in contents.records[EXPERIMENT.id]] == [0, 1]
    assert len(contents.damaged) == 1 and "line 2: longer than" in contents.damaged[0]


def test_a_document_that_is_too_large_is_not_read(folder: ResultsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.store.folder.MOST_DOCUMENT_B", 1 << 20)
    file_of(folder, "environments").write_bytes(b" " * (2 << 20) + b"{}")
    assert "larger than 1 MiB" in " ".join(read_contents(folder).damaged)


def test_an_experiment_under_a_wrong_name_is_refused(folder: ResultsFolder) -> None:
    path = file_of(folder, "experiments")
    path.write_bytes(path.read_bytes().replace(b'"threads": 2', b'"threads": 3'))
    contents = read_contents(folder)
    assert not contents.records and "is not the experiment of that name" in contents.damaged[0]


def test_a_format_file_without_end_is_refused(folder: ResultsFolder) -> None:
    (folder.path / "FORMAT").write_bytes(FORMAT_LINE.encode() + b"\n" * 5000)
    with pytest.raises(UsageError, match="larger than"):
        ResultsFolder.existing(folder.path)
