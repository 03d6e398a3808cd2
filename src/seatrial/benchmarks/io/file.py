"""io.file: how fast one thread reads and writes a file, over file size x record size.

The surface known from iozone, measured by fio: synchronous calls of one thread, sequential or random, through the page
cache or bypassing it. Buffered calls use the cache, like an application that reads what it has just written: the
rate falls when a file outgrows memory. Direct calls reach the device.

One repeat is one fio process that measures all points of the surface in turn, each for a fixed time. Before that it
writes the file and reads all of it back with checksums. A smaller "file" of the surface is the beginning of the
largest. The file is in the results folder or in the given folder, and is removed at the end. fio needs 0.3 s to start
and end each point, so the default has only a few.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

from seatrial.benchmarks.figures import exactly, rate, zero
from seatrial.errors import ProtocolError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Check, External, Figure, Skip
from seatrial.model.benchmark.parameter import Parameter, Params
from seatrial.model.benchmark.program import UNREADABLE, ProgramRecord
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample

_FILES_B = {"brief": (16 << 20, 256 << 20), "surface": (1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30)}
_RECORDS_B = {"brief": (4 << 10, 1 << 20), "surface": tuple(1 << power for power in range(12, 25, 2))}
_WORDS = ("brief", "surface")
_RESULTS = "results"
_SLICE_MS = 95
"""A job's time, just below 100 ms: fio checks for the end of a job every 100 ms."""
_JOB_S = 0.31
"""Time of a fio job, measured with fio 3.33: 100 ms before it starts, 100 ms for it, 100 ms after it."""
_SLOW_DISK_BPS = 1e9
_EINVAL = 22
_OUTPUT = "fio.json"

_CALLS = {"sequential": {"write": "write", "read": "read"}, "random": {"write": "randwrite", "read": "randread"}}


def _values(value: object, words: Mapping[str, tuple[int, ...]]) -> tuple[int, ...]:
    return words.get(str(value)) or (int(str(value)),)


def surface(params: Params) -> tuple[tuple[int, int], ...]:
    """The points (file_B, record_B) that a resolved experiment measures; a record is never longer than its file."""
    files, records = _values(params["file_B"], _FILES_B), _values(params["record_B"], _RECORDS_B)
    return tuple((file_B, record_B) for file_B, record_B in product(files, records) if record_B <= file_B)


def _prepare(machine: Machine, params: Params) -> Params:
    folder = str(params["folder"])
    if folder != _RESULTS:
        if not Path(folder).is_dir():
            raise UsageError(f"folder={folder} is not a folder", "name a folder on the file system to measure")
        params = {**params, "folder": str(Path(folder).resolve())}
    if not surface(params):
        raise Skip("a record cannot be longer than its file")
    if params["direct"] and any(record_B % 512 for _, record_B in surface(params)):
        raise Skip("direct I/O needs whole disk blocks: use records of a multiple of 512 B")
    return params


def _arguments(params: Params, directory: Path) -> list[str]:
    """Fio's command line: a section of common options, then jobs that run one after another."""
    folder = directory if params["folder"] == _RESULTS else Path(str(params["folder"]))
    jobs = list(_jobs(params, f"seatrial-{directory.name}"))
    common = {
        "directory": str(folder).replace(":", "\\:"),  # fio takes a colon for the end of the name
        "ioengine": "psync",
        "thread": 1,
        "invalidate": 0,
        "clocksource": "clock_gettime",  # the other one is calibrated anew by each process: 0.15 s
    }
    return [
        *("--output-format=json", f"--output={directory / _OUTPUT}"),
        *_section("global", common),
        *(argument for name, options in jobs for argument in _section(name, {"stonewall": 1, **options})),
    ]


def _section(name: str, options: Mapping[str, object]) -> list[str]:
    return [f"--name={name}", *(f"--{option}={value}" for option, value in options.items())]


def _jobs(params: Params, stem: str) -> Iterator[tuple[str, dict[str, object]]]:
    """(name, options) of each job. The name of a job states its point: "read:<file_B>:<record_B>"."""
    calls = _CALLS[str(params["pattern"])]
    points = surface(params)
    block_B = _layout_record_B(params)
    file = {"filename": stem, "filesize": _file_B(params)}
    # The whole file is written once before anything is timed: a first write allocates, a second does not.
    written = {"rw": "write", "bs": block_B, "end_fsync": 1, "verify": "crc32c", "do_verify": 1}
    written |= {"verify_fatal": 1, "verify_state_save": 0}  # no state file in the current folder
    yield "layout", {**file, "size": _file_B(params), **written}
    for call in ("write", "read"):
        for file_B, record_B in points:
            is_last = call == "read" and (file_B, record_B) == points[-1]
            timed = {
                "bs": record_B,
                "time_based": 1,
                "runtime": f"{_SLICE_MS}ms",
                "direct": int(bool(params["direct"])),
            }
            options = {**file, "size": file_B, "rw": calls[call], **timed, "unlink": int(is_last)}
            yield f"{call}:{file_B}:{record_B}", options


def _layout_record_B(params: Params) -> int:
    """The largest record up to 1 MiB of which the file holds a whole number."""
    return gcd(_file_B(params), 1 << 20)


def _file_B(params: Params) -> int:
    """The size of the file: a whole number of the longest records."""
    return max(-(-file_B // record_B) * record_B for file_B, record_B in surface(params))


def read_fio(data: bytes) -> ProgramRecord:
    """The samples and checks in fio's JSON. Raises ProtocolError if it is invalid or incomplete."""
    try:
        jobs = json.loads(data[data.index(b"{") :])["jobs"]
        refused = [job for job in jobs if job["error"] == _EINVAL]
        if refused and all(job["job options"].get("direct", "0") == "1" for job in refused):
            return ProgramRecord(skip="the file system refuses direct I/O", ended=True)
        samples = [sample for job in jobs if (sample := _sample(job)) is not None]
        checked = sum(job["read"]["io_bytes"] for job in jobs if job["jobname"] == "layout")
        return ProgramRecord(
            samples=tuple(samples),
            checks={
                "errors": float(sum(job["error"] != 0 for job in jobs)),
                "verified_B": float(checked),
                "short_ios": float(sum(job[call]["short_ios"] for job in jobs for call in ("read", "write"))),
            },
            ended=True,
        )
    except UNREADABLE as error:
        raise ProtocolError(f"cannot read fio's output ({error!r})") from error


def _sample(job: Mapping[str, Any]) -> Sample | None:
    """The sample of a job that measures a point; None for the preparing job."""
    call, _, point = str(job["jobname"]).partition(":")
    if not point:
        return None
    file_B, record_B = map(int, point.split(":"))
    reported = job[call]
    latency = reported["clat_ns"]
    return Sample(
        series=call,
        i=0,
        elapsed_s=reported["runtime"] / 1e3,
        work={"bytes": float(reported["io_bytes"]), "ops": float(reported["total_ios"])},
        point={"file_B": file_B, "record_B": record_B},
        extra={
            "resolution": 1.0 / max(1.0, reported["runtime"]),  # whole milliseconds
            "call_mean_s": latency["mean"] / 1e9,
            "call_max_s": latency["max"] / 1e9,
        },
    )


def _points_measured(machine: Machine, params: Params, samples: Sequence[Sample]) -> float:
    """The requested points that have samples, reading and writing, less those that were not requested."""
    wanted = {(call, *point) for call in ("read", "write") for point in surface(params)}
    found = {(sample.series, sample.point["file_B"], sample.point["record_B"]) for sample in samples}
    return len(wanted & found) - len(found - wanted)


def _limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    if params["direct"]:
        return Limit.unknown("B/s", "the rate of the disks below this file system is unknown")
    return Limit.unknown("B/s", "served by the page cache, at the rate of memory copies")


def _figure(call: str, verb: str) -> Figure:
    return rate(
        call, "B/s", "bytes", f"bytes {verb} by synchronous calls of one thread", limit=_limit, role=Role.FILE_RATE
    )


BENCHMARK = Benchmark(
    name="io.file",
    question="How fast does one thread read and write files, over file size and record size?",
    program=External(
        name="fio",
        install="install fio (Debian, RHEL: package fio; Spack: spack install fio)",
        output=_OUTPUT,
        arguments=_arguments,
        parse=read_fio,
    ),
    parameters=(
        Parameter.choice("pattern", "sequential", "order of the records in the file", tuple(_CALLS)),
        Parameter.switch("direct", False, "bypass the page cache"),
        Parameter.size(
            "file_B",
            "brief",
            "size of the file; brief: 16 MiB and 256 MiB; surface: 1 MiB to 1 GiB",
            _WORDS,
            minimum=512,
        ),
        Parameter.size(
            "record_B",
            "brief",
            "bytes in each call; brief: 4 KiB and 1 MiB; surface: 4 KiB to 16 MiB",
            _WORDS,
            minimum=1,
        ),
        Parameter.text(
            "folder", _RESULTS, "folder on the file system to measure; results: the results folder", (_RESULTS,)
        ),
    ),
    figures=(_figure("write", "written"), _figure("read", "read")),
    checks=(
        Check("errors", "fio jobs that failed", zero),
        Check("verified_B", "bytes read back and verified", exactly(_file_B)),
        Check("short_ios", "calls that transferred less than a record", zero),
        Check(
            "points_measured",
            "points of the surface that have samples",
            lambda machine, params: (2 * len(surface(params)), 2 * len(surface(params))),
            _points_measured,
        ),
    ),
    placement=lambda machine, params: (),
    prepare=_prepare,
    trial=({"direct": False}, {"direct": True}),
    estimate_s=lambda params: 0.1 + (2 * len(surface(params)) + 1) * _JOB_S + 2 * _file_B(params) / _SLOW_DISK_BPS,
)
