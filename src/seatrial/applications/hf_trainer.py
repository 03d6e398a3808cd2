"""The Trainer of Hugging Face's transformers: what it prints, or its trainer_state.json.

`train_runtime` is the whole training, with the first step, evaluations and checkpoints in it;
`train_samples_per_second` is samples over this time. Both count all steps that were planned: after a restart from a
checkpoint, or if the training stopped early, only a part of them was made in this time, and the rate is scaled to
those. Tokens per second are not taken: versions count other tokens, or none (transformers issues 31501, 34471, 34567,
37510). Rates of evaluations never count. A fork prints each step (`train_step_runtime`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, read_object
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, check_whole, is_not_finite
from seatrial.applications.reading.text import Pattern, number
from seatrial.applications.reading.training import TRAINING_PARAMETERS, definitions, training, training_figures
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "HF Trainer"
_PAIR = r"['\"]([\w/.\-]{1,60})['\"]: *['\"]?([^\s,'\"{}\[\]]{1,40})['\"]?"
_PAIRS = re.compile(_PAIR)
_DICT = Pattern(rf"(?:.{{0,200}}\] *)?(\{{ *{_PAIR}(?:, *{_PAIR}){{0,60}} *\}})")
_LIKE = Pattern(r".{0,200}\{ *['\"](?:train_runtime|train_step_runtime|loss)['\"]:.{0,2000}")
_BAR = Pattern(r"(?:.{0,60}?[: ])? *([0-9]{1,3})%\|.{0,100}?\| *([0-9]{1,12})/([0-9]{1,12}) \[.{0,80}(?:\{.{0,2000})?")
_BANNER = Pattern(r".{0,100}\*\*\*\*\* Running training \*\*\*\*\*")
_STATED = {
    "planned": Pattern(r".{0,100}Total optimization steps = ([0-9][0-9,]{0,15})"),
    "global_batch": Pattern(
        r".{0,100}Total train batch size \(w\. parallel, distributed & accumulation\) = ([0-9][0-9,]{0,12})"
    ),
    "micro_batch": Pattern(r".{0,100}Instantaneous batch size per device = ([0-9][0-9,]{0,12})"),
    "accumulated": Pattern(r".{0,100}Gradient Accumulation steps = ([0-9][0-9,]{0,9})"),
    "resumed": Pattern(r".{0,100}Continuing training from global step ([0-9][0-9,]{0,12})"),
}
_NO_TOKENS = "train_tokens_per_second is not taken: what it counts differs between versions of transformers"


def _starts(lines: Sequence[str]) -> list[int]:
    """Where runs begin: at the banner, else after the summary of the run before."""
    found: list[int] = []
    is_open = False
    for index, line in enumerate(lines):
        if _BANNER.fullmatch(line.strip()):
            found, is_open = [*found, index], True
        elif "{" in line and (match := _DICT.fullmatch(line.strip())) is not None:
            keys = dict(_PAIRS.findall(match[1]))
            if not is_open and not all(key.startswith("eval_") or key == "epoch" for key in keys):
                found, is_open = [*found, index], True
            is_open = is_open and "train_runtime" not in keys
    return found


def _fields(found: Found) -> dict[str, str]:
    return dict(_PAIRS.findall(found.match[1]))


def read(data: bytes) -> ImportedFile:
    """One training. Raises ParseError if it did not end, or its numbers contradict each other."""
    found = _read_state(data) if b'"log_history"' in data else _read_log(Log(_TOOL, data))
    notes = {**found.notes, "definitions": definitions(IMPORTED, found.samples)}
    experiment = ImportedExperiment(
        IMPORTED.name, tuple(found.samples), found.parameters, notes, failed=found.failed, remarks=tuple(found.remarks)
    )
    return ImportedFile(_TOOL, found.version or "", (experiment,))


def _read_log(log: Log) -> Measured:
    lines = log.found(_DICT)
    check_whole(log, _LIKE, _DICT)
    if not lines:
        raise log.error("no line such as `{'loss': 2.1, ..., 'epoch': 0.1}`: from another program")
    stated = {
        name: int(found.match[1].replace(",", ""))
        for name, line in _STATED.items()
        if (found := log.maybe(line, name)) is not None
    }
    parameters: dict[str, Value] = {k: v for k, v in stated.items() if k in ("global_batch", "micro_batch")}
    own = stated.get("micro_batch", 0) * stated.get("accumulated", 1)
    if own and stated.get("global_batch", 0) % own == 0 and "global_batch" in stated:
        parameters["devices"] = stated["global_batch"] // own
    failed = next((why for one in lines if (why := _wrong_loss(one))), "") or _all_zero(lines)
    ends = [one for one in lines if "train_runtime" in _fields(one)]
    if len(ends) > 1:
        raise ends[1].error(f"a second `train_runtime`; the first is on line {ends[0].line.number}: two runs")
    if not ends:
        return _each_step(log, lines, parameters, failed)
    end = ends[0]
    bars = [one for one in log.found(_BAR) if one.match[2] == one.match[3]]
    totals = {int(one.match[3]) for one in bars} | ({stated["planned"]} if "planned" in stated else set())
    summary = {name: _printed(end, token) for name, token in _fields(end).items() if name.startswith("train_")}
    remarks = [_NO_TOKENS] if "train_tokens_per_second" in summary else []
    samples, notes, more = _summary(end, summary, totals, stated, parameters)
    return Measured(samples, parameters, notes, [*remarks, *more], failed=failed)


def _printed(line: Found, token: str) -> Printed:
    """A number of the summary; a loss may be any."""
    value = number(token)
    if value is None:
        return Printed(math.nan, 0.0)
    return Printed.of(value, token)


def _wrong_loss(line: Found) -> str:
    fields = _fields(line)
    for key in ("loss", "train_loss"):
        if is_not_finite(fields.get(key)):
            return f"line {line.line.number}: the {key} is {fields[key]}, so the rate means nothing"
    if is_not_finite(fields.get("grad_norm")) and number(fields.get("loss", "")) == 0:
        return f"line {line.line.number}: the loss is 0 and its gradient {fields['grad_norm']}: it overflowed"
    return ""


def _all_zero(lines: Sequence[Found]) -> str:
    losses = [float(text) for one in lines if (text := _fields(one).get("loss")) and number(text) is not None]
    return "the loss is 0 in all lines: nothing was learnt, or it overflowed" if losses and not any(losses) else ""


def _summary(
    end: Found,
    summary: Mapping[str, Printed],
    totals: set[int],
    stated: Mapping[str, int],
    parameters: Mapping[str, Value],
) -> tuple[list[Sample], dict[str, object], list[str]]:
    """The figures of the line at the end. `totals` are numbers of steps elsewhere in the log. Raises ParseError if
    steps, samples, rates and time contradict each other."""
    names = ("train_runtime", "train_samples_per_second", "train_steps_per_second")
    if names[2] not in summary:
        raise end.error("no `train_steps_per_second`: versions without it print steps as samples per second")
    if any(name not in summary or not summary[name].value > 0 for name in names):
        raise end.error(f"not all of {', '.join(names)}, above zero: the line is damaged")
    runtime, rate, pace = (summary[name] for name in names)
    planned = Printed(pace.value * runtime.value, pace.error * runtime.value + pace.value * runtime.error)
    fits = {total for total in totals if abs(total - planned.value) <= planned.error + 1e-6 * total}
    if "planned" in stated and stated["planned"] not in fits:
        raise end.error(
            f"{pace.value:g} steps/s in {runtime.value:g} s are not the {stated['planned']} steps of the log"
        )
    low, high = math.ceil(planned.value - planned.error), math.floor(planned.value + planned.error)
    steps = fits.pop() if len(fits) == 1 else low if low == high else None
    batch = parameters.get("global_batch")
    if isinstance(batch, int) and steps:
        most = batch * steps
        count, off = rate.value * runtime.value, rate.error * runtime.value + rate.value * runtime.error
        epochs = number(_fields(end).get("epoch", ""))
        least = most - batch * math.ceil(epochs) if epochs else 0.5 * most  # the last batch of an epoch may be a part
        if not least - off <= count <= most + off:
            raise end.error(f"{count:.0f} samples by rate and time are not {steps} steps of {batch}")
    notes: dict[str, object] = {"steps": steps if steps else "unknown"}
    remarks = []
    share = 1.0
    if (resumed := stated.get("resumed", 0)) > 0:
        if not steps or resumed >= steps:
            raise end.error(f"it went on from step {resumed}, but how many steps it made is not in the log")
        share = (steps - resumed) / steps
        notes["resumed_from_step"] = resumed
        remarks.append(
            f"it went on from step {resumed} of {steps}: the printed {rate.value:g} samples/s count all steps, "
            f"the figure those that were made"
        )
    made = rate.scaled(share)
    samples = [
        Sample(
            "rate", 0, 1.0, {"amount": made.value}, point={"counts": "samples"}, extra={"resolution": made.resolution}
        ),
        runtime.sample("wall"),
    ]
    if isinstance(devices := parameters.get("devices"), int):
        each = {"amount": made.value / devices}
        samples.append(Sample("rate_per_device", 0, 1.0, each, point={"counts": "samples"}))
    if steps:
        samples.append(runtime.scaled(1.0 / (steps * share)).sample("step_mean"))
    return samples, notes, remarks


def _each_step(log: Log, lines: Sequence[Found], parameters: dict[str, Value], failed: str) -> Measured:
    """The steps that a fork prints. Raises ParseError if there are none: the training has not ended."""
    steps: list[Step] = []
    for one in lines:
        fields = _fields(one)
        if "train_step_runtime" not in fields:
            continue
        time, rate = (
            Printed.of(one.line.number_of(token, key), token)
            for key in ("train_step_runtime", "train_step_samples_per_second")
            if (token := fields.get(key, "")) or key
        )
        count = round(time.value * rate.value)
        off = time.error * rate.value + rate.error * time.value
        if not count or abs(count - time.value * rate.value) > off + 1e-9:
            raise one.error(f"{rate.value:g} samples/s in {time.value:g} s are not a whole number of samples")
        steps.append(Step(one, len(steps) + 1, time, fields.get("loss"), {"samples": float(count)}))
    if not steps:
        raise log.not_ended("no `train_runtime`")
    for step in steps:
        if step.counts != steps[0].counts:
            raise step.found.error(f"{step.counts['samples']:.0f} samples, {steps[0].counts['samples']:.0f} in line 1")
    parameters.setdefault("global_batch", int(steps[0].counts["samples"]))
    found = training(log, steps, Ending(), parameters=parameters)
    return replace(found, failed=failed or found.failed)


def _read_state(data: bytes) -> Measured:
    document = read_object(data, _TOOL, "log_history", "global_step")
    history = [one.named("log_history") for one in document.objects("log_history")]
    ends = [one for one in history if "train_runtime" in one]
    if not ends:
        raise document.error("no `train_runtime` in log_history: the training has not ended")
    end, made, planned = ends[-1], document.whole("global_step"), document.whole("max_steps")
    if not made or not planned:
        raise document.error("no global_step and max_steps: not the trainer_state.json of a training")
    runtime, rate, pace = (end.number(f"train_{key}") for key in ("runtime", "samples_per_second", "steps_per_second"))
    if not min(runtime, rate, pace) > 0:
        raise end.error("the time or a rate of the training is 0")
    slack = 5e-4 * runtime + 1e-4 * pace + 1e-6 * planned
    if abs(pace * runtime - planned) > slack:
        raise end.error(f"{pace:g} steps/s in {runtime:g} s are not the {planned} steps of max_steps")
    failed = _state_failed(history)
    parameters: dict[str, Value] = {}
    if batch := document.whole("train_batch_size"):
        parameters["micro_batch"] = batch
    share = made / planned
    remarks = [
        "it does not state whether the training went on from a checkpoint: then fewer steps were made in the time"
    ]
    if made < planned:
        remarks.append(f"it stopped at step {made} of {planned}: the printed {rate:g} samples/s count all")
    if "train_tokens_per_second" in end:
        remarks.append(_NO_TOKENS)
    step_s = Printed(runtime / made, 5e-5 / made)
    samples = [
        Sample(
            "rate", 0, 1.0, {"amount": rate * share}, point={"counts": "samples"}, extra={"resolution": 1e-3 / rate}
        ),
        figures.time_sample("wall", runtime),
        step_s.sample("step_mean"),
    ]
    return Measured(samples, parameters, {"steps": made}, remarks, failed=failed)


def _state_failed(history: Sequence[JsonObject]) -> str:
    losses = [one.get("loss") for one in history if "loss" in one]
    numbers = [one for one in losses if isinstance(one, int | float) and not isinstance(one, bool)]
    if any(not math.isfinite(one) for one in numbers) or any(is_not_finite(str(one)) for one in losses):
        return "the loss is not a number, so the rate means nothing"
    return "the loss is 0 in all steps: nothing was learnt, or it overflowed" if numbers and not any(numbers) else ""


IMPORTED = figures.imported(
    "hf-trainer",
    "the Trainer of transformers",
    "How fast did the Trainer of transformers train?",
    TRAINING_PARAMETERS,
    (
        *training_figures(
            "train_samples_per_second: samples over train_runtime, with first step, evaluations and checkpoints, "
            "scaled to the steps that were made in this time; of a log with each step, samples over their summed time",
            "the same, divided by the number of devices",
        ),
        figures.time("step_mean", "train_runtime over the steps that were made in it"),
        figures.time("wall", "train_runtime: the whole training"),
    ),
)

READER = figures.Reader("hf-trainer", read, starts=_starts)
