"""Results folders from someone else: links, pipes, devices, and files that are no records."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from cli.in_process import seatrial_here
from machine.mutations import limited
from store.test_store import EXPERIMENT, machine, record, write

from seatrial.errors import StoreError, UsageError
from seatrial.model.results.record import encode
from seatrial.store.claim import claim
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


@pytest.mark.parametrize("name", ["trash", "labels", "profiles", "report.html", f"artefacts/{EXPERIMENT.id}"])
def test_nothing_is_written_through_a_planted_link(folder: ResultsFolder, name: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "page").write_text("theirs")
    (folder.path / name).symlink_to(outside / ("page" if "." in name else ""))

    seatrial_here("report", "results", cwd=tmp_path)
    seatrial_here("results", "tag", "results", "--add", "mine", cwd=tmp_path)
    seatrial_here("profile", "--results", "results", "--", "true", cwd=tmp_path)
    if name.startswith("artefacts"):
        with pytest.raises(StoreError):
            claim(folder, "n1", EXPERIMENT.id, 7, {})
    dropped = seatrial_here("results", "drop", "results", EXPERIMENT.benchmark, cwd=tmp_path)
    restored = seatrial_here("results", "restore", "results", cwd=tmp_path)

    assert [path.name for path in outside.iterdir()] == ["page"] and (outside / "page").read_text() == "theirs"
    assert (dropped.returncode, restored.returncode) == ((3, 2) if name == "trash" else (0, 0)), dropped.stderr
    assert len(read_contents(folder).records[EXPERIMENT.id]) == 1


def test_a_trash_behind_a_link_is_not_ours(folder: ResultsFolder, tmp_path: Path) -> None:
    other = ResultsFolder.create(tmp_path / "outside" / "20260101T000000-000000")
    (folder.path / "trash").symlink_to(other.path.parent)
    assert seatrial_here("results", "restore", "results", cwd=tmp_path).returncode == 2
    assert other.path.is_dir()


def test_a_page_replaces_a_fifo_in_the_folder(folder: ResultsFolder, tmp_path: Path) -> None:
    os.mkfifo(folder.path / "report.html")
    assert seatrial_here("report", "results", cwd=tmp_path).returncode == 0
    assert "</html>" in (folder.path / "report.html").read_text(encoding="utf-8")


def test_a_file_that_is_named_may_be_anything_that_does_not_block(folder: ResultsFolder, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
    for name, said in (("fifo", "nobody reads this FIFO"), ("socket", "a socket"), ("results", "a folder")):
        done = seatrial_here("export", "results", "-o", name, cwd=tmp_path)
        assert done.returncode == 2 and said in done.stderr, done.stderr
    reader = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    assert seatrial_here("export", "results", "-o", "fifo", cwd=tmp_path).returncode == 0
    assert os.read(reader, 100).startswith(b"benchmark,")
    os.close(reader)
    assert seatrial_here("export", "results", "-o", "/dev/null", cwd=tmp_path).returncode == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to give a folder to another user")
def test_benchmarks_of_another_user_in_the_working_folder_are_not_found_by_name(tmp_path: Path) -> None:
    planted = tmp_path / "seatrial-benchmarks"
    planted.mkdir()
    (planted / "a.yaml").write_text("benchmark: {name: a, question: Q?, argv: [touch, escaped], figures: []}\n")
    os.mkfifo(planted / "b.yaml")
    os.chown(planted, 65534, 65534)
    done = seatrial_here("run", "local.a", cwd=tmp_path)
    assert done.returncode == 2 and "ignored: seatrial-benchmarks, which user" in done.stderr, done.stderr


def test_a_benchmark_that_others_can_change_or_link_to_is_not_found_by_name(tmp_path: Path) -> None:
    mine, found = tmp_path / "mine", tmp_path / "seatrial-benchmarks"
    mine.mkdir()
    (mine / "a.yaml").write_text("benchmark: {name: a, question: Q?, argv: ['true'], figures: []}\n")
    (mine / "a.yaml").chmod(0o666)
    mine.rename(found)
    done = seatrial_here("run", "local.a", cwd=tmp_path)
    assert done.returncode == 2 and "seatrial-benchmarks, which everybody can change" in done.stderr, done.stderr
    if os.geteuid() == 0:
        (found / "a.yaml").chmod(0o644)
        found.rename(mine)
        found.symlink_to("mine")
        os.lchown(found, 65534, 65534)
        done = seatrial_here("run", "local.a", cwd=tmp_path)
        assert done.returncode == 2 and "ignored: seatrial-benchmarks, which user" in done.stderr, done.stderr


def test_modules_in_the_working_folder_are_not_loaded(tmp_path: Path) -> None:
    for name in ("typer", "msgspec", "gc", "difflib", "rich"):
        (tmp_path / f"{name}.py").write_text("open('escaped', 'w'); raise SystemExit(9)\n")
    done = subprocess.run(
        [sys.executable, "-m", "seatrial", "--version"], cwd=tmp_path, capture_output=True, check=False
    )
    assert done.returncode == 0 and not (tmp_path / "escaped").exists()
