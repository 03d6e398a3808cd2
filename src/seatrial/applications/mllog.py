"""MLPerf's log (mllog, and the older `:::MLPv0.5.0`), with anything before the marker.

The result is the time from `run_start` to `run_stop`: initialisation is outside, evaluations are inside. Samples are
taken where a key says so (`samples_count`), or as epochs x `train_samples`. Keys do not always mean what they are
called: `epoch_num` may count samples (whole multiples of the batch), `eval_accuracy` may be a loss (above 1, or it
falls), the `step` of `tracked_stats` may be samples. Every rank may print a line; a `run_stop` after which other epochs
follow is the end. A throughput that the log states must be samples over its time.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Log, Measured, Printed, plain_reader
from seatrial.applications.reading.text import LogLine, Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, with_definitions
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample
from seatrial.printable import printable

_TOOL = "mllog"
_MARK = ":::MLLOG "
_OLD = Pattern(
    r":::MLPv0\.[0-9]\.[0-9] (\S{1,60}) ([0-9]{10}(?:\.[0-9]{1,9})?) \([^)]{1,300}\) (\w{1,100})(?:: (.{0,2000}))?"
)
_BEGINS = frozenset(("cache_clear", "init_start", "submission_benchmark"))
_EVALUATED = ("eval_accuracy", "eval_error", "eval_loss", "eval_result")
_TRAINS = frozenset(("block_start", "epoch_start"))
_APART = ("eval", "checkpoint", "save_checkpoint", "staging")
_NEAR = 0.01
"""Between two statements of one rate."""
_TIME_NEAR = 0.05
"""Between run_start to run_stop and a time that the program measured itself."""
_JITTER_S = 5.0
"""Between the clocks of ranks that write one log."""
_MOST_EPOCHS = 10_000
_EPOCH_NEAR = 0.05
_COUNTED = frozenset((*_EVALUATED, "eval_start", "eval_stop", "run_stop"))
"""Keys with the samples since the begin; those of blocks may have the samples of the block."""


class _Event(Frozen):
    """A line: its time in seconds since the epoch, key, value and metadata."""

    line: LogLine
    time_s: float
    key: str
    value: Any
    metadata: Mapping[str, Any]
    resolution_s: float = 1e-3


def _events_of(line: LogLine, text: str) -> Iterator[_Event]:
    """The events in a line: two writers may have shared it. Raises ParseError for a damaged one."""
    at = text.find(_MARK)
    if at < 0:
        old = _OLD.search(text) if ":::MLP" in text else None
        if old is not None and float(old[2]) > 0:
            yield _Event(line, float(old[2]), old[3], _old_value(old[4]), {"benchmark": old[1]}, 1.0)
        return
    decoder = json.JSONDecoder()
    while at >= 0:
        start = text.find("{", at)
        try:
            found, end = decoder.raw_decode(text, start) if start >= 0 else (None, 0)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            if line.is_ended:
                raise line.error("no JSON behind `:::MLLOG`: the line is damaged")
            return
        if found.get("time_ms") != 0:  # a line that was added to please a checker
            yield _event(line, found)
        at = text.find(_MARK, end)


def _old_value(text: str | None) -> Any:
    try:
        return json.loads(text) if text else None
    except (ValueError, RecursionError):
        return text


def _event(line: LogLine, found: Mapping[str, Any]) -> _Event:
    time_ms, key = found.get("time_ms"), found.get("key")
    is_time = isinstance(time_ms, int | float) and not isinstance(time_ms, bool) and 1e12 < time_ms < 1e14
    if not is_time or not isinstance(time_ms, int | float) or not isinstance(key, str):
        raise line.error("no `time_ms` and `key`: the line is damaged")
    metadata = found.get("metadata")
    return _Event(line, time_ms / 1e3, key, found.get("value"), metadata if isinstance(metadata, dict) else {})


def _starts(lines: Sequence[str]) -> list[int]:
    """Where runs begin: at the first event, and at those of initialisation behind a run, if a `run_start` follows."""
    found: list[int] = []
    with_run: set[int] = set()
    is_begun = is_over = False
    for index, line in enumerate(lines):
        if ":::ML" not in line:
            continue
        text = line.partition('"key": "')[2].partition('"')[0] or (m[3] if (m := _OLD.search(line)) else "")
        if not found or (text in _BEGINS and is_begun) or (text == "run_start" and is_over):
            found.append(index)
            is_begun = is_over = False
        if text == "run_start":
            is_begun = True
            with_run.add(found[-1])
        is_over = is_over or text == "run_stop"
    return [start for k, start in enumerate(found) if not k or start in with_run]


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if it did not end, or its statements contradict each other."""
    events = [event for line, text in log.numbered() if ":::ML" in text for event in _events_of(line, text)]
    if not events:
        raise log.error("no line with `:::MLLOG {...}`: from another program")
    starts, stops = ([e for e in events if e.key == f"run_{what}"] for what in ("start", "stop"))
    if not starts:
        raise events[0].line.error("no `run_start`: the beginning of the run is missing, or it never began")
    if not stops:
        raise log.not_ended("no `run_stop`")
    if any(start.line.number > stops[0].line.number for start in starts):
        raise starts[-1].line.error("a `run_start` after the `run_stop`: two runs")
    if max(e.time_s for e in starts) - starts[0].time_s > 60 or max(e.time_s for e in stops) - stops[0].time_s > 60:
        raise starts[-1].line.error("`run_start` or `run_stop` again after more than a minute: two runs")
    begin, end = min(starts, key=lambda e: e.time_s), max(stops, key=lambda e: e.time_s)
    resolution_s = max(begin.resolution_s, end.resolution_s)
    wall = Printed(end.time_s - begin.time_s, resolution_s)
    if wall.value <= 0:
        raise end.line.error("`run_stop` is not after `run_start`")
    own = [e for e in events if begin.line.number <= e.line.number <= end.line.number]
    for before, event in pairwise(own):
        if event.time_s < before.time_s - _JITTER_S:
            raise event.line.error("its time is before that of the line above: two runs, or damaged")
    _check_times(events, end, wall)
    parameters = _parameters(events)
    apart = {what: _between(own, what) for what in _APART}
    samples: list[Sample] = [wall.sample("wall")]
    count, how = _samples_count(events, own, end)
    notes: dict[str, object] = {"run_start_line": begin.line.number, "run_stop_line": end.line.number}
    notes |= {f"{what}_s": round(time_s, 3) for what, time_s in apart.items() if time_s}
    remarks = []
    if count:
        notes |= {"samples": count, "samples_are": how}
        _check_rate(events, count, wall.value)
        samples += _rates(count, wall, apart["eval"], parameters.get("devices"))
    if how == _AS_EPOCHS:
        remarks.append("epoch_num counts samples here, not epochs")
    first = events[0].time_s
    if first < begin.time_s:
        useful_s = wall.value - sum(apart.values())
        samples.append(Sample("goodput", 0, end.time_s - first, {"amount": max(useful_s, 0.0)}))
        notes["before_run_start_s"] = round(begin.time_s - first, 3)
    evaluation, is_loss = _evaluation(own)
    if evaluation:
        notes["evaluation"] = evaluation
    if is_loss:
        remarks.append(is_loss)
    failed = _failed(stops, own)
    return Measured([s for s in samples if s.work.get("amount", 1.0) > 0], parameters, notes, remarks, failed=failed)


def _failed(stops: Sequence[_Event], own: Sequence[_Event]) -> str:
    for stop in stops:
        status = stop.metadata.get("status")
        is_done = status == "success" or (isinstance(stop.value, dict) and stop.value.get("success") is True)
        if not is_done:
            shown = printable(str(status if status is not None else stop.value))[:60]
            return f"line {stop.line.number}: run_stop has the status {shown}, not success: it did not reach its target"
    for event in own:
        if event.key in _EVALUATED and isinstance(event.value, float) and not math.isfinite(event.value):
            return f"line {event.line.number}: {event.key} is {event.value}, so the run means nothing"
    return ""


def _check_times(events: Sequence[_Event], end: _Event, wall: Printed) -> None:
    """Raise ParseError if the log states another time of the run than its time stamps."""
    stated = [(end, key, end.metadata.get(key)) for key in ("time", "duration")]
    stated += [(e, e.key, e.value) for e in events if e.key in ("run_duration", "time_to_train")]
    for event, key, value in stated:
        text = str(value).strip().split(" ")[0].removesuffix("s") if value is not None else ""
        try:
            seconds = float(text)
        except ValueError:
            continue
        if abs(seconds - wall.value) > _TIME_NEAR * wall.value + wall.error:
            raise event.line.error(f"{key} is {seconds:g} s, but run_start to run_stop are {wall.value:g} s")


def _check_rate(events: Sequence[_Event], count: int, wall_s: float) -> None:
    """Raise ParseError if the log states another throughput than samples over time."""
    for event in events:
        value = event.value
        if event.key == "overall_throughput" and isinstance(value, int | float) and not isinstance(value, bool):
            rate = count / wall_s
            if abs(value - rate) > _NEAR * rate:
                why = f"but {count} samples in {wall_s:.6g} s are {rate:.4g}"
                raise event.line.error(f"overall_throughput is {value:g} samples/s, {why}")


def _rates(count: int, wall: Printed, eval_s: float, devices: Value | None) -> list[Sample]:
    point, extra = {"counts": "samples"}, figures.stated(wall.resolution)
    found = [Sample("rate", 0, wall.value, {"amount": float(count)}, point=point, extra=extra)]
    if isinstance(devices, int):
        found.append(Sample("rate_per_device", 0, wall.value, {"amount": count / devices}, point=point, extra=extra))
    if 0 < eval_s < wall.value:
        found.append(Sample("train_rate", 0, wall.value - eval_s, {"amount": float(count)}, point=point, extra=extra))
    return found


def _between(own: Sequence[_Event], what: str) -> float:
    """Seconds between `<what>_start` and `<what>_stop`, from the first rank's start to the last one's stop, or until
    training goes on beside it."""
    total, begin, end = 0.0, None, None
    for event in own:
        if event.key == f"{what}_start":
            if begin is not None and end is not None:
                total, begin, end = total + end - begin, None, None
            begin = event.time_s if begin is None else begin
        elif begin is not None and event.key == f"{what}_stop":
            end = event.time_s
        elif begin is not None and event.key in _TRAINS:
            total, begin, end = total + (event.time_s if end is None else end) - begin, None, None
    return total + (end - begin if begin is not None and end is not None else 0.0)


_AS_EPOCHS = "epoch_num, which counts samples"


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**15 else None


def _value(events: Sequence[_Event], key: str) -> int | None:
    """The whole number under a key that all lines agree on, or None."""
    found = {_whole(e.value) for e in events if e.key == key}
    return found.pop() if len(found) == 1 else None


def _samples_count(events: Sequence[_Event], own: Sequence[_Event], end: _Event) -> tuple[int | None, str]:
    """The samples of the run and where they are from; None if the log does not state them. Raises ParseError if they
    fall in the run."""
    counts = [(e, n) for e in own if e.key in _COUNTED and (n := _whole(e.metadata.get("samples_count"))) is not None]
    for (_, before), (event, now) in pairwise(counts):
        if now < before:
            raise event.line.error(f"samples_count falls from {before} to {now}: two runs, or damaged")
    if counts:
        return counts[-1][1], "samples_count"
    batch, each = _value(events, "global_batch_size"), _value(events, "train_samples")
    numbers = [n for e in own if e.key in _EVALUATED and (n := _whole(e.metadata.get("epoch_num"))) is not None]
    if batch and len(numbers) >= 3 and all(n % batch == 0 and n > _MOST_EPOCHS for n in numbers):
        if any(now <= before for before, now in pairwise(numbers)):
            return None, ""
        return numbers[-1], _AS_EPOCHS
    stopped = {n for e in own if e.key == "epoch_stop" and (n := _whole(e.metadata.get("epoch_num"))) is not None}
    if (
        each
        and stopped
        and _is_epoch(own, each)
        and stopped == set(range(min(stopped), max(stopped) + 1))
        and max(stopped) <= _MOST_EPOCHS
    ):
        is_end = end.metadata.get("epoch_num") in (None, max(stopped))
        return (each * len(stopped), "epochs x train_samples") if is_end else (None, "")
    return None, ""


def _is_epoch(own: Sequence[_Event], samples: int) -> bool:
    """Whether an epoch has so many samples, by a tracked throughput and the time of one: `train_samples` may be
    batches."""
    begin: float | None = None
    time_s: float | None = None
    for event in own:
        if event.key == "epoch_start":
            begin, time_s = event.time_s, None
        elif event.key in ("eval_start", "epoch_stop") and begin is not None and time_s is None:
            time_s = event.time_s - begin
        elif event.key == "tracked_stats" and time_s and isinstance(event.value, dict):
            rate = event.value.get("throughput")
            if isinstance(rate, int | float) and not isinstance(rate, bool):
                return abs(rate * time_s - samples) <= _EPOCH_NEAR * samples
    return False


def _evaluation(own: Sequence[_Event]) -> tuple[dict[str, object], str]:
    """The last evaluation, and a remark if it is a loss by another name."""
    found = [
        e for e in own if e.key in _EVALUATED and isinstance(e.value, int | float) and not isinstance(e.value, bool)
    ]
    if not found:
        return {}, ""
    last = found[-1]
    values = [float(e.value) for e in found if e.key == last.key and math.isfinite(e.value)]
    if not values:
        return {}, ""
    is_loss = last.key == "eval_accuracy" and (values[-1] > 1 or values[-1] < values[0])
    note: dict[str, object] = {"key": last.key, "value": values[-1], "is": "loss" if is_loss else last.key[5:]}
    why = "above 1" if values[-1] > 1 else f"falling from {values[0]:.4g}"
    return note, f"eval_accuracy is a loss here ({values[-1]:.4g}, {why})" if is_loss else ""


def _parameters(events: Sequence[_Event]) -> dict[str, Value]:
    instances = {e.metadata["instance"] for e in events if _is_number(e.metadata.get("instance"))}
    if len(instances) > 1:
        raise events[0].line.error(f"lines of {len(instances)} instances: put each in its own file")
    found: dict[str, Value] = {}
    for name, key in (
        ("model", "submission_benchmark"),
        ("platform", "submission_platform"),
        ("organisation", "submission_org"),
    ):
        values = {e.value for e in events if e.key == key and isinstance(e.value, str) and e.value}
        if len(values) == 1:
            found[name] = printable(values.pop())[:100]
    for name, key in (("global_batch", "global_batch_size"), ("nodes", "number_of_nodes")):
        if (value := _value(events, key)) is not None:
            found[name] = value
    nodes, each = _value(events, "number_of_nodes"), _value(events, "accelerators_per_node")
    if nodes and each:
        found["devices"] = nodes * each
    return found


def _is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


IMPORTED = figures.imported(
    "mllog",
    "MLPerf's mllog",
    "How long did a training of MLPerf take?",
    (
        *TRAINING_PARAMETERS,
        figures.text("model", "benchmark of MLPerf"),
        figures.text("platform", "system, as submitted"),
        figures.text("organisation", "who submitted it"),
    ),
    (
        figures.time(
            "wall", "from run_start to run_stop: training and evaluations to the target, without initialisation"
        ),
        figures.rate("rate", "op/s", "of the whole run: samples from run_start to run_stop over this time"),
        figures.rate("rate_per_device", "op/s", "the same, divided by number_of_nodes x accelerators_per_node"),
        figures.rate("train_rate", "op/s", "samples over the time of the run without evaluations", is_secondary=True),
        figures.rate(
            "goodput",
            "1",
            "useful time over wall time: the run without evaluations, checkpoints and staging, over the time from the "
            "first line to run_stop",
            is_secondary=True,
        ),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, with_definitions(IMPORTED, _measured), starts=_starts)
