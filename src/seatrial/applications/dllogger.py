"""DLLogger of NVIDIA's DeepLearningExamples: what it prints (`DLL`), or its JSON (`DLLL {...}`).

The rate of a step (`total_ips`, `train_throughput` and others) is of all devices. The summary at the end is a mean of
these rates (DeepLearningExamples issue 1264), which is above samples over time. Both are figures here: `rate` is
samples of the steady steps over their summed time, from the rates of the steps and the batch. Where the batch is in the
text, rates are compared with it and with the time stamps of consecutive steps.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping, Sequence
from statistics import fmean, median

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.steps import Ending, Step, is_not_finite, moment
from seatrial.applications.reading.text import Pattern, number
from seatrial.applications.reading.training import TRAINING_PARAMETERS, training, training_figures, with_definitions
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample

_TOOL = "DLLogger"
_LINE = Pattern(
    r"DLL (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{1,6}) - (?P<step>\([0-9, ]{0,60}\)|\[[0-9, ]{0,60}\]|"
    r"(?:Epoch: [0-9]{1,9} ?(?:Iteration: [0-9]{1,12} ?)?(?:Validation Iteration: [0-9]{1,12} ?)?)|PARAMETER|Summary:?)"
    r" ?(?P<data>.{0,4000})"
)
_JSON = Pattern(r"DLLL (?P<object>\{.{1,20000}\})")
_LIKE = Pattern(r"DLLL? .{0,400}")
_VALUE = re.compile(
    r"([\w./ ]{1,60}?) : +(\S{1,40})"
    r"(?: (?:images?/s|img/s|samples/s|sequences/s|tokens/s|items/sec|s|ms|%|None))?(?= |\Z)"
)
_RATES = {
    "total_ips": "images", "train.total_ips": "images", "train.compute_ips": "", "compute_ips": "",
    "train_throughput": "samples", "throughput_train": "samples", "throughput": "samples", "items_sec": "samples",
    "training_sequences_per_second": "sequences", "tokens/s": "tokens", "train_items_per_sec": "samples",
}  # fmt: skip
"""A rate -> what it counts; "": not the rate of whole steps."""
_DEVICES = Pattern(r"Num GPUs ([0-9]{1,6})")
_EACH = Pattern(r"Per-GPU Batch Size ([0-9]{1,9})")
_NEAR = 0.05
_LEAST = 3
_SUMMARY_NEAR = 0.1
"""Steps that are not in the text may be in the summary."""


class _Entry(Frozen):
    """A line: the numbers of its step (none: the summary), and its values."""

    found: Found
    at: str
    step: tuple[int, ...]
    values: Mapping[str, str]


def _entries(log: Log) -> list[_Entry]:
    """Raises ParseError for a damaged line."""
    entries = []
    for one in log.found(_LIKE):
        if not one.line.is_ended:
            continue
        text = log.text(one.line)
        if (plain := _LINE.fullmatch(text)) is not None:
            values = {} if plain["step"] == "PARAMETER" else dict(_VALUE.findall(plain["data"]))
            values = {key.strip(): value for key, value in values.items()}
            step = tuple(int(digits) for digits in re.findall(r"[0-9]+", plain["step"]))
            is_validation = "Validation" in plain["step"] or plain["step"] == "PARAMETER"
            entries.append(_Entry(one, plain["at"], (-1,) if is_validation else step, values))
        elif (found := _JSON.fullmatch(text)) is not None:
            entries += _of_json(one, found["object"])
        else:
            raise one.error("the line is damaged")
    return entries


def _of_json(one: Found, text: str) -> list[_Entry]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise one.error("no JSON behind `DLLL`: the line is damaged") from error
    step, data = found.get("step"), found.get("data")
    if found.get("type") != "LOG" or not isinstance(data, dict) or not isinstance(step, list | int):
        return []
    numbers = tuple(n for n in (step if isinstance(step, list) else [step]) if isinstance(n, int))
    values = {key: str(value) for key, value in data.items() if isinstance(value, int | float)}
    return [_Entry(one, str(found.get("datetime", "")), numbers, values)]


def _starts(lines: Sequence[str]) -> list[int]:
    """Where runs begin: at the parameters, or the first line behind a summary."""
    found: list[int] = []
    is_over = is_open = False
    for index, line in enumerate(lines):
        text = line.strip()
        if not text.startswith("DLL"):
            continue
        is_parameter = " - PARAMETER" in text[:60] or '"step": "PARAMETER"' in text[:200]
        if not found or (is_parameter and is_open) or is_over:
            found.append(index)
            is_over = is_open = False
        is_open = is_open or not is_parameter
        is_over = re.search(r" - (?:\(\)|\[\]|Summary)|\"step\": \[\]", text[:200]) is not None
    return found


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if rates, batch and time stamps contradict each other."""
    entries = _entries(log)
    if not entries:
        raise log.error("no line such as `DLL 2020-06-20 01:16:39.766736 - (0, 50) total_ips : 6724.4`")
    for entry in entries:
        if wrong := next((k for k, v in entry.values.items() if "loss" in k and is_not_finite(v)), None):
            failed = f"line {entry.found.line.number}: {wrong} is {entry.values[wrong]}, so the rate means nothing"
            return Measured([figures.rate_sample("rate", 1.0)], {}, failed=failed)
    name = next((k for e in entries if e.step and e.step[0] >= 0 for k in e.values if _RATES.get(k)), None)
    if name is None:
        raise entries[-1].found.error("no rate of a step that is known: total_ips, train_throughput, ...")
    rows = [e for e in entries if len(e.step) > 1 and name in e.values]
    summary = next((e for e in reversed(entries) if not e.step and any(_RATES.get(k) for k in e.values)), None)
    if not rows:
        raise entries[-1].found.error(f"{name} of no step")
    parameters: dict[str, Value] = {}
    devices, each = log.maybe(_DEVICES, "number of devices"), log.maybe(_EACH, "batch of a device")
    batch = 0
    if devices is not None and each is not None:
        batch = devices.whole(1, "the devices") * each.whole(1, "the batch")
        parameters |= {"devices": int(devices.match[1]), "micro_batch": int(each.match[1]), "global_batch": batch}
    steps = [_step(entry, name, batch, parameters.get("devices")) for entry in rows]
    _check_order(steps)
    remarks = _check_stamps(steps, batch)
    ending = Ending(None if summary is None else summary.found)
    found = training(log, steps, ending, parameters=parameters, remarks=remarks, is_timed=bool(batch))
    return _with_summary(found, summary, steps)


def _step(entry: _Entry, name: str, batch: int, devices: Value | None) -> Step:
    token = entry.values[name]
    rate = entry.found.line.number_of(token, name)
    work = float(batch or 1)
    counts = {_RATES[name]: work}
    each = {_RATES[name]: work / devices} if isinstance(devices, int) else {}
    at = moment(entry.found.line, entry.at) if entry.at else None
    return Step(entry.found, entry.step[1], Printed(work / rate, 0.0), None, counts, each, at=at, session=0)


def _check_order(steps: Sequence[Step]) -> None:
    for before, step in itertools.pairwise(steps):
        if before.at is not None and step.at is not None and step.at < before.at:
            raise step.found.error("its time stamp is before that of the line above: two runs, or damaged")


def _check_stamps(steps: Sequence[Step], batch: int) -> list[str]:
    """Raise ParseError if the rates of consecutive steps do not fit their time stamps and the batch; a remark if the
    batch is unknown."""
    pairs = [(b, s) for b, s in itertools.pairwise(steps) if s.number == b.number + 1]
    ratios = [
        (s, (s.at - b.at).total_seconds() / s.time.value) for b, s in pairs if s.at is not None and b.at is not None
    ]
    if len(ratios) < _LEAST:
        if not batch:
            why = "neither the batch nor time stamps of consecutive steps are in it: the rates cannot be checked"
            raise steps[-1].found.error(why)
        return []
    usual = median(ratio for _, ratio in ratios)
    if batch and abs(usual - 1.0) > _NEAR:
        raise steps[-1].found.error(f"{batch * usual:.0f} samples of a step by rates and stamps, {batch} by the batch")
    for step, ratio in ratios:
        if ratio < usual * (1.0 - 2 * _NEAR) - 2e-3 / step.time.value:
            raise step.found.error("the step took longer, by its rate, than the time stamps are apart: damaged")
    return [] if batch else [f"the batch is not in it; by rates and time stamps it is about {usual:.0f}"]


def _with_summary(found: Measured, summary: _Entry | None, steps: Sequence[Step]) -> Measured:
    if summary is None or found.failed:
        return found
    name, token = next((k, v) for k, v in summary.values.items() if _RATES.get(k))
    value = number(token)
    mean = fmean(sum(step.counts.values()) / step.time.value for step in steps)
    if value is None or abs(value / mean - 1.0) > _SUMMARY_NEAR:
        why = f"{name} is {token[:40]}, but the mean of the {len(steps)} steps is {mean:.6g}"
        raise summary.found.error(why)
    samples: list[Sample] = [*found.samples, figures.rate_sample("mean_of_rates", value)]
    remarks = list(found.remarks)
    if abs(value / mean - 1.0) > 1e-6:
        remarks.append(
            f"{name} is {value:.6g}, the mean of the {len(steps)} steps in the text {mean:.6g}: not all are in it"
        )
    return Measured(samples, found.parameters, found.notes, remarks, failed=found.failed)


IMPORTED = figures.imported(
    "dllogger",
    "DLLogger (NVIDIA DeepLearningExamples)",
    "How fast did an example of NVIDIA's DeepLearningExamples train?",
    TRAINING_PARAMETERS,
    (
        *training_figures(
            "samples of the steady steps over their summed time, by the rates of the steps, which are of all devices",
            "the same, divided by the number of devices",
        ),
        figures.rate(
            "mean_of_rates",
            "op/s",
            "the summary at the end: a mean of the rates of the steps, of all devices",
            is_secondary=True,
        ),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, with_definitions(IMPORTED, _measured), starts=_starts)
