"""Results folders in which one value is exchanged, with right checksums and names: what an attacker would write.

`Damaged(seed)` makes the same damage each time, so that a failing one can be looked at again.
"""

from __future__ import annotations

import copy
import json
import shutil
import zlib
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from analysis.made_up_folders import MadeUpFolder, noisy, side_by_side

from seatrial.model.results.record import content_key
from seatrial.model.study.study import Axis, BestOf, Compare, Scaling, Study, StudyBenchmark

MARKUP = "</script><img src=x onerror=alert(1)>\"'`${7*7}{{7*7}}\x1b[31m\x07\u202e\u2066&amp;]]>"
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, 2, 2**31, 2**63, 10**30, -(10**30), 10**400, 0.0, -0.0, 0.5, -1.5, 1e-320, 1e-30),
    *(1e30, 1e200, 1.7e308, -1.7e308, float("inf"), float("nan"), "", "x", "0", "nan", "\ud800", "\0", MARKUP),
    *("a" * 5000, "../../etc/passwd", [], {}, [[]], [None], [{}], {"": None}, {"all": None}, {"all": 1e308}),
    *(["x"], [1, "x"], [[1e308]]),
)

Path_ = tuple[str | int, ...]


def make(path: Path, repeats: int = 6) -> Path:
    """A small folder with two experiments of a study, measured side by side."""
    made = MadeUpFolder(path)
    seen = {
        "notes": {"mpi_version": "Open MPI 4", "blas_version": "x", "huge_pages": "granted"},
        **{"libs": {"libc.so.6": "ab12"}, "variables": {"OMP_NUM_THREADS": "1"}, "added_libs": ["libx.so"]},
        **{"command": ["prog", "--n", "1"], "load_1m": 0.5, "steal_share": 0.0, "clock_Hz": [2e9], "study": "stores"},
    }
    keys = [
        made.add(noisy(level, repeats, seed=n), cores=cores, blocks=side_by_side(repeats), seen=seen)
        for n, (cores, level) in enumerate((("one", 2e9), ("all", 4e9)))
    ]
    study = Study(
        "stores",
        "Which?",
        (StudyBenchmark("cpu.peak", {"precision": "fp64"}),),
        (Axis("cores", ("one", "all")),),
        compare=Compare("cores", "one"),
        scaling=Scaling("strong", "cores"),
        best_of=BestOf(("cores",), "fma"),
    )
    made.keep(study, [(keys[0], {"cores": "one"}), (keys[1], {"cores": "all"})])
    return path


class Damaged:
    """A copy of a folder with one or two exchanged values; `what` says which."""

    def __init__(self, source: Path, target: Path, seed: int) -> None:
        self.random = Random(seed)
        self.what = ""
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)
        self.path = target
        kind = self.random.choice(
            ("records", "records", "records", "machines", "environments", "experiments", "studies")
        )
        getattr(self, f"_{kind}")()

    def _document(self, kind: str) -> tuple[Path, Any]:
        path = self.random.choice(sorted((self.path / kind).iterdir()))
        return path, json.loads(path.read_bytes())

    def _records(self) -> None:
        path, lines = self._lines()
        place = self.random.randrange(len(lines))
        lines[place] = self.exchanged(lines[place])
        path.write_bytes(b"".join(map(record_line, lines)))

    def _lines(self) -> tuple[Path, list[Any]]:
        path = self.random.choice(sorted((self.path / "records").iterdir()))
        return path, parsed_lines(path)

    def _machines(self) -> None:
        self._exchange("machines")

    def _environments(self) -> None:
        self._exchange("environments")

    def _studies(self) -> None:
        self._exchange("studies")

    def _exchange(self, kind: str) -> None:
        path, document = self._document(kind)
        path.write_bytes(as_json(self.exchanged(document)))

    def _experiments(self) -> None:
        """The name of an experiment is the hash of its content: everything that refers to it gets the new one."""
        path, document = self._document("experiments")
        document = self.exchanged(document)
        try:
            key = content_key(document)
        except (ValueError, RecursionError):
            key = path.stem
        path.unlink()
        (path.parent / f"{key}.json").write_bytes(as_json(document))
        for records in (self.path / "records").iterdir():
            lines = parsed_lines(records)
            for line in lines:
                line["experiment"] = key if line["experiment"] == path.stem else line["experiment"]
            records.write_bytes(b"".join(map(record_line, lines)))
        for study in (self.path / "studies").iterdir():
            study.write_bytes(study.read_bytes().replace(path.stem.encode(), key.encode()))

    def exchanged(self, document: Any) -> Any:
        """The document with one value exchanged, removed, or put in twice."""
        document = copy.deepcopy(document)
        places = [place for place in _places(document) if place]
        place = self.random.choice(places)
        parent = document
        for step in place[:-1]:
            parent = parent[step]
        last, action = place[-1], self.random.random()
        if action < 0.12:
            self.what = f"without {place}"
            del parent[last]
        elif action < 0.2 and isinstance(parent, list):
            self.what = f"{place} twice"
            parent.append(copy.deepcopy(parent[last]))
        elif action < 0.26 and isinstance(parent, dict):
            self.what = f"{place} under another name"
            parent[MARKUP] = parent.pop(last)
        elif action < 0.3:
            self.what = f"{place} nested"
            parent[last] = _nested(self.random.choice((10, 70, 900, 5000)))
        else:
            value = self.random.choice(VALUES)
            self.what = f"{place} = {ascii(value)[:80]}"
            parent[last] = copy.deepcopy(value)
        return document


def _nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return _Raw("[" * depth + "1" + "]" * depth) if depth > 500 else value


class _Raw(str):
    """Text that is written as it is: JSON too deep for the encoder."""


def as_json(document: Any) -> bytes:
    """JSON with values that the encoder refuses."""
    raws: list[str] = []

    def keep(value: Any) -> Any:
        if isinstance(value, _Raw):
            raws.append(value)
            return f"@raw{len(raws) - 1}@"
        if isinstance(value, int) and not isinstance(value, bool) and abs(value) > 10**300:
            raws.append("1" + "0" * 5000)
            return f"@raw{len(raws) - 1}@"
        if isinstance(value, dict):
            return {name: keep(item) for name, item in value.items()}
        return [keep(item) for item in value] if isinstance(value, list) else value

    text = json.dumps(keep(document), separators=(",", ":"))
    for number, raw in enumerate(raws):
        text = text.replace(f'"@raw{number}@"', raw)
    return text.encode()


def parsed_lines(records: Path) -> list[Any]:
    """The lines of a file of records, without their checksums."""
    return [json.loads(line[: -len(',"crc":"00000000"}')] + b"}") for line in records.read_bytes().splitlines()]


def record_line(document: Any) -> bytes:
    """A line of records with its checksum."""
    body = as_json(document)[:-1]
    return body + b',"crc":"%08x"}\n' % zlib.crc32(body)


def _places(value: Any, at: Path_ = ()) -> Iterator[Path_]:
    yield at
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, item in items:
        yield from _places(item, (*at, name))
