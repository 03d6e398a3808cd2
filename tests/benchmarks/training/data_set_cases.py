"""Makes, reads and damages data sets in an interpreter that has Pillow and LMDB; prints what it saw as JSON.

python data_set_cases.py SCRIPTS FOLDER
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

SIZE, COUNT = [3, 8, 8], 140


def attempt(action: Callable[[], Any]) -> str:
    """The message of what it raises; "" if nothing."""
    from harness.data_set import Unusable
    from harness.formats import Damaged

    try:
        action()
    except (Damaged, Unusable) as error:
        return f"{type(error).__name__}: {error}"
    return ""


def wanted(kind: str, folder: Path, **more: object) -> dict:
    """A small data set."""
    return {
        **{"format": kind, "folder": str(folder), "cache": "warm", "images": COUNT, "size": SIZE, "seed": 1},
        **more,
    }


def of_format(kind: str, folder: Path) -> dict:
    """A data set of a format: whole, used again, and with a file that was cut."""
    from harness import images, page_cache
    from harness.data_set import DataSet, made
    from harness.formats import Reader

    asked = wanted(kind, folder)
    data_set = made(asked)
    reader = Reader(data_set.path, kind)
    read = [(entry[3], reader.image(entry)) for entry in data_set.entries]
    reader.close()
    same = read == [images.made(SIZE, 1, number) for number in range(COUNT)]
    before = (data_set.path / "index.json").stat().st_mtime_ns
    again = made(asked).path == data_set.path and before == (data_set.path / "index.json").stat().st_mtime_ns
    page_cache.load(data_set.files)
    shares = [page_cache.cached_share(data_set.files)]
    page_cache.drop(data_set.files)
    shares.append(page_cache.cached_share(data_set.files))
    file = data_set.path / data_set.entries[-1][0]
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    cut = attempt(lambda: made(asked))
    zeros = bytearray(whole)
    start = 0 if kind in ("files", "lmdb") else data_set.entries[-1][1]
    zeros[start : start + 8192] = bytes(len(zeros[start : start + 8192]))
    file.write_bytes(zeros)
    changed = attempt(lambda: DataSet(data_set.path, kind))
    file.unlink()
    missing = attempt(lambda: made(asked))
    return {"same": same, "again": again, "shares": shares, "cut": cut, "changed": changed, "missing": missing}


def written_once(folder: Path) -> dict:
    """Processes that want the same data set at once, after one that was killed."""
    from harness import data_set
    from harness.formats import WRITERS

    real = WRITERS["files"]

    def noted(*given: Any) -> list:
        with (folder / "writers").open("a") as file:
            file.write(f"{os.getpid()}\n")
        return real(*given)

    WRITERS["files"] = noted
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            os._exit(0 if len(data_set.made(wanted("files", folder, seed=2)).entries) == COUNT else 1)
        children.append(child)
    killed = os.fork()
    if not killed:
        data_set.images.made = lambda *_: os.kill(os.getpid(), 9)
        data_set._make(data_set.folder_for(str(folder), "warm") / "killed", wanted("files", folder))
    statuses = [os.waitpid(child, 0)[1] for child in children]
    os.waitpid(killed, 0)
    WRITERS["files"] = real
    return {"statuses": statuses, "writers": len((folder / "writers").read_text().split())}


def main(scripts: str, folder: str) -> None:
    """All cases."""
    sys.path.insert(0, scripts)
    from harness import data_set, tfrecord
    from harness.data_set import made, order

    top = Path(folder)
    found: dict = {kind: of_format(kind, top) for kind in ("files", "lmdb", "webdataset", "tfrecord")}
    found["once"] = written_once(top)
    entries = [(f"{number // 10}.tar", number, 1, 0) for number in range(95)]
    for name, sequential in (("random", False), ("sequential", True)):
        found[name] = order(entries, is_sequential=sequential, seed=3, epoch=1, streams=4)
    found["crc"] = tfrecord.crc32c(b"123456789")
    found["space"] = attempt(lambda: made(wanted("lmdb", top, images=10**12)))
    found["absent"] = attempt(lambda: made(wanted("files", top / "absent")))
    data_set.page_cache.where = lambda path: ("memory", "tmpfs")
    found["memory"] = attempt(lambda: made(wanted("files", top, cache="cold")))
    sys.modules["lmdb"] = None  # type: ignore[assignment]
    found["lmdb absent"] = attempt(lambda: made(wanted("lmdb", top)))
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
