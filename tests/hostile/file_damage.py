"""Files of every kind that is read, damaged: `mutant(kind, number)` gives the same bytes each time; `read(kind, data)`
reads them as the commands do. The kinds of `import` are those of the registry of readers."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

from applications.result_texts import (
    ABINIT,
    MAPDL,
    PAM_CRASH,
    SACCT,
    as_bytes,
    babelstream,
    babelstream_csv,
    csv_table,
    dcgm,
    dcgm_json,
    fio,
    google_benchmark,
    hpl,
    inspector,
    iperf3,
    likwid_bench,
    perftest,
    star_log,
    star_table,
    stream,
    stream_mpi,
)
from applications.training_texts import TEXTS as TRAINING_TEXTS
from conftest import SHARED_DATA
from fabric.fabric_texts import DUMPS as FABRIC_TEXTS
from machine.mutations import _MUTATIONS as TEXT_MUTATIONS
from machine.mutations import KINDS as DUMP_KINDS
from machine.mutations import mutant as dump_mutant
from machine.mutations import reader as dump_reader
from profiler.made_up_samples import Samples, Series
from profiler.made_up_tables import Call, Table, Thread
from profiler.made_up_traces import collective, done, receive, send, trace_file

import seatrial.references
from seatrial.analysis.profiles import profiles_of_tables
from seatrial.applications.readers import readers
from seatrial.engine.importing import Given, ResultFile, read_repeats
from seatrial.errors import ParseError
from seatrial.fabric.dumps import read_fabric
from seatrial.fabric.parts import FabricText
from seatrial.machine.assemble import assemble
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.document import machine_document
from seatrial.plan.site_file import read_site
from seatrial.plan.study_file import read_study
from seatrial.references.loader import checked
from seatrial.references.loader import read as read_references
from seatrial.report.documents.check import fabric_document
from seatrial.report.profile.document import profile_document
from seatrial.report.profile.page import profile_page
from seatrial.report.profile.text import profile_text
from seatrial.report.profile.trace_export import write_trace
from seatrial.report.text.fabric import fabric_text

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_REFERENCES = Path(seatrial.references.__file__).parent / "data"
_SITE = b"""environments:
  production: {mpi: /opt/openmpi/4.1.6, launcher: srun, flags: -O2 -mavx2, variables: {UCX_TLS: "rc,sm"}}
  plain: {}
systems:
  tera:
    partitions:
      compute: {environments: [production], launcher: srun, nodes: 64}
      fat: {hosts: [fat1, fat2.example.org]}
"""
_RECORD = b"".join(
    json.dumps(event).encode() + b"\n"
    for event in (
        {"ev": "hello", "v": 1, "program": "stream", "build": "k", "host": "n1", "cpus": [[0]], "libs": {"a.so": "b"}},
        {"ev": "note", "key": "arguments", "value": ["--elements", "1000"]},
        *({"ev": "sample", "series": "triad", "i": i, "elapsed_s": 1e-3, "work": {"bytes": 24e6}} for i in range(3)),
        {"ev": "check", "name": "mismatches", "value": 0},
        {"ev": "end"},
    )
)
_MADE_UP = {
    "stream": (stream(), stream(version="5.9"), stream_mpi()),
    "babelstream": (babelstream(), babelstream_csv()),
    "hpl": (hpl(),),
    "fio-json": (as_bytes(fio()).decode(),),
    "google-benchmark-json": (as_bytes(google_benchmark()).decode(),),
    "abinit": (ABINIT,),
    "mechanical": (MAPDL,),
    "pam-crash": (PAM_CRASH,),
    "star-ccm": (star_log(star_table()),),
    "csv": (csv_table(),),
    "records": (_RECORD.decode(),),
    "perftest": (perftest(),),
    "sacct": (SACCT,),
    "iperf3": (as_bytes(iperf3()).decode(),),
    "nccl-inspector": (inspector(),),
    "dcgm-diag": (dcgm(), as_bytes(dcgm_json()).decode()),
    "likwid-bench": (likwid_bench(),),
    **{kind: (text,) for kind, text in TRAINING_TEXTS.items()},
}
"""Kinds without a real file need one here."""
_MOST_REAL = 8
_LARGEST_B = 64 << 10
"""Larger files only if a kind has no other."""


@cache
def samples(kind: str) -> tuple[bytes, ...]:
    """Undamaged contents of a kind. Those of `import` may be missing where the third-party files are not here."""
    sort, _, name = kind.partition(" ")
    return _imported(name) if sort == "import" else _OWN[kind]()


def _imported(kind: str) -> tuple[bytes, ...]:
    """The made-up files of a kind, and the smallest real ones that its reader reads: found, not listed."""
    contents = [text.encode() for text in _MADE_UP.get(kind, ())]
    real = 0
    for data in _real_files():
        if real == _MOST_REAL or (real and len(data) > _LARGEST_B):
            break
        with contextlib.suppress(ParseError):
            readers()[kind].parse(data)
            contents.append(data)
            real += 1
    return tuple(contents)


@cache
def _real_files() -> tuple[bytes, ...]:
    """Files of other tools, the smallest first."""
    folders = (SHARED_DATA / "outputs", SHARED_DATA / "applications")
    files = (path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file())
    return tuple(sorted((path.read_bytes() for path in files), key=len))


def _table(rank: int) -> bytes:
    calls = [Call("MPI_Send", 5, 1000, 0.1), Call("MPI_Recv", 5, 1000, 0.2), Call("MPI_Allreduce", 4, 8, 0.5)]
    return Table(rank=rank, size=2, threads=(Thread(calls, {1 - rank: (5, 5000, 5, 5000)}, [0.3] * 10),)).data()


def _io_samples() -> bytes:
    return Samples([0.0, 0.2, 0.4], [[0] * 4, [9] * 4, [20] * 4], [Series(counters={0: [1] * 7, 2: [5] * 7})]).data()


def _traces() -> list[bytes]:
    records = (
        [
            send("MPI_Isend", 0.1, 0.11, 1, 7, 100),
            done("MPI_Wait", 0.2, 0.3, 2),
            collective("MPI_Bcast", 0.4, 0.5, 8, 0),
        ],
        [receive("MPI_Recv", 0.1, 0.3, 0, 7, 100), collective("MPI_Bcast", 0.4, 0.5, 8, 0)],
    )
    with tempfile.TemporaryDirectory() as folder:
        return [trace_file(Path(folder), rank, 2, own).read_bytes() for rank, own in enumerate(records)]


_OWN: Mapping[str, Callable[[], tuple[bytes, ...]]] = {
    "study": lambda: tuple(path.read_bytes() for path in sorted(_EXAMPLES.glob("*.yaml"))),
    "site": lambda: (_SITE,),
    "references": lambda: tuple(path.read_bytes() for path in sorted(_REFERENCES.glob("*.toml"))[:3]),
    "record of a program": lambda: (_RECORD,),
    "table": lambda: (_table(0), _table(1)),
    "I/O samples": lambda: (_io_samples(),),
    "trace": lambda: tuple(_traces()),
    **{f"fabric {form}": lambda form=form: (FABRIC_TEXTS[form].encode(),) for form in FABRIC_TEXTS},  # type: ignore[misc]
}
DUMPS = tuple(f"from {kind}" for kind in DUMP_KINDS)
BINARY = ("table", "I/O samples", "trace")


def kinds() -> tuple[str, ...]:
    """Every kind of file, in a fixed order."""
    return (*DUMPS, *(f"import {kind}" for kind in readers()), *_OWN)


def mutant(kind: str, number: int) -> bytes:
    """One damaged file."""
    if kind in DUMPS:
        return dump_mutant(kind.removeprefix("from "), number)[1]
    rng = Random(f"{kind} {number}")
    data = samples(kind)[number % len(samples(kind))]
    for _ in range(rng.choice((1, 1, 2, 3, 6))):
        if kind in BINARY:
            data = _damaged_field(data, rng)
        elif data.lstrip()[:1] == b"{" and rng.random() < 0.5:
            data = _damaged_json(data, rng)
        else:
            data = rng.choice(_OF_ANY_TEXT)(data, rng, "")
    return data


_OF_ANY_TEXT = [mutation for mutation in TEXT_MUTATIONS if mutation.__name__ != "_glue"]
_EXTREME = (0, 1, 2, 7, 255, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**63, 2**64 - 1)
_VALUES = ("null", "true", "-1", "1e999", "NaN", "[]", "{}", '""', '"x"', "[" * 2000, "9" * 400, '"\\ud800"', "1e-320")


def _damaged_field(data: bytes, rng: Random) -> bytes:
    """A number in the header or in the content exchanged, or the file cut."""
    if not data or rng.random() < 0.1:
        return data[: rng.randrange(len(data) + 1)]
    size = rng.choice((4, 8))
    used = [at for at in range(0, min(len(data), 1 << 16), 8) if any(data[at : at + 8])] or [0]
    at = rng.choice(used) + rng.choice((0, 0, 4))
    value = rng.choice((*_EXTREME, rng.getrandbits(64))) % 2 ** (8 * size)
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


def _damaged_json(data: bytes, rng: Random) -> bytes:
    """A value exchanged in the text."""
    ends = [n for n, byte in enumerate(data) if byte in b",}]"]
    starts = [n for n, byte in enumerate(data) if byte in b":,["]
    if not ends or not starts:
        return data
    start = rng.choice(starts) + 1
    end = next((n for n in ends if n >= start), len(data))
    return data[:start] + rng.choice(_VALUES).encode() + data[end:]


def read(kind: str, data: bytes, folder: Path) -> None:
    """As the commands read it; `folder` is for files that are read by their paths. Raises SeatrialError."""
    sort, _, name = kind.partition(" ")
    if sort == "from":
        json.dumps(machine_document(assemble([dump_reader(name)(data, None)])), allow_nan=False)
    elif sort == "import":
        for repeat in read_repeats((ResultFile(name, "file", data, 0.0),), Given()):
            json.dumps([repeat.experiment.document(), repeat.environment, dict(repeat.seen)])
    else:
        _READERS[kind](data, folder)


def _read_profile(name: str) -> Callable[[bytes, Path], None]:
    def read_it(data: bytes, folder: Path) -> None:
        files = {"a.mpi": samples("table")[0], "b.mpi": samples("table")[1], name: data}
        for other, content in files.items():
            (folder / other).write_bytes(content)
        found = profiles_of_tables(folder)[0]
        for profile in found:
            json.dumps(profile_document(profile, 0), allow_nan=False)
            profile_text(profile)
        if found and sum(data) % 8 == 0:  # its charts take time
            profile_page(found)

    return read_it


def _read_trace(data: bytes, folder: Path) -> None:
    for name, content in {"node-100.trace": data, "node-101.trace": samples("trace")[1]}.items():
        (folder / name).write_bytes(content)
    write_trace(folder, folder / "export")


def _read_fabric(kind: str) -> Callable[[bytes, Path], None]:
    def read_it(data: bytes, folder: Path) -> None:
        fabric = read_fabric(kind, [FabricText("file", data, 1)])
        json.dumps(fabric_document(fabric), allow_nan=False)
        fabric_text(fabric)

    return read_it


_READERS: Mapping[str, Callable[[bytes, Path], Any]] = {
    "study": lambda data, folder: read_study(data, "study.yaml"),
    "site": lambda data, folder: read_site(data, "site.yaml"),
    "references": lambda data, folder: checked(read_references(data, "own.toml")),
    "record of a program": lambda data, folder: parse_record(data),
    "table": _read_profile("a.mpi"),
    "I/O samples": _read_profile("node1.io"),
    "trace": _read_trace,
    **{f"fabric {form}": _read_fabric(form.split()[0]) for form in FABRIC_TEXTS},
}
