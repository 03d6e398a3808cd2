"""MaxText's log: `completed step`, with rates of one device.

Steps are dispatched and not waited for: the second one may look a hundred times too fast, and is left out. Tokens per
second count the batch with its padding; `total_weights` are the tokens that count. The FLOP of a step are those that
MaxText computes from the model. Every host prints each step; the slowest counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, sessions
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value

_TOOL = "MaxText"
_LINES = StepLines(
    Pattern(
        r"completed step: (?P<step>[0-9]{1,12}), seconds: +(?P<s>[0-9.]{1,20}), "
        r"TFLOP/s(?:/device)?: +(?P<tflops>[0-9.]{1,20})(?:, Tokens/s/device: +(?P<tokens>[0-9.]{1,20}))?"
        r"(?:, total_weights: [0-9]{1,18})?(?:, +(?:\w{1,40}_)?loss: (?P<loss>\S{1,30}?))?(?:, \w{1,40}: \S{1,30}){0,9}"
    ),
    "completed step: ",
    first=0,
    banner=Pattern(r"System Information: Jax Version.{0,200}"),
    resumed=Pattern(r"(?i)\brestor(?:ing|ed) .{0,200}(?:step|checkpoint)"),
)
_LIKE = Pattern(r"completed step: .{0,400}")
_NOT_WAITED = "steps that are not waited for"
_DEVICES = Pattern(r"Num_devices: ([0-9]{1,7}), shape .{0,200}")


def _step(found: Found, covers: int) -> Step:
    flops = found.match["tflops"]
    return Step(
        found,
        int(found.match["step"]),
        found.printed("s", "the time"),
        found.match["loss"],
        flops=Printed.of(found.number("tflops", "the FLOP rate"), flops).scaled(1e12),
        covers=1,
    )


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if times and rates contradict each other."""
    check_whole(log, _LIKE, _LINES.step)
    steps = [replace(s, apart=_NOT_WAITED if s.number == 1 else "") for s in sessions(log, _LINES, _step)]
    _check_even(steps, [step.flops for step in steps], "FLOP")
    parameters: dict[str, Value] = {}
    devices = log.maybe(_DEVICES, "number of devices")
    if devices is not None:
        parameters["devices"] = devices.whole(1, "the devices")
    if all(step.found.match["tokens"] is not None for step in steps):
        rates = [step.found.printed("tokens", "the rate") for step in steps]
        each = _check_even(steps, rates, "tokens")
        count = parameters.get("devices")
        whole = {"tokens": each * count} if isinstance(count, int) else {}
        steps = [
            replace(step, time=rate.inverse(each), counts=whole, device_counts={"tokens": each})
            for step, rate in zip(steps, rates, strict=True)
        ]
    return training(log, steps, Ending(), parameters=parameters)


def _check_even(steps: Sequence[Step], rates: Sequence[Printed | None], what: str) -> float:
    """Rate x time, which is equal in all steps. Raises ParseError if it is not."""
    work = [rate.value * step.time.value for step, rate in zip(steps, rates, strict=True) if rate is not None]
    usual, others = median(work), min(step.time.share for step in steps)
    for step, rate, own in zip(steps, rates, work, strict=True):
        share = step.time.share + (rate.share if rate is not None else 0.0)
        if abs(own / usual - 1.0) > share + others + 1e-3:
            raise step.found.error(
                f"its rate and time are {own:.6g} {what} of a device, those of other steps {usual:.6g}"
            )
    best = min(range(len(steps)), key=lambda k: steps[k].time.share)
    return float(round(work[best])) if what == "tokens" and steps[best].time.share * work[best] < 0.5 else work[best]


IMPORTED = figures.imported(
    "maxtext",
    _TOOL,
    "How fast did MaxText train?",
    TRAINING_PARAMETERS,
    training_figures(
        "Tokens/s/device x the number of devices, as tokens over summed time",
        "Tokens/s/device, which counts padding; here tokens of the steady steps over their summed time",
        "TFLOP/s/device: the FLOP of a step that MaxText computes from the model, over its time",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
