"""Google Benchmark (1.x): the JSON of `--benchmark_out_format=json` or `--benchmark_format=json`.

Each benchmark of the file (its `run_name`) is one experiment, its repetitions are samples. Aggregates are skipped:
seatrial computes its own. Times are means over the iterations of a repetition, in `time_unit`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import PurePosixPath

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, read_object
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "Google Benchmark"
_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_RATES = ("bytes_per_second", "items_per_second")
_AGGREGATES = ("_mean", "_median", "_stddev", "_cv", "_BigO", "_RMS")
_OWN_NUMBERS = frozenset(
    (
        *("real_time", "cpu_time", "iterations", "threads", "repetitions", "repetition_index", "family_index"),
        *("per_family_instance_index", *_RATES),
    )
)
"""Keys of numbers that the library itself writes; the others are counters of the program."""
_MOST_BENCHMARKS = 100_000


def read(data: bytes) -> ImportedFile:
    """One run of a program. Raises ParseError for a file without a measurement, or with an impossible number."""
    document = read_object(data, _TOOL, "context", "benchmarks")
    context, entries = document.object("context"), document.objects("benchmarks")
    if len(entries) > _MOST_BENCHMARKS:
        raise document.error(f"more than {_MOST_BENCHMARKS} entries")
    groups: dict[tuple[str, int], list[JsonObject]] = {}
    left_out: list[str] = []
    is_old = all("run_type" not in entry for entry in entries)
    for entry in entries:
        name = entry.text("run_name") or entry.text("name")
        if name is None:
            raise entry.error("a benchmark has no name")
        if entry.get("skipped") is True:
            left_out.append(name)
        elif not _is_aggregate(entry, is_old):
            groups.setdefault((name, entry.whole("threads") or 1), []).append(entry.named(name))
    if not groups:
        why = "the file has no measurements, at most aggregates: run without --benchmark_report_aggregates_only"
        raise document.error(why)
    executable = PurePosixPath(context.text("executable") or "").name
    notes = {
        "library_build_type": context.text("library_build_type"),
        "cpu_scaling_enabled": context.get("cpu_scaling_enabled") is True,
    }
    experiments = [_experiment(key, group, executable, notes, is_old) for key, group in groups.items()]
    if left_out:
        listed = f"{', '.join(left_out[:6])}{f' and {len(left_out) - 6} more' if len(left_out) > 6 else ''}"
        experiments[0] = replace(experiments[0], remarks=(f"the program skipped {listed}", *experiments[0].remarks))
    version = context.text("library_version") or ""
    return ImportedFile(_TOOL, version, tuple(experiments), host=context.text("host_name"), date_s=_date(context))


def _is_aggregate(entry: JsonObject, is_old: bool) -> bool:
    """Whether an entry is an aggregate; before 1.5 only the suffix of its name shows it."""
    if is_old:
        return (entry.text("name") or "").endswith(_AGGREGATES)
    return entry.get("run_type") != "iteration" or "aggregate_name" in entry


def _experiment(
    key: tuple[str, int], group: Sequence[JsonObject], executable: str, notes: Mapping[str, object], is_old: bool
) -> ImportedExperiment:
    name, threads = key
    parameters: dict[str, Value] = {"name": name, "threads": threads}
    if executable:
        parameters["executable"] = executable
    failing = next((entry for entry in group if entry.get("error_occurred") is True), None)
    if failing is not None:
        reason = failing.text("error_message") or "the benchmark reports an error"
        return ImportedExperiment("imported.google-benchmark-json", (), parameters, notes, failed=f"{name}: {reason}")
    indices = [entry.whole("repetition_index") for entry in group]
    if len(group) > 1 and not is_old and (None in indices or len(set(indices)) < len(group)):
        raise group[0].error("it is in the file twice, but not as repetitions of one run")
    expected = max((entry.whole("repetitions") or 0 for entry in group), default=0)
    if expected > len(group):
        raise group[0].error(f"only {len(group)} of {expected} repetitions: the file is incomplete")
    samples = [sample for i, entry in enumerate(group) for sample in _samples(entry, i)]
    remarks = _remarks(group)
    return ImportedExperiment("imported.google-benchmark-json", tuple(samples), parameters, notes, remarks=remarks)


def _remarks(group: Sequence[JsonObject]) -> tuple[str, ...]:
    """A remark on the counters of the program, which have no unit and so no figure."""
    counters = dict.fromkeys(
        key
        for entry in group
        for key, value in entry.values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in _OWN_NUMBERS
    )
    return (
        (f"no figure of {', '.join(key[:40] for key in list(counters)[:20])}: the unit is unknown",) if counters else ()
    )


def _samples(entry: JsonObject, i: int) -> list[Sample]:
    unit = entry.get("time_unit")
    if not isinstance(unit, str) or unit not in _UNITS:
        raise entry.error(f"the time unit {str(unit)[:20]!r} is not one of {', '.join(_UNITS)}")
    times = {key: entry.number(key) for key in ("real_time", "cpu_time")}
    if times["real_time"] == 0:
        raise entry.error("real_time is 0: nothing was measured")
    # CPU time is 0 if the CPU only waits for a device.
    samples = [
        figures.time_sample(key, figures.in_SI(value, _UNITS[unit]), i=i) for key, value in times.items() if value > 0
    ]
    for key in _RATES:
        if key in entry and (rate := entry.number(key)) > 0:
            samples.append(figures.rate_sample(key, rate, i=i))
    return samples


def _date(context: JsonObject) -> float | None:
    """The start in seconds since the epoch; None if the file has no date or no time zone."""
    text = context.text("date") or ""
    try:
        date = datetime.fromisoformat(text)
        return None if date.tzinfo is None else date.timestamp()
    except (ValueError, OverflowError):
        return None


IMPORTED = figures.imported(
    "google-benchmark-json",
    "Google Benchmark",
    "How long did this function take?",
    (
        figures.text("name", "the benchmark, as named in the program"),
        figures.count("threads", "threads that run it concurrently"),
        figures.text("executable", "the program"),
    ),
    (
        figures.time("real_time", "one iteration, wall time"),
        figures.time("cpu_time", "one iteration, CPU time"),
        # The bytes may come from a cache, so only a limit that the user gives applies.
        figures.rate("bytes_per_second", "B/s", "bytes that the program counts", figures.given_limit("B/s")),
        figures.rate("items_per_second", "op/s", "items that the program counts"),
    ),
)

READER = figures.Reader("google-benchmark-json", read, (JSON_BEGIN,), is_from_documentation=True)
