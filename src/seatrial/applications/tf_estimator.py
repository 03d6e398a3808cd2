"""TensorFlow's Estimator (also TPUEstimator): `loss = ..., step = 1000 (352.586 sec)`.

The seconds are those since the line before, which is so many steps earlier; global_step/sec is steps over them,
examples/sec the batch over a step. All three are compared. The first line has no time: compilation is before it.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, sessions
from seatrial.applications.reading.text import Pattern, is_product
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value

_TOOL = "TensorFlow's Estimator"
_LINES = StepLines(
    Pattern(
        r"(?:INFO:tensorflow:)?loss = (?P<loss>[^\s,]{1,30}), step = (?P<step>[0-9]{1,12}) \((?P<s>[0-9.]{1,20}) sec\)"
    ),
    "step = ",
    first=0,
    banner=Pattern(r"(?:INFO:tensorflow:)?(?:Using config: \{.{1,4000}|Starting training \.\.\.)"),
    resumed=Pattern(r"Restoring parameters from "),
)
_LIKE = Pattern(r".{0,100}loss = [^\s,]{1,30}, step = [0-9]{1,12} \(.{0,100}")
_BEFORE = Pattern(r"(?:INFO:tensorflow:)?loss = [^\s,]{1,30}, step = ([0-9]{1,12})(?: \(.{1,40}\))?")
_PACE = Pattern(r"(?:INFO:tensorflow:)?global_step/sec: ([0-9.]{1,20})")
_RATE = Pattern(r"(?:INFO:tensorflow:)?examples/sec: ([0-9.]{1,20})")
_DONE = Pattern(r"(?:INFO:tensorflow:)?Loss for final step: \S{1,30}")
_CORES = Pattern(r"(?:INFO:tensorflow:)?\*\*\* Num TPU Cores: ([0-9]{1,7})")
_NEAR = 0.01
_ONE = "lines of one step"
"""The last step has its own line, without global_step/sec, and the end of the training in its time."""
_BEHIND = 20
"""So many lines behind the last line of steps, its steps per second are searched for."""


def _step(found: Found, covers: int) -> Step:
    """A line; its time is that of all steps since the line before."""
    return Step(found, int(found.match["step"]), found.printed("s", "the time"), found.match["loss"])


def _measured(log: Log) -> Measured:
    """One training. Raises ParseError if times, steps and rates contradict each other."""
    check_whole(log, _LIKE, _LINES.step)
    numbers = {one.line.number: int(one.match[1]) for one in log.found(_BEFORE)}
    steps = []
    for step in sessions(log, _LINES, _step):
        before = max((line for line in numbers if line < step.found.line.number), default=None)
        count = 0 if before is None else step.number - numbers[before]
        if count > 0:
            time = step.time.scaled(1.0 / count)
            apart = _ONE if count == 1 else ""
            steps.append(replace(step, time=time, covers=count, apart=apart, is_start=False, is_first=False))
    if not steps:
        raise log.error("no line with a time and one before it: nothing says of how many steps it is")
    batch = _batch(log, steps)
    parameters: dict[str, Value] = {}
    if batch:
        parameters["global_batch"] = batch
        steps = [replace(step, counts={"examples": float(batch)}) for step in steps]
    cores = log.maybe(_CORES, "number of TPU cores")
    if cores is not None:
        parameters["devices"] = cores.whole(1, "the cores")
        each = {"examples": batch / cores.whole(1, "the cores")} if batch else {}
        steps = [replace(step, device_counts=each) for step in steps]
    done = log.found(_DONE)
    return training(log, steps, Ending(done[0] if done else None), parameters=parameters)


def _batch(log: Log, steps: Sequence[Step]) -> int:
    """The batch, from the two rates beside a line of steps; 0 if they are missing. Raises ParseError if a line has no
    steps per second above it, or below it in other logs, that fit its steps and seconds."""
    paces, rates = log.found(_PACE), log.found(_RATE)
    several = [step for step in steps if step.covers > 1]
    misfits = min((_misfits(several, paces, is_above) for is_above in (False, True)), key=len)
    if misfits:
        raise misfits[0].found.error("no global_step/sec beside it fits: damaged, or a line is missing")
    batches = set()
    for pace in paces:
        rate = next((one for one in rates if pace.line.number < one.line.number <= pace.line.number + 2), None)
        if rate is not None:
            batches.add(round(rate.number(1, "the rate") / pace.number(1, "the steps per second")))
    if len(batches) > 1:
        raise rates[-1].error(f"examples over steps per second are {sorted(batches)[:3]}: several batches, or damaged")
    return batches.pop() if batches else 0


def _misfits(steps: Sequence[Step], paces: Sequence[Found], is_above: bool) -> list[Step]:
    """The lines of steps without steps per second that fit, which are between this line and the next one (or the one
    before)."""
    found = []
    lines = [pace.line.number for pace in paces]
    for k, step in enumerate(steps):
        at = step.found.line.number
        low = (steps[k - 1].found.line.number if k else 0) if is_above else at
        high = at if is_above else (steps[k + 1].found.line.number if k + 1 < len(steps) else at + _BEHIND)
        if not any(_fits(pace, step) for pace in paces[bisect_right(lines, low) : bisect_left(lines, high)]):
            found.append(step)
    return found


def _fits(pace: Found, step: Step) -> bool:
    """Whether steps per second are those of a line of steps."""
    value = pace.printed(1, "the steps per second")
    off = value.error + _NEAR * value.value
    return is_product(float(step.covers), (value.value, off), (step.elapsed_s, step.time.error * step.covers))


IMPORTED = figures.imported(
    "tf-estimator",
    _TOOL,
    "How fast did an Estimator of TensorFlow train?",
    TRAINING_PARAMETERS,
    training_figures(
        "examples (batch x steps) over the summed seconds of the lines",
        "the same, divided by the number of TPU cores",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
