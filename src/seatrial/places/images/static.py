"""The root for static programs: the folders that runtimes mount on, and the few files that they read."""

from __future__ import annotations

from pathlib import Path

from seatrial.environments.elf import interpreter
from seatrial.errors import ParseError, UsageError
from seatrial.places.images.tree import Entry, Kind, Tree, folder, text_file

_FOLDERS = ("dev", "etc", "home", "mnt", "opt", "proc", "root", "run", "sys", "tmp", "usr/bin", "var/tmp")
_MOUNT_POINTS = ("dev", "proc", "sys", "run", "tmp", "etc")
_PASSWD = b"root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
_GROUP = b"root:x:0:\nnogroup:x:65534:\n"


def add_static_root(tree: Tree) -> None:
    """A root without any program."""
    for path in _FOLDERS:
        tree.add(path, folder(tree.mtime_s, 0o1777 if path in ("tmp", "var/tmp") else 0o755))
    tree.add("bin", Entry(Kind.LINK, 0o777, tree.mtime_s, target="usr/bin"))
    tree.add("etc/passwd", text_file(_PASSWD, tree.mtime_s))
    tree.add("etc/group", text_file(_GROUP, tree.mtime_s))


def add_mount_points(tree: Tree) -> None:
    """What every runtime mounts on, if the base has none: a runtime cannot make it in a read-only image."""
    for path in _MOUNT_POINTS:
        if path not in tree:
            tree.add(path, folder(tree.mtime_s, 0o1777 if path == "tmp" else 0o755))
    etc = tree.get("etc")
    if etc is not None and etc.kind is Kind.FOLDER:
        for path in ("etc/hosts", "etc/resolv.conf", "etc/hostname"):
            if path not in tree:
                tree.add(path, text_file(b"", tree.mtime_s))


def require_static(path: Path) -> None:
    """Raises UsageError for a program that needs a dynamic loader, or anything that is not a program."""
    try:
        loader = interpreter(path)
    except (ParseError, OSError) as error:
        why = error.why if isinstance(error, ParseError) else error.strerror
        raise UsageError(f"{path} is not a program: {why}", "give a statically linked program") from error
    if loader is not None:
        todo = "link it with -static, or write base: {debian: SUITE}"
        raise UsageError(f"{path} is linked dynamically: it needs {loader}, and a static image has no libraries", todo)
