"""Bases and files from someone else: what leads out of an image or gives rights is refused or dropped."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
from contextlib import suppress
from pathlib import Path

import pytest
from places.made_images import made
from places.made_up_debian import SUITE, make_repository

from seatrial.errors import UsageError
from seatrial.places.guest.kernel import find_busybox
from seatrial.places.guest.qemu import GuestError
from seatrial.places.images.tree import Entry, EntryKind, Tree, folder, text_file
from seatrial.processes import tree


def entry(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, link, mode
    return info


def archive(path: Path, *entries: tarfile.TarInfo) -> None:
    with tarfile.open(path, "w") as stream:
        for one in entries:
            stream.addfile(one)


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ([entry("../../etc/cron.d/x")], "leads out of the image"),
        ([entry("a/../../x")], "leads out of the image"),
        ([entry("d/" * 20_000 + "x")], "longer than Linux can have"),
        ([entry("n" * 300)], "longer than Linux can have"),
        ([entry("out", tarfile.SYMTYPE, "/etc"), entry("out/passwd")], "is below /out, which is not a folder"),
        ([entry("x"), entry("x/y")], "is below /x, which is not a folder"),
        ([entry("shadow", tarfile.LNKTYPE, "/etc/shadow")], "hard link /shadow points to /etc/shadow"),
        ([entry("shadow", tarfile.LNKTYPE, "../etc/shadow")], "leads out of the image"),
        ([entry("disk", tarfile.BLKTYPE)], "is a device outside /dev"),
        ([entry("home/mem", tarfile.CHRTYPE)], "is a device outside /dev"),
        ([entry("two\nlines")], "is not a usable name"),
        ([entry("d", tarfile.DIRTYPE), entry("d")], "is a folder already"),
    ],
)
def test_a_tar_that_leads_out_is_refused(tmp_path: Path, entries: list[tarfile.TarInfo], words: str) -> None:
    archive(tmp_path / "base.tar", *entries)
    with pytest.raises(UsageError, match=words):
        made("base: {image: base.tar}", tmp_path / "image")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["base.tar"]


def test_rights_and_special_files_of_a_base_are_dropped(tmp_path: Path) -> None:
    capable = entry("bin/ping", mode=0o755)
    capable.pax_headers = {"SCHILY.xattr.security.capability": "all", "SCHILY.xattr.user.note": "kept"}
    archive(
        tmp_path / "base.tar",
        entry("/bin/su", mode=0o4755),
        entry("bin/wall", mode=0o2755),
        entry("bin/again", tarfile.LNKTYPE, "bin/su"),
        capable,
        entry("dev/null", tarfile.CHRTYPE, mode=0o666),
        entry("run/fifo", tarfile.FIFOTYPE),
        entry("shared", tarfile.DIRTYPE, mode=0o2775),
    )
    found = made("base: {image: base.tar}", tmp_path / "image.tar")
    assert found.facts.dropped_setuid == 2
    with tarfile.open(tmp_path / "image.tar") as stream:
        members = {member.name: member for member in stream}
    assert all(not members[f"./bin/{name}"].mode & 0o6000 for name in ("su", "wall"))
    assert members["./bin/su"].islnk() or members["./bin/again"].islnk(), "a hard link stays one"
    assert members["./bin/ping"].pax_headers == {"SCHILY.xattr.user.note": "kept"}
    assert members["./shared"].mode == 0o2775
    assert not {"./dev/null", "./run/fifo"} & set(members)


@pytest.mark.parametrize("cut", [700, 1500])
def test_a_cut_tar_is_refused(tmp_path: Path, cut: int) -> None:
    big = entry("big")
    big.size = 5000
    with tarfile.open(tmp_path / "base.tar", "w") as stream:
        stream.addfile(entry("first"))
        stream.addfile(big, io.BytesIO(bytes(5000)))
    data = (tmp_path / "base.tar").read_bytes()
    (tmp_path / "base.tar").write_bytes(data[:cut])
    with pytest.raises(UsageError, match=r"base\.tar"):
        made("base: {image: base.tar}", tmp_path / "image")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "neither a folder, tar, OCI archive nor squashfs"),
        (b"\x1f\x8bxxxx", "is compressed"),
        (bytes(32) + b"SIF_MAGIC", "is a SIF image"),
        (b"text" * 500, "neither a folder"),
    ],
)
def test_what_is_no_base_is_refused_with_a_remedy(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "base").write_bytes(content)
    with pytest.raises(UsageError, match=words):
        made("base: {image: base}", tmp_path / "image")
    with pytest.raises(UsageError, match="does not exist"):
        made("base: {image: nowhere}", tmp_path / "image")


def test_a_folder_as_base(tmp_path: Path) -> None:
    base = tmp_path / "base"
    (base / "run").mkdir(parents=True)
    (base / "su").write_text("x")
    (base / "su").chmod(0o6755)
    os.mkfifo(base / "run" / "fifo")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(os.path.relpath(base / "run" / "socket"))
    (base / "out").symlink_to(tmp_path)
    found = made("base: {image: base}", tmp_path / "image")
    assert found.facts.dropped_setuid == 1
    assert (tmp_path / "image" / "su").stat().st_mode & 0o7777 == 0o755
    assert not list((tmp_path / "image" / "run").iterdir()) and (tmp_path / "image" / "out").is_symlink()
    if os.geteuid() == 0:
        os.mknod(base / "disk", 0o60600, os.makedev(7, 200))
        with pytest.raises(UsageError, match="is a device outside /dev"):
            made("base: {image: base}", tmp_path / "other")


def test_files_from_outside_give_no_rights(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "su").write_text("x")
    (tmp_path / "deep" / "su").chmod(0o4755)
    os.mkfifo(tmp_path / "fifo")
    for text, words in (
        ("files: {/su: deep/su}", "is setuid or setgid"),
        ("files: {/all: deep}", "is setuid or setgid"),
        ("programs: [deep/su]", "is setuid or setgid"),
        ("files: {/fifo: fifo}", "is a FIFO"),
        ("files: {/null: /dev/null}", "is a device"),
        ("files: {/x: nowhere}", "does not exist"),
    ):
        with pytest.raises(UsageError, match=words):
            made(f"base: static\n{text}", tmp_path / "image")
    assert not (tmp_path / "image").exists()


def test_links_are_followed_inside_the_image_only(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "out").symlink_to("/../../../../tmp/elsewhere")
    (base / "loop").symlink_to("loop")
    made('base: {image: base}\nfiles: {/out/new: {text: "x"}}', tmp_path / "image")
    assert (tmp_path / "image" / "tmp" / "elsewhere" / "new").read_text() == "x"
    with pytest.raises(UsageError, match="links that do not end"):
        made('base: {image: base}\nfiles: {/loop/new: {text: "x"}}', tmp_path / "other")


def test_a_tree_keeps_everything_in_folders() -> None:
    tree = Tree(0)
    tree.add("a/b/c", text_file(b"x", 0))
    tree.add("l", Entry(EntryKind.LINK, 0o777, 0, target="a/b"))
    assert tree.resolved("l/c") == "a/b/c" and tree.resolved("l") == "l" and tree.resolved("../../x") == "x"
    assert [path for path, _ in tree.sorted()] == ["a", "a/b", "a/b/c", "l"]
    for path, what in (("l/x", text_file(b"", 0)), ("a/b/c/d", text_file(b"", 0)), ("a", text_file(b"", 0))):
        with pytest.raises(UsageError):
            tree.add(path, what)
    with pytest.raises(UsageError):
        tree.add("l", folder(0))
    tree.remove("a/b")
    assert [path for path, _ in tree.sorted()] == ["a", "l"]


@pytest.mark.real
def test_whenever_it_is_killed_the_image_is_whole_or_absent_and_nothing_private_stays(tmp_path: Path) -> None:
    (tmp_path / "big").write_bytes(os.urandom(1 << 20) * 60)
    (tmp_path / "image.yaml").write_text("base: static\nfiles: {/big: big, /again: big}\n")
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    command = [sys.executable, "-m", "seatrial", "container", "make", "image.yaml", "-o"]
    where = {"cwd": tmp_path, "env": {**os.environ, "TMPDIR": str(temporary)}, "stderr": subprocess.DEVNULL}
    seen: set[Path] = set()
    for name, kill, later_s in (
        ("a", signal.SIGKILL, 0.0),
        ("b.tar", signal.SIGKILL, 0.03),
        ("c", signal.SIGTERM, 0.06),
        ("d", signal.SIGINT, 0.03),
    ):
        with subprocess.Popen([*command, name], stdout=subprocess.DEVNULL, **where) as making:
            while not (private := set(tmp_path.glob(".seatrial-image-*")) - seen) and making.poll() is None:
                time.sleep(0.002)
            time.sleep(later_s)
            making.send_signal(kill)
        seen |= private
        assert private and not (tmp_path / name).exists(), f"{name} was made before it was killed"
    (tmp_path / "image.yaml").write_text("base: static\n")
    done = subprocess.run([*command, "last.tar"], stdout=subprocess.DEVNULL, **where)
    assert done.returncode == 0
    assert not list(tmp_path.glob(".seatrial-image-*")) and not list(temporary.glob(".seatrial-image-*"))


_INSTALL = """\
import sys
from pathlib import Path
from seatrial.places.images.make import make_image
from seatrial.model.environment.image import DebianBase, ImageDefinition
make_image(ImageDefinition("x", "", DebianBase(sys.argv[1], sys.argv[2])), Path(sys.argv[3]))
"""


@pytest.mark.real
def test_killed_while_packages_are_installed_nothing_stays_mounted(tmp_path: Path) -> None:
    """With the root of the image mounted, and a program that runs in it."""
    if os.geteuid() != 0:
        pytest.skip("needs root: others have a user namespace, which ends with its processes")
    if shutil.which("mmdebstrap") is None or shutil.which("dpkg-deb") is None:
        pytest.skip("needs mmdebstrap")
    try:
        busybox = find_busybox()
    except GuestError:
        pytest.skip("needs busybox-static")
    repository, temporary, image = tmp_path / "repository", tmp_path / "tmp", tmp_path / "image.tar"
    repository.mkdir()
    temporary.mkdir()
    line = make_repository(repository, busybox)
    variables = {**os.environ, "TMPDIR": str(temporary)}
    words = [sys.executable, "-c", _INSTALL, SUITE, line, str(image)]
    with subprocess.Popen(words, env=variables, stderr=subprocess.PIPE, text=True) as making:
        while not (inside := _inside(temporary)) and making.poll() is None:
            time.sleep(0.01)
        assert inside, making.communicate()[1]
        mounted = [pid for pid in tree.descendants(making.pid) if str(temporary) in _mounts(pid)]
        making.kill()
    assert mounted, "the image's root had mounts of its own when it was killed"
    while any(map(tree.is_alive, (*inside, *mounted))):
        time.sleep(0.01)
    assert str(temporary) not in _mounts(os.getpid()) and not image.exists()
    (tmp_path / "image.yaml").write_text("base: static\n")
    make = [sys.executable, "-m", "seatrial", "container", "make", "image.yaml", "-o", "next.tar"]
    subprocess.run(make, cwd=tmp_path, env=variables, capture_output=True, check=True)
    assert not list(temporary.iterdir()) and not list(tmp_path.glob(".seatrial-image-*"))


def _inside(folder: Path) -> list[int]:
    """The processes whose root is below a folder."""
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (path / "root").readlink().is_relative_to(folder):
                found.append(int(path.name))
    return found


def _mounts(pid: int) -> str:
    with suppress(OSError):
        return Path(f"/proc/{pid}/mountinfo").read_text()
    return ""
