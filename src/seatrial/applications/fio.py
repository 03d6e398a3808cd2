"""fio (2.x and 3.x): the JSON of `--output-format=json`, also json+.

Each entry of `jobs` is one experiment. Bandwidth must equal bytes / run time, which the file states too, so a damaged
number is detected. `bw` is in KiB/s; fio 2 has `io_bytes` in KiB and latencies in microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import (
    find_text,
    find_whole,
    get_number,
    get_object,
    get_objects,
    read_object,
)
from seatrial.applications.reading.text import Pattern
from seatrial.errors import ParseError
from seatrial.model.benchmark.parameter import Parameter, Value
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
    document = read_object(data, _TOOL)
    version_text = find_text(document, "fio version") or ""
    version = _VERSION.fullmatch(version_text)
    if version is None:
        raise ParseError(_TOOL, None, "", f"`fio version` is {version_text!r}: this is not JSON output of fio")
    options = document.get("global options")
    shared = options if isinstance(options, dict) else {}
    experiments: list[ImportedExperiment] = []
    names: dict[str, int] = {}
    for entry in get_objects(document, "jobs", _TOOL, "the file"):
        name = find_text(entry, "jobname")
        if name is None:
            raise ParseError(_TOOL, None, "", "a job has no name")
        clone = names.get(name, 0)
        names[name] = clone + 1
        experiments.append(_experiment(entry, name, clone, shared, is_old=int(version[1]) < 3))
    date = document.get("timestamp_ms", None)
    date_s = get_number(document, "timestamp_ms", _TOOL, "the file") / 1e3 if date is not None else None
    return ImportedFile(
        _TOOL, version_text.removeprefix("fio-"), tuple(experiments), date_s=date_s or _seconds(document)
    )


def _seconds(document: Mapping[str, Any]) -> float | None:
    whole = find_whole(document, "timestamp")
    return float(whole) if whole else None


def _experiment(
    entry: Mapping[str, Any], name: str, clone: int, shared: Mapping[str, Any], *, is_old: bool
) -> ImportedExperiment:
    where = f"job {name!r}"
    own = entry.get("job options")
    options = {**shared, **(own if isinstance(own, dict) else {})}
    parameters = _parameters(options, name, clone)
    notes = {"options": {str(key)[:80]: str(value)[:200] for key, value in list(options.items())[:100]}}
    error = get_number(entry, "error", _TOOL, where)
    if error:
        failed = f"{where} ended with error {error:.0f}"
        return ImportedExperiment(_BENCHMARK, (), parameters, notes, failed=failed)
    samples = [sample for direction in _DIRECTIONS for sample in _samples(entry, direction, where, is_old=is_old)]
    if not samples:
        raise ParseError(_TOOL, None, "", f"{where} neither read nor wrote anything")
    series = {sample.series for sample in samples}
    remarks = tuple(
        f"{direction}: no latency in {' or '.join(_LATENCIES)}: no figure of it"
        for direction in _DIRECTIONS
        if direction in series and f"{direction}_latency" not in series
    )
    return ImportedExperiment(_BENCHMARK, tuple(samples), parameters, notes, remarks=remarks)


def _parameters(options: Mapping[str, Any], name: str, clone: int) -> dict[str, Value]:
    """The options of the job. fio omits options that have their default; the defaults are filled in here.

    fio's defaults: rw=read, bs=4k, direct=0, numjobs=1, iodepth=1 (fio(1)). That of ioengine depends on the system.
    """
    parameters: dict[str, Value] = {
        "job": name,
        "clone": clone,
        "rw": find_text(options, "rw") or find_text(options, "readwrite") or "read",
        "direct": (find_text(options, "direct") or "0") in ("1", "true"),
        "numjobs": find_whole(options, "numjobs") or 1,
        "iodepth": find_whole(options, "iodepth") or 1,
    }
    engine = find_text(options, "ioengine")
    if engine is not None:
        parameters["ioengine"] = engine
    record_B = _size(find_text(options, "bs") or find_text(options, "blocksize") or "4k", options)
    if record_B is not None:
        parameters["record_B"] = record_B
    file_B = _size(find_text(options, "size") or find_text(options, "filesize") or "", options)
    if file_B is not None:
        parameters["file_B"] = file_B
    return parameters


def _size(text: str, options: Mapping[str, Any]) -> int | None:
    """A size as fio parses it: 4k is 4096 B (kb_base=1024, the default); None for a range, a percentage or no size."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or find_text(options, "kb_base") not in (None, "1024"):
        return None
    value = int(match[1]) * 1024 ** _POWERS[match[2].lower()]
    return value if 0 < value <= 2**53 else None


def _samples(entry: Mapping[str, Any], direction: str, where: str, *, is_old: bool) -> list[Sample]:
    """Bandwidth, operations and mean latency of one direction; empty if the job did not use it."""
    group = get_object(entry, direction, _TOOL, where)
    where = f"{where}, {direction}"
    moved = get_number(group, "io_bytes", _TOOL, where) * (1024 if is_old else 1)
    if moved == 0:
        return []
    runtime_s = get_number(group, "runtime", _TOOL, where) / 1e3
    iops = get_number(group, "iops", _TOOL, where)
    in_KiB = get_number(group, "bw", _TOOL, where) * 1024
    rate = get_number(group, "bw_bytes", _TOOL, where) if "bw_bytes" in group else in_KiB
    _check(rate, in_KiB, moved, runtime_s, where)
    if rate == 0 or iops == 0:
        raise ParseError(_TOOL, None, "", f"{where}: {moved:.0f} B moved at a rate of 0")
    total = find_whole(group, "total_ios")
    if total and runtime_s and abs(iops * runtime_s - total) > 0.01 * total + 2 * iops * 1e-3 + 2:
        raise ParseError(_TOOL, None, "", f"{where}: iops {iops:g} x {runtime_s:g} s is not {total} operations")
    step = 1e-3 / runtime_s if runtime_s else 0.0  # both are per runtime, which fio counts in whole milliseconds
    samples = [
        figures.rate_sample(direction, rate, resolution=step),
        figures.rate_sample(f"{direction}_iops", iops, resolution=step),
    ]
    key = next((key for key in _LATENCIES if isinstance(group.get(key), dict)), None)
    if key is not None:
        mean = get_number(group[key], "mean", _TOOL, f"{where}, {key}")
        least, most = (get_number(group[key], end, _TOOL, f"{where}, {key}") for end in ("min", "max"))
        if mean and not least <= mean * 1.000001 <= most * 1.000002:
            raise ParseError(_TOOL, None, "", f"{where}: the mean of {key} is not between its min and max")
        if mean:
            samples.append(figures.time_sample(f"{direction}_latency", figures.in_SI(mean, _LATENCIES[key])))
    return samples


def _check(rate: float, in_KiB: float, moved: float, runtime_s: float, where: str) -> None:
    """Both bandwidths must equal bytes / time, which fio gives in milliseconds. Raises ParseError."""
    if abs(rate - in_KiB) > 1024 + 0.001 * rate:
        raise ParseError(_TOOL, None, "", f"{where}: bw_bytes {rate:.0f} is not bw, {in_KiB / 1024:.0f} KiB/s")
    if runtime_s and abs(rate * runtime_s - moved) > 0.01 * moved + rate * 2e-3:
        raise ParseError(_TOOL, None, "", f"{where}: {rate:.0f} B/s for {runtime_s:g} s is not {moved:.0f} B")


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
        figures.count("iodepth", "transfers in flight per process"),
        figures.count("numjobs", "processes"),
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

READER = figures.Reader("fio-json", read)
