"""Horovod's synthetic benchmark (pytorch_, tensorflow2_, keras and mxnet_synthetic_benchmark.py).

After 10 batches of warm-up, each of 10 iterations is a few batches with one time; the program prints the rate of each,
their mean, and as `+-` 1.96 standard deviations of the iterations, which is not the error of the mean. The rate here is
images over summed time; the mean of rates, which is a little higher, is another figure. Mean, deviation and total are
compared with the iterations.
"""

from __future__ import annotations

import math
from statistics import fmean, pstdev

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, log_reader
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, definitions
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Sample

_DEVICE = r"(?:GPU|CPU|TPU|[\w/:.\-]{1,30})"
_ITERATION = Pattern(rf"Iter #([0-9]{{1,9}}): ([0-9.]{{1,20}}) img/sec per {_DEVICE}")
_LEAST = 2
_LIKE = Pattern(r"Iter #.{0,200}")
_MEAN = Pattern(rf"Img/sec per {_DEVICE}: ([0-9.]{{1,20}}) \+-([0-9.]{{1,20}})")
_MODEL = Pattern(r"Model: ([\w.\-]{1,60})")
_DEVICES = Pattern(r"Number of [A-Z]{1,5}s: ([0-9]{1,7})")


def _measured(log: Log, begin: Found, end: Found) -> Measured:
    iterations = log.each_of_form(_LIKE, _ITERATION, "the line of an iteration is damaged")
    numbers = [one.whole(1, "the iteration", least=0) for one in iterations]
    if len(numbers) < 2 or numbers != list(range(len(numbers))):
        raise log.error(f"iterations {numbers[:12]}: some are missing, or there are several runs")
    each = [one.printed(2, "the rate") for one in iterations]
    mean_line = log.only(_MEAN, "`Img/sec per GPU`")
    mean, spread = mean_line.printed(1, "the mean"), mean_line.number_or_zero(2, "the deviation")
    rates = [rate.value for rate in each]
    off = each[0].error + mean.error + 1e-9
    if len(each) > _LEAST and abs(fmean(rates) - mean.value) > off >= abs(fmean(rates[1:]) - mean.value):
        rates = rates[1:]  # the benchmark of Keras warms up in the first
    if abs(fmean(rates) - mean.value) > off:
        raise mean_line.error(f"the mean of the iterations is {fmean(rates):.1f}")
    if abs(1.96 * pstdev(rates) - spread) > 1.96 * each[0].error + 0.05 + 1e-9:
        raise mean_line.error(f"1.96 standard deviations of the iterations are {1.96 * pstdev(rates):.1f}")
    devices = end.whole(1, "the devices")
    total = end.printed(2, "the total")
    if abs(total.value - devices * mean.value) > devices * mean.error + total.error + 1e-9:
        raise end.error(f"the total is not {devices} x {mean.value:g}")
    stated = log.maybe(_DEVICES, "number of devices")
    if stated is not None and stated.whole(1, "the devices") != devices:
        raise end.error(f"{devices} devices, but {stated.match[1]} in line {stated.line.number}")
    batch = begin.whole(1, "the batch")
    parameters: dict[str, Value] = {"devices": devices, "micro_batch": batch, "global_batch": batch * devices}
    if (model := log.maybe(_MODEL, "model")) is not None:
        parameters["model"] = model.text(1)
    time_s = math.fsum(batch / rate for rate in rates)
    point, extra = {"counts": "images"}, figures.stated(max(rate.resolution for rate in each))
    amount = float(batch * len(rates))
    samples = [
        Sample("rate", 0, time_s, {"amount": amount * devices}, point=point, extra=extra),
        Sample("rate_per_device", 0, time_s, {"amount": amount}, point=point, extra=extra),
        Printed(total.value, total.error).rate_sample("mean_of_rates"),
    ]
    notes = {"iterations": len(rates), "deviations_1.96": spread, "definitions": definitions(IMPORTED, samples)}
    return Measured(samples, parameters, notes, version="")


IMPORTED = figures.imported(
    "horovod",
    "Horovod's synthetic benchmark",
    "How fast did Horovod's synthetic benchmark train?",
    (*TRAINING_PARAMETERS, figures.text("model", "network")),
    (
        figures.rate("rate", "op/s", "of the whole run: images of all iterations over their summed time"),
        figures.rate("rate_per_device", "op/s", "of one device: images of all iterations over their summed time"),
        figures.rate(
            "mean_of_rates",
            "op/s",
            "`Total img/sec`: the number of devices x the mean of the rates of the iterations, as Horovod computes it; "
            "its +- is 1.96 standard deviations of the iterations",
            is_secondary=True,
        ),
    ),
)

READER = log_reader(
    IMPORTED,
    "Horovod",
    _measured,
    begin=(r"Batch size: ([0-9]{1,9})", "Batch size: 32"),
    begins=r"Model: [\w.\-]{1,60}",
    end=(
        rf"Total img/sec on ([0-9]{{1,7}}) {_DEVICE}\(s\): ([0-9.]{{1,20}}) \+-[0-9.]{{1,20}}",
        "there is no `Total img/sec`",
    ),
)
