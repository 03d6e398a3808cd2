"""Megatron-LM, and what descends from it: Megatron-DeepSpeed, GPT-NeoX, Primus.

The last rank prints a line for each few iterations: `elapsed time per iteration` is the mean since the line before,
over a barrier of all ranks; `consumed samples` rise by the global batch, which may grow in a run. TFLOP/s are of one
GPU, by the formula of the version that wrote the log (Megatron-Bridge pull request 5344: the same step became 9.33 or
1.42), so they are compared with those of the same version only. Iterations that were skipped for an overflow update
nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, moment, sessions
from seatrial.applications.reading.text import Pattern, is_product
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value
from seatrial.model.spelling import half_unit

_TOOL = "Megatron-LM"
_LINES = StepLines(
    Pattern(
        r"(?:\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?)\] )?"
        r"(?P<before>(?:[\w/ ]{1,40}: *[^|]{1,60}\| *){0,3})"
        r"iteration +(?P<step>[0-9]{1,12})/ *(?P<last>[0-9]{1,12}|infinity) \|"
        r"(?=(?:.{0,2000}?\| *(?:lm[ _])?loss: *(?P<loss>[^\s|]{1,40}))?)(?P<rest>.{1,4000})\|"
    ),
    "iteration ",
    first=1,
    banner=Pattern(r"using world size: .{1,400}|-{5,80} arguments -{5,80}"),
    resumed=Pattern(r"(?:successfully loaded checkpoint from|loading (?:distributed )?checkpoint from) "),
)
_LIKE = Pattern(r".{0,120}\biteration +[0-9]{1,12}/ *(?:[0-9]{1,12}|infinity) \|.{0,4000}")
_STAMP = Pattern(r"\[(?:after |before )?.{0,60}?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{6})?)\b")
_DONE = Pattern(r"\[after training is done\].{0,100}")
_WORLD = Pattern(r"(?:.{0,40}using world size: ([0-9]{1,7})\b.{0,400}|world_size \.{3,60} ([0-9]{1,7}))")
_ARGUMENTS = {
    "sequence_length": Pattern(r"seq_length \.{3,60} ([0-9]{1,9})"),
    "micro_batch": Pattern(r"micro_batch_size \.{3,60} ([0-9]{1,9})"),
    "tensor_parallel": Pattern(r"tensor_model_parallel_size \.{3,60} ([0-9]{1,6})"),
    "pipeline_parallel": Pattern(r"pipeline_model_parallel_size \.{3,60} ([0-9]{1,6})"),
}
_PRECISION = {"bf16": Pattern(r"bf16 \.{3,60} True"), "fp16": Pattern(r"fp16 \.{3,60} True")}
_TIMES = {"elapsed time per iteration (ms)": 1e-3, "elapsed time per iteration (s)": 1.0}
_FLOPS = ("throughput per GPU (TFLOP/s/GPU)", "TFLOPs", "approx flops per GPU")
_SAMPLES = ("samples per second", "samples/sec")
_OFF = 1e-3


def _fields(found: Found) -> Mapping[str, str]:
    """The `key: value` of a line. Raises ParseError for a field that is there twice, or is none."""
    parts = f"{found.match['before']}{found.match['rest']}".split("|")
    fields: dict[str, str] = {}
    for part in filter(None, map(str.strip, parts)):
        key, colon, value = part.rpartition(":")
        if not colon or key.strip() in fields:
            raise found.error(f"{part[:60]!r} is not one more `name: value`: the line is damaged")
        fields[key.strip()] = value.strip()
    return fields


def _step(found: Found, covers: int) -> Step:
    """An iteration, or the mean of several."""
    fields = _fields(found)
    name = next((name for name in _TIMES if name in fields), None)
    if name is None:
        raise found.error("no `elapsed time per iteration`: the line is damaged")
    shown = fields[name].partition("/")[0].strip()
    time = Printed.of(found.line.number_of(shown, "the time"), shown).scaled(_TIMES[name])
    counts: dict[str, float] = {}
    if (batch := fields.get("global batch size")) is not None:
        counts["samples"] = found.line.whole_of(batch, "the global batch")
        if (length := fields.get("actual seqlen")) is not None:
            counts["tokens"] = counts["samples"] * found.line.whole_of(length, "the length")
    for key in _SAMPLES:
        if key in fields and counts:
            token = fields[key]
            rate = found.line.number_of(token, key)
            if not is_product(counts["samples"], (rate, half_unit(token) + _OFF * rate), (time.value, time.error)):
                why = f"{token} samples/s in steps of {time.value:.6g} s are not a batch of {counts['samples']:.0f}"
                raise found.error(why)
    text = next((fields[key] for key in _FLOPS if key in fields), None)
    flops = None
    if text is not None:
        token = text.partition("/")[0].removesuffix("TFLOPS").strip()
        flops = Printed.of(found.line.number_or_zero(token, "TFLOP/s"), token).scaled(1e12)
    nan = found.line.whole_of(fields.get("number of nan iterations", "0"), "nan iterations", least=0)
    skipped = found.line.whole_of(fields.get("number of skipped iterations", "0"), "skipped iterations", least=0)
    at = found.match["at"]
    return Step(
        found,
        int(found.match["step"]),
        time,
        "nan" if nan else found.match["loss"],  # a loss that is nan is not printed
        counts,
        flops=flops if flops is None or flops.value else None,
        at=None if at is None else moment(found.line, at),
        covers=covers,
        skipped=skipped,
    )


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if counts, times and rates contradict each other."""
    steps = sessions(log, _LINES, _step)
    check_whole(log, _LIKE, _LINES.step)
    parameters: dict[str, Value] = dict(log.stated(_ARGUMENTS))
    length = parameters.get("sequence_length")
    if isinstance(length, int):
        steps = [_with_tokens(step, length) for step in steps]
    _check_samples(steps)
    _check_flops(steps)
    world = [one.match[1] or one.match[2] for one in log.found(_WORLD)]
    devices = int(world[0]) if len(set(world)) == 1 else 0
    if devices:
        parameters["devices"] = devices
        steps = [replace(step, device_counts={k: v / devices for k, v in step.counts.items()}) for step in steps]
    if len(batches := {step.counts.get("samples") for step in steps}) == 1 and None not in batches:
        parameters["global_batch"] = int(steps[0].counts["samples"])
    precision = [name for name, line in _PRECISION.items() if log.found(line)]
    if len(precision) == 1:
        parameters["precision"] = precision[0]
    last = steps[-1].found.match["last"]
    done = log.found(_DONE)
    ending = Ending(done[0] if done else None, int(last) if last.isdigit() else None)
    return training(log, steps, ending, parameters=parameters, stamp=_STAMP)


def _with_tokens(step: Step, length: int) -> Step:
    if "samples" not in step.counts or "tokens" in step.counts:
        return step
    return replace(step, counts={**step.counts, "tokens": step.counts["samples"] * length})


def _check_samples(steps: Sequence[Step]) -> None:
    """Raise ParseError if the consumed samples do not rise by the batches of the iterations between two lines."""
    consumed = [_fields(step.found).get("consumed samples") for step in steps]
    for (before, old), (step, new) in itertools.pairwise(zip(steps, consumed, strict=True)):
        if old is None or new is None or before.session != step.session or "samples" not in step.counts:
            continue
        rise = step.found.line.whole_of(new, "samples") - before.found.line.whole_of(old, "samples")
        batches = sorted(one.counts.get("samples", 0.0) for one in (before, step))
        least, most = (batch * (step.number - before.number) for batch in batches)
        if not least <= rise <= most:
            why = f"{step.number - before.number} iterations of {most / (step.number - before.number):.0f} samples"
            raise step.found.error(f"the consumed samples rise by {rise} in {why}")


def _check_flops(steps: Sequence[Step]) -> None:
    """Raise ParseError if FLOP rate x time, the FLOP of an iteration, changes while batch and length do not."""
    known: dict[tuple[float, ...], Step] = {}
    for step in steps:
        if step.flops is None:
            continue
        first = known.setdefault(tuple(step.counts.values()), step)
        if first.flops is None or first is step:
            continue
        flop = first.flops.value * first.time.value
        slack = first.flops.share + first.time.share + _OFF
        error = slack * step.flops.value + step.flops.error
        if not is_product(flop, (step.flops.value, error), (step.time.value, step.time.error)):
            why = f"as in line {first.found.line.number}, which has the same batch"
            raise step.found.error(f"its FLOP rate and time are not those of as many FLOP {why}")


IMPORTED = figures.imported(
    "megatron",
    _TOOL,
    "How fast did Megatron-LM train?",
    (
        *TRAINING_PARAMETERS,
        *figures.counts(tensor_parallel="devices that share a layer", pipeline_parallel="stages of layers"),
        figures.choice("precision", "precision of the parameters", "bf16", "fp16"),
    ),
    training_figures(
        "samples (global batch) and tokens of the steady iterations over their elapsed time",
        "the same, divided by the number of devices",
        "`throughput per GPU`: the FLOP that the version of Megatron-LM counts for a batch, over time and devices",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
