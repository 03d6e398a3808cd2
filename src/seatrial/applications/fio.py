"""fio (2.x and 3.x): the JSON of `--output-format=json`, also json+.

Each entry of `jobs` is one experiment. Bandwidth must equal bytes / run time, which the file states too, so a damaged
number is detected. `bw` is in KiB/s; fio 2 has `io_bytes` in KiB and latencies in microseconds.

`io.file`: how fast one thread reads and writes a file, over file size x record size.

The surface known from iozone, measured by fio: synchronous calls of one thread, sequential or random, through the page
cache or bypassing it. Buffered calls use the cache, like an application that reads what it has just written: the
rate falls when a file outgrows memory. Direct calls reach the device.

One repeat is one fio process that measures all points of the surface in turn, each for a fixed time. Before that it
writes the file and reads all of it back with checksums. A smaller "file" of the surface is the beginning of the
largest. The file is in the results folder or in the given folder, and is removed at the end. fio needs 0.3 s to start
and end each point, so the default has only a few.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import gcd
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, read_object
from seatrial.applications.reading.run_output import not_read
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.applications.reading.text import Pattern
from seatrial.applications.running.given_input import TARGET, with_target
from seatrial.benchmarks.figures import exactly, rate, zero
from seatrial.errors import ParseError
from seatrial.model.benchmark.benchmark import Benchmark, Check, External, Figure, Role, Skip
from seatrial.model.benchmark.parameter import Parameter, Params, Value
from seatrial.model.benchmark.program import UNREADABLE, ProgramRecord
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "fio"
_BENCHMARK = "imported.fio-json"
_VERSION = Pattern(r"fio-([0-9]{1,4})(\.[0-9A-Za-z.+-]{0,60})?")
_SIZE = Pattern(r"([0-9]{1,15})([kKmMgGtTpP]?)(?:[iI]?[bB])?")
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_DIRECTIONS = ("read", "write")
_LATENCIES = {"lat_ns": 1e-9, "lat_us": 1e-6, "lat": 1e-6}


def read(data: bytes) -> ImportedFile:
    """One run of fio. Raises ParseError if it is cut off, measured nothing, or contradicts itself."""
    document = read_object(data, _TOOL, "fio version", "jobs")
    version_text = document.text("fio version") or ""
    version = _VERSION.fullmatch(version_text)
    if version is None:
        raise document.error(f"`fio version` is {version_text!r}: this is not JSON output of fio")
    shared = document.get("global options")
    experiments: list[ImportedExperiment] = []
    names: dict[str, int] = {}
    for entry in document.objects("jobs"):
        name = entry.text("jobname")
        if name is None:
            raise entry.error("a job has no name")
        clone = names.get(name, 0)
        names[name] = clone + 1
        options = {**_dict(shared), **_dict(entry.get("job options"))}
        experiments.append(_experiment(entry.named(f"job {name!r}"), name, clone, options, is_old=int(version[1]) < 3))
    date_s = document.number("timestamp_ms") / 1e3 if document.get("timestamp_ms") is not None else None
    date_s = date_s or float(document.whole("timestamp") or 0) or None
    return ImportedFile(_TOOL, version_text.removeprefix("fio-"), tuple(experiments), date_s=date_s)


def _dict(found: object) -> dict[str, Any]:
    return found if isinstance(found, dict) else {}


def _experiment(
    entry: JsonObject, name: str, clone: int, options: Mapping[str, Any], *, is_old: bool
) -> ImportedExperiment:
    parameters: dict[str, Value] = {"job": name, "clone": clone}
    if options:  # versions before 2.3 state none
        parameters |= _parameters(JsonObject(_TOOL, entry.where, options))
    notes = {"options": {str(key)[:80]: str(value)[:200] for key, value in list(options.items())[:100]}}
    if error := entry.number("error"):
        failed = f"{entry.where} ended with error {error:.0f}"
        return ImportedExperiment(_BENCHMARK, (), parameters, notes, failed=failed)
    samples = [
        sample for direction in _DIRECTIONS for sample in _samples(entry.object(direction), direction, is_old=is_old)
    ]
    if not samples:
        raise entry.error("it neither read nor wrote anything")
    series = {sample.series for sample in samples}
    remarks = tuple(
        f"{direction}: no latency in {' or '.join(_LATENCIES)}: no figure of it"
        for direction in _DIRECTIONS
        if direction in series and f"{direction}_latency" not in series
    )
    return ImportedExperiment(_BENCHMARK, tuple(samples), parameters, notes, remarks=remarks)


def _parameters(options: JsonObject) -> dict[str, Value]:
    """The options of the job. fio omits options that have their default; the defaults are filled in here.

    fio's defaults: rw=read, bs=4k, direct=0, numjobs=1, iodepth=1 (fio(1)). That of ioengine depends on the system.
    """
    parameters: dict[str, Value] = {
        "rw": options.text("rw") or options.text("readwrite") or "read",
        "direct": (options.text("direct") or "0") in ("1", "true"),
        "numjobs": options.whole("numjobs") or 1,
        "iodepth": options.whole("iodepth") or 1,
    }
    engine = options.text("ioengine")
    if engine is not None:
        parameters["ioengine"] = engine
    record_B = _size(options.text("bs") or options.text("blocksize") or "4k", options)
    if record_B is not None:
        parameters["record_B"] = record_B
    file_B = _size(options.text("size") or options.text("filesize") or "", options)
    if file_B is not None:
        parameters["file_B"] = file_B
    return parameters


def _size(text: str, options: JsonObject) -> int | None:
    """A size as fio parses it: 4k is 4096 B (kb_base=1024, the default); None for a range, a percentage or no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or options.text("kb_base") not in (None, "1024"):
        return None
    value = int(match[1]) * 1024 ** _POWERS[match[2].lower()]
    return value if 0 < value <= 2**53 else None


def _samples(group: JsonObject, direction: str, *, is_old: bool) -> list[Sample]:
    """Bandwidth, operations and mean latency of one direction; empty if the job did not use it. Raises ParseError if
    they contradict each other."""
    moved = group.number("io_bytes") * (1024 if is_old else 1)
    if moved == 0:
        return []
    runtime_s = group.number("runtime") / 1e3
    iops, in_KiB = group.number("iops"), group.number("bw") * 1024
    rate = group.number("bw_bytes") if "bw_bytes" in group else in_KiB
    # Both bandwidths are bytes / time, which fio gives in milliseconds.
    if abs(rate - in_KiB) > 1024 + 0.001 * rate:
        raise group.error(f"bw_bytes {rate:.0f} is not bw, {in_KiB / 1024:.0f} KiB/s")
    if runtime_s and abs(rate * runtime_s - moved) > 0.01 * moved + rate * 2e-3:
        raise group.error(f"{rate:.0f} B/s for {runtime_s:g} s is not {moved:.0f} B")
    if rate == 0 or iops == 0:
        raise group.error(f"{moved:.0f} B moved at a rate of 0")
    total = group.whole("total_ios")
    if total and runtime_s and abs(iops * runtime_s - total) > 0.01 * total + 2 * iops * 1e-3 + 2:
        raise group.error(f"iops {iops:g} x {runtime_s:g} s is not {total} operations")
    step = 1e-3 / runtime_s if runtime_s else 0.0  # both are per runtime, which fio counts in whole milliseconds
    samples = [
        figures.rate_sample(direction, rate, resolution=step),
        figures.rate_sample(f"{direction}_iops", iops, resolution=step),
    ]
    key = next((key for key in _LATENCIES if isinstance(group.get(key), dict)), None)
    if key is not None:
        mean, least, most = (group.object(key).number(what) for what in ("mean", "min", "max"))
        if mean and not least <= mean * 1.000001 <= most * 1.000002:
            raise group.error(f"the mean of {key} is not between its min and max")
        if mean:
            samples.append(figures.time_sample(f"{direction}_latency", figures.in_SI(mean, _LATENCIES[key])))
    return samples


IMPORTED = figures.imported(
    "fio-json",
    "fio",
    "How fast did fio read and write?",
    (
        figures.text("job", "name of the job"),
        Parameter.integer("clone", 0, "index among entries of that name in the file, from 0"),
        figures.text("rw", "pattern: read, write, randread, ..."),
        figures.size("record_B", "size of a transfer (bs)"),
        figures.size("file_B", "size of the file (size)"),
        Parameter.switch("direct", False, "bypass the page cache"),
        figures.text("ioengine", "I/O engine that issues the transfers"),
        *figures.counts(iodepth="transfers in flight per process", numjobs="processes"),
    ),
    tuple(
        figure
        for way in ("read", "write")
        for figure in (
            figures.rate(way, "B/s", "bytes over the run time of the job", figures.given_limit("B/s")),
            figures.rate(f"{way}_iops", "op/s", "transfers over the run time of the job"),
            figures.time(f"{way}_latency", "mean time of a transfer, from submission to completion"),
        )
    ),
)

READER = figures.Reader("fio-json", read, (JSON_BEGIN,))


_FILES_B = {"brief": (16 << 20, 256 << 20), "surface": (1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20, 1 << 30)}
_RECORDS_B = {"brief": (4 << 10, 1 << 20), "surface": tuple(1 << power for power in range(12, 25, 2))}
_WORDS = ("brief", "surface")
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
    params = with_target(params)
    if not surface(params):
        raise Skip("a record cannot be longer than its file")
    if params["direct"] and any(record_B % 512 for _, record_B in surface(params)):
        raise Skip("direct I/O needs whole disk blocks: use records of a multiple of 512 B")
    return params


def _arguments(params: Params, directory: Path) -> list[str]:
    """Fio's command line: a section of common options, then jobs that run one after another."""
    folder = directory if params["folder"] == TARGET.default else Path(str(params["folder"]))
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
    block_B = gcd(_file_B(params), 1 << 20)  # the largest record up to 1 MiB of which the file has a whole number
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


def _file_B(params: Params) -> int:
    """The size of the file: a whole number of the longest records."""
    return max(-(-file_B // record_B) * record_B for file_B, record_B in surface(params))


def read_fio(data: bytes) -> ProgramRecord:
    """The samples and checks in fio's JSON. Raises ProtocolError if it is invalid or incomplete."""
    try:
        return _record(read_object(data, _TOOL).objects("jobs"))
    except (ParseError, *UNREADABLE) as error:
        raise not_read(_TOOL, error.why if isinstance(error, ParseError) else repr(error)) from error


def _record(jobs: Sequence[JsonObject]) -> ProgramRecord:
    refused = [job for job in jobs if job.number("error") == _EINVAL]
    if refused and all(job.object("job options").text("direct") == "1" for job in refused):
        return ProgramRecord(skip="the file system refuses direct I/O", ended=True)
    return ProgramRecord(
        samples=tuple(sample for job in jobs if (sample := _sample(job)) is not None),
        checks={
            "errors": float(sum(job.number("error") != 0 for job in jobs)),
            "verified_B": sum(job.object("read").number("io_bytes") for job in jobs if job.text("jobname") == "layout"),
            "short_ios": sum(job.object(way).number("short_ios") for job in jobs for way in _DIRECTIONS),
        },
        ended=True,
    )


def _sample(job: JsonObject) -> Sample | None:
    """The sample of a job that measures a point; None for the preparing job."""
    call, _, point = (job.text("jobname") or "").partition(":")
    if not point:
        return None
    file_B, record_B = map(int, point.split(":"))
    reported = job.object(call)
    runtime_ms, latency = reported.number("runtime"), reported.object("clat_ns")
    return Sample(
        series=call,
        i=0,
        elapsed_s=runtime_ms / 1e3,
        work={"bytes": reported.number("io_bytes"), "ops": reported.number("total_ios")},
        point={"file_B": file_B, "record_B": record_B},
        extra={
            "resolution": 1.0 / max(1.0, runtime_ms),  # whole milliseconds
            "call_mean_s": latency.number("mean") / 1e9,
            "call_max_s": latency.number("max") / 1e9,
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
    return rate(call, "B/s", f"bytes {verb} by synchronous calls of one thread", limit=_limit, role=Role.FILE_RATE)


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
        replace(TARGET, help="folder on the file system to measure; results: the results folder"),
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
