"""tf_cnn_benchmarks: `total images/sec` is batches x batch over the time of the loop, all devices and workers together.

The lines of steps are means since the warm-up, not the rate of a step: their +- is the standard deviation of the rates
over the square root of their number, jitter 1.4826 x the median deviation. So the last of them must be near the total,
which has all of the loop in it. Inference (`forward only`) is another setting. A loss that is nan makes the rate
meaningless.
"""

from __future__ import annotations

from itertools import pairwise

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, log_reader
from seatrial.applications.reading.steps import is_not_finite
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, definitions
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Sample

_STEP = Pattern(
    r"([0-9]{1,12})\s{1,8}images/sec: ([0-9.]{1,20}) \+/- ([0-9.]{1,20}|nan) \(jitter = ([0-9.]{1,20}|nan)\)"
    r"(?:\s{1,8}(\S{1,30}))?(?:\s{1,8}\S{1,30}){0,4}"
)
_LIKE = Pattern(r".{0,40}images/sec: [0-9.]{1,20} \+/-.{0,200}")
_GLOBAL = Pattern(r"Batch size: +([0-9]{1,12}) global")
_EACH = Pattern(r"([0-9]{1,9})(?:\.0)? per device")
_BATCHES = Pattern(r"Num batches: +([0-9]{1,12})")
_DEVICES = Pattern(r"Devices: +\[(.{1,4000})\]")
_MODE = Pattern(r"Mode: +(\S.{0,60})")
_DATA = Pattern(r"Dataset: +(\S.{0,60})")
_VERSION = Pattern(r"TensorFlow: +([0-9]\S{0,20})")
_NEAR = 0.2
"""The loop has summaries and the printing in it, the means of steps have not."""


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    steps = log.each_of_form(_LIKE, _STEP, "the line of a step is damaged")
    if not steps:
        raise log.error("no line of a step such as `10 images/sec: 734.8 +/- 1.0 (jitter = 3.5) 7.9`")
    numbers = [one.whole(1, "the step") for one in steps]
    if any(now <= before for before, now in pairwise(numbers)):
        raise log.error("the numbers of steps do not rise: two runs in one file, or damaged")
    total = end.printed(1, "the rate")
    last = steps[-1].number(2, "the rate")
    if not (1.0 - _NEAR) * last <= total.value <= (1.0 + 0.02) * last:
        raise end.error(f"the mean of the steps before it is {last:g} images/s: not the same run, or damaged")
    batch = log.only(_GLOBAL, "`Batch size`").whole(1, "the batch")
    batches = log.only(_BATCHES, "`Num batches`").whole(1, "the batches")
    if numbers[-1] > batches:
        raise steps[-1].error(f"step {numbers[-1]}, but the run has {batches}")
    devices = len([name for name in log.only(_DEVICES, "`Devices`").match[1].split(",") if name.strip()])
    each = log.at_most_one(_EACH, "batch of a device")
    if each is not None and each.whole(1, "the batch") * devices != batch:
        raise each.error(f"{devices} devices of this batch are not {batch} global: several workers, or damaged")
    parameters: dict[str, Value] = {"model": begin.text(1), "global_batch": batch, "devices": devices}
    if each is not None:
        parameters["micro_batch"] = each.whole(1, "the batch")
    if (mode := log.maybe(_MODE, "mode")) is not None:
        parameters["mode"] = "training" if mode.match[1].startswith("training") else "inference"
    if (data := log.maybe(_DATA, "data set")) is not None:
        parameters["data"] = data.text(1)
    point, extra = {"counts": "images"}, figures.stated(total.resolution)
    samples = [
        Sample("rate", 0, 1.0, {"amount": total.value}, point=point, extra=extra),
        Sample("rate_per_device", 0, 1.0, {"amount": total.value / devices}, point=point, extra=extra),
    ]
    wrong = next((one for one in steps if is_not_finite(one.match[5])), None)
    failed = ""
    if wrong is not None and parameters.get("mode") != "inference":
        where = f"line {wrong.line.number}: the loss is {wrong.match[5]} in step {wrong.match[1]}"
        failed = f"{where}, so the rate means nothing"
    notes = {"batches": batches, "steps_after_warm_up": numbers[-1], "definitions": definitions(IMPORTED, samples)}
    version = log.maybe(_VERSION, "version of TensorFlow")
    return Measured(samples, parameters, notes, version="" if version is None else version.text(1), failed=failed)


IMPORTED = figures.imported(
    "tf-cnn-benchmarks",
    "tf_cnn_benchmarks",
    "How fast did tf_cnn_benchmarks train?",
    (
        *TRAINING_PARAMETERS,
        figures.text("model", "network"),
        figures.choice("mode", "training, or the forward pass alone", "training", "inference"),
        figures.text("data", "data set, as the log names it"),
    ),
    (
        figures.rate(
            "rate", "op/s", "of the whole run: `total images/sec`, batches x global batch over the time of the loop"
        ),
        figures.rate("rate_per_device", "op/s", "the same, divided by the number of devices"),
    ),
)

READER = log_reader(
    IMPORTED,
    "tf_cnn_benchmarks",
    _measured,
    begin=(r"Model: +([\w.\-]{1,60})", "Model:       resnet50"),
    begins=r"TensorFlow: +[0-9]\S{0,20}",
    end=(r"total images/sec: ([0-9.]{1,20})", "there is no `total images/sec`"),
)
