"""NeMo's and Lightning's bars of progress.

`train_step_timing` is not the time of a step, by the comment beside it in NeMo: it may be one step, or a mean, without
what is between steps. So times come from the bar's clock, between two states of a bar: steps over seconds. The clock
has whole seconds, and what a bar covers has validation and checkpoints in it. Samples follow from `consumed_samples`
over `global_step`, if they give one whole batch. A loss that is nan makes every rate meaningless, however good it
looks.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed, plain_reader
from seatrial.applications.reading.steps import check_whole, is_not_finite
from seatrial.applications.reading.text import Pattern, number
from seatrial.applications.reading.training import TRAINING_PARAMETERS, with_definitions
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "NeMo"
_BAR = Pattern(
    r"(?:.{0,100}[\s\]])?Epoch ([0-9]{1,9}): *:? *[0-9]{1,3}%\|.{0,100}?\| *([0-9]{1,12})/([0-9]{1,12}) "
    r"\[((?:[0-9]{1,4}:)?[0-9]{1,2}:[0-9]{2})<[^,\]]{1,20}(?:, *[0-9.]{1,12} ?(?:it/s|s/it))?,? *"
    r"([^\]]{0,1000})\].{0,400}"
)
_LIKE = Pattern(r"(?:.{0,100}[\s\]])?Epoch [0-9]{1,9}: .{0,120}\|.{0,60}\[.{1,1500}")
_LINE = Pattern(r"(?:.{0,100}\s)?Training epoch [0-9]{1,9}, iteration [0-9]{1,12}/[0-9]{1,12} \|.{1,1000}")
_MARK = Pattern(r".{0,1000}\b(?:train_step_timing in s|reduced_train_loss|global_step)\b.{0,1000}")
_DONE = Pattern(r".{0,200}`Trainer\.fit` stopped: .{0,200}")
_LEAST_S = 20
"""Between two states of a bar: its clock has whole seconds."""
_TIMING = 0.5
"""What is between steps is not in train_step_timing, so that an iteration takes longer; never much less."""
_START = 0.1
"""The first tenth of an epoch is left out, if the log has a state of the bar behind it."""


class _State(Frozen):
    """A state of a bar: iterations that are done, and its clock."""

    found: Found
    epoch: int
    done: int
    of: int
    clock_s: int
    metrics: dict[str, str]


def _states(log: Log) -> list[_State]:
    found = []
    for one in log.found(_BAR):
        metrics = dict(part.split("=", 1) for part in map(str.strip, one.match[5].split(",")) if "=" in part)
        parts = [int(part) for part in one.match[4].split(":")]
        if max(parts[1:]) > 59 or (len(parts) == 3 and parts[1] > 59) or int(one.match[2]) > int(one.match[3]):
            raise one.error("not the clock or count of a bar: the line is damaged")
        clock = 0
        for part in parts:
            clock = 60 * clock + part
        found.append(_State(one, int(one.match[1]), int(one.match[2]), int(one.match[3]), clock, metrics))
    return found


def _starts(lines: Sequence[str]) -> list[int]:
    """A bar that goes back, in its epoch or to an earlier one, is of another run."""
    found: list[int] = []
    before = (-1, -1)
    for index, line in enumerate(lines):
        match = _BAR.fullmatch(line.strip()) if "Epoch " in line else None
        if match is not None:
            now = (int(match[1]), int(match[2]))
            if not found or now < before:
                found.append(index)
            before = now
    return found


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if it has no bar with a clock, or too little time passed."""
    check_whole(log, _LIKE, _BAR)
    states = _states(log)
    if not any(_MARK.fullmatch(text) for text in log.texts):
        raise log.error("nothing such as `train_step_timing in s=`: from another program")
    if not states and log.found(_LINE):
        raise log.found(_LINE)[0].error(
            "train_step_timing is not the time of a step, and these lines have no time stamps"
        )
    if not states:
        raise log.error("no bar such as `Epoch 0: : 3%|...| 9000/301500 [1:42:42<55:37:46, ...]`")
    loss = next((s for s in states if any(is_not_finite(v) for k, v in s.metrics.items() if "loss" in k)), None)
    begin, end = _window(states)
    steps, seconds = end.done - begin[0], Printed(float(end.clock_s - begin[1]), 0.5 if begin[1] else 1.0)
    if seconds.value <= 0 or steps <= 0 or (seconds.value < _LEAST_S and loss is None):
        raise end.found.error(f"the bar's clock shows {seconds.value:.0f} s in all: too short for whole seconds")
    timing = number(end.metrics.get("train_step_timing in s", ""))
    if timing is not None and seconds.value / steps < _TIMING * timing and loss is None:
        why = f"{steps} iterations in {seconds.value:.0f} s by the bar's clock, of {timing:g} s by train_step_timing"
        raise end.found.error(why)
    remarks = [] if begin[0] else ["the time has the first steps in it: there is no earlier state of the bar"]
    if not log.found(_DONE) and end.done < end.of:
        how_far = f"to iteration {end.done} of {end.of} in epoch {end.epoch}"
        remarks.insert(0, f"no line says that the run ended: the figures are of what is there, {how_far}")
    parameters: dict[str, Value] = {}
    samples: list[Sample] = [seconds.scaled(1.0 / steps).sample("step_mean")]
    batches = {batch for state in states if (batch := _batch(state)) is not None}
    if len(batches) == 1:
        batch = batches.pop()
        parameters["global_batch"] = batch
        amount = {"amount": float(batch * steps)}
        extra = {"resolution": seconds.resolution}
        samples.append(Sample("rate", 0, seconds.value, amount, point={"counts": "samples"}, extra=extra))
    failed = ""
    if loss is not None:
        value = next(v for k, v in loss.metrics.items() if "loss" in k and is_not_finite(v))
        failed = f"line {loss.found.line.number}: the loss is {value.removesuffix('.0')}, so the rate means nothing"
    notes = {"iterations": steps, "clock_s": seconds.value, "ended": bool(log.found(_DONE)) or end.done == end.of}
    return Measured(samples, parameters, notes, remarks, failed=failed)


def _window(states: Sequence[_State]) -> tuple[tuple[int, int], _State]:
    """Iterations and clock at the begin, and the state at the end, of the epoch with most iterations. Raises ParseError
    if a bar's clock goes back."""
    groups = [list(group) for _, group in itertools.groupby(states, key=lambda state: state.epoch)]
    own = max(groups, key=lambda group: group[-1].done)
    for before, state in itertools.pairwise(own):
        if state.clock_s < before.clock_s or state.of != before.of or state.done < before.done:
            raise state.found.error("the bar goes back: two runs, or damaged")
    end = own[-1]
    first = next((state for state in own if state.done >= _START * end.done), end)
    later = first.done < end.done and end.clock_s - first.clock_s >= _LEAST_S
    return ((first.done, first.clock_s) if later else (0, 0)), end


def _batch(state: _State) -> int | None:
    """The samples of a step, if `consumed_samples` and `global_step` give one whole number."""
    tokens = [state.metrics.get(key, "") for key in ("consumed_samples", "global_step")]
    values = [number(token) for token in tokens]
    if values[0] is None or values[1] is None or min(values[0], values[1]) <= 0:
        return None
    steps = [values[1], values[1] + 1.0]  # it counts from 0 or from 1
    off = [half_unit(token) for token in tokens]
    exact = [values[0] / one for one in steps if off == [0.05, 0.005] and (values[0] / one).is_integer()]
    if len(exact) == 1:
        return int(exact[0])
    low, high = (
        (values[0] - off[0]) / (steps[1] + off[1]),
        (values[0] + off[0]) / (steps[0] - min(off[1], steps[0] / 2)),
    )
    return math.ceil(low) if math.ceil(low) == math.floor(high) > 0 else None


IMPORTED = figures.imported(
    "nemo",
    "NeMo",
    "How fast did NeMo train?",
    TRAINING_PARAMETERS,
    (
        figures.rate(
            "rate", "op/s", "of the whole run: samples over the time on the bar's clock, with all that is in it"
        ),
        figures.time("step_mean", "time on the bar's clock over iterations, with validation and checkpoints"),
    ),
)

READER = plain_reader(IMPORTED, _TOOL, with_definitions(IMPORTED, _measured), starts=_starts)
