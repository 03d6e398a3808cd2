"""DeepSpeed's log: the line of its throughput timer, with two rates of one step.

`CurrSamplesPerSec` is train_batch_size over the time of the last step, `RunningAvgSamplesPerSec` the same over all
steps since the third. The timer runs from the forward call to the end of the step: what is between steps (input,
evaluation) is not in it, and where a step has several forward calls, most of the step may not be. So both are compared
with the time stamps of the lines: where the batch is in the log and the rates do not fit, the time stamps count. Steps
that were skipped for an overflow are in both rates; here they are left out.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, moment, sessions
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value

_TOOL = "DeepSpeed"
_AT = r"(?:\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3})\] \[[A-Z]{4,8}\] (?:\[[\w.:]{1,60}\] )?)?"
_LINES = StepLines(
    Pattern(
        _AT + r"(?:epoch=[0-9]{1,9}/micro_step=[0-9]{1,12}/global_step=|[0-9]{1,9}/)(?P<step>[0-9]{1,12}), "
        r"RunningAvgSamplesPerSec=(?P<running>[0-9.e+-]{1,30}), CurrSamplesPerSec=(?P<current>[0-9.e+-]{1,30})"
        r"(?P<loss>(?!))?(?:, MemAllocated=[0-9.]{1,12} ?GB)?(?:, MaxMemAllocated=[0-9.]{1,12} ?GB)?"
    ),
    "RunningAvgSamplesPerSec=",
    first=1,
    banner=Pattern(r".{0,60}\[(?:launch|runner)\.py:[0-9]{1,6}:main\] (?:WORLD INFO DICT|cmd = ).{0,100000}"),
    resumed=Pattern(r"(?:Loading|loading) (?:the )?checkpoint from|rank: [0-9]{1,7} loading checkpoint"),
)
_LIKE = Pattern(r".{0,400}RunningAvgSamplesPerSec.{0,400}")
_OVERFLOW = Pattern(
    r"(?i).{0,200}\boverflow! (?:Rank ([0-9]{1,7}) )?Skipping step\. Attempted loss scale: (\S{1,40}),.{0,200}"
)
_NAN = Pattern(r"(?i).{0,200}\bloss(?: is|=|:) ?(?:nan|inf)\b.{0,200}")
_BATCH = Pattern(
    r"(?:.{0,100}\[config\.py:[0-9]{1,6}:print\] +train_batch_size[ .]{1,80}|"
    r'"train_batch_size": |global_batch_size \.{3,60} )'
    r"([0-9]{1,12}),?"
)
"""Of DeepSpeed's configuration, or of the arguments of Megatron-DeepSpeed."""
_MICRO = Pattern(
    r"(?:.{0,100}\[config\.py:[0-9]{1,6}:print\] +train_micro_batch_size_per_gpu[ .]{1,80}|"
    r'"train_micro_batch_size_per_gpu": )'
    r"([0-9]{1,9}),?"
)
_SKIPPED = Pattern(r".{0,200}\[Rank 0\] step=([0-9]{1,12}), skipped=([0-9]{1,12}), .{0,400}")
_WORLD = Pattern(r".{0,100}\bdist_world_size=([0-9]{1,7})")
_START = 2
"""The timer counts from the step after this one."""
_FITS = 0.1
"""The printed rates may be so much above batch over time between the lines: the timer leaves out what is between
steps."""
_EXACT = 1e-6
_LATE = 0.01
_EVEN = 1.5
"""Time stamps count alone only if the steps are nearly as far apart as each other."""
_LEAST = 2
_UNKNOWN = "lines whose mean is unknown"
_STAMP_S = 2e-3
"""Time stamps have milliseconds."""


def _step(found: Found, covers: int) -> Step:
    """A line; its time is that of one sample, by the rate of the last step."""
    at = found.match["at"]
    return Step(
        found,
        int(found.match["step"]),
        Printed(1.0 / found.number("current", "the rate"), 0.0),
        counts={"samples": 1.0},
        at=None if at is None else moment(found.line, at),
        covers=covers,
    )


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if the two rates contradict each other."""
    check_whole(log, _LIKE, _LINES.step)
    log.refuse(_NAN, "the loss is not a number, so the rate means nothing")
    steps = _with_skipped(log, sessions(log, _LINES, _step))
    parameters: dict[str, Value] = {}
    for name, line in (("global_batch", _BATCH), ("micro_batch", _MICRO), ("devices", _WORLD)):
        values = {one.match[1] for one in log.found(line)}
        if len(values) == 1:
            parameters[name] = int(values.pop())
    steps = _by_timer(steps)
    batch, devices = parameters.get("global_batch"), parameters.get("devices")
    if all(step.skipped >= step.covers for step in steps):
        return training(log, steps, Ending(), parameters=parameters, is_timed=False)
    if not isinstance(batch, int):
        batch = _batch(steps)
        parameters["global_batch"] = batch
    timed = [replace(step, time=step.time.scaled(float(batch)), counts={"samples": float(batch)}) for step in steps]
    timed, remarks = _by_stamps(timed, batch)
    if isinstance(devices, int):
        timed = [replace(step, device_counts={"samples": batch / devices}) for step in timed]
    return training(log, timed, Ending(), parameters=parameters, remarks=remarks)


def _with_skipped(log: Log, steps: Sequence[Step]) -> list[Step]:
    """The steps with the number of those that were skipped since the line before. Every rank says it."""
    skipped = log.found(_OVERFLOW)
    known = {int(one.match[1]): int(one.match[2]) for one in log.found(_SKIPPED)}
    found = []
    begin = 0
    for step in steps:
        end = step.found.line.number
        if step.number in known and step.number - step.covers in known:
            count = known[step.number] - known[step.number - step.covers]
            found.append(replace(step, skipped=min(step.covers, max(count, 0))))
            begin = end
            continue
        own = [one.match for one in skipped if begin < one.line.number < end]
        scales = len({match[2] for match in own})
        of_rank = max((sum(match[1] == rank for match in own) for rank in {match[1] for match in own}), default=0)
        found.append(replace(step, skipped=min(step.covers, max(scales, of_rank if own and own[0][1] else scales))))
        begin = end
    return found


def _by_timer(steps: Sequence[Step]) -> list[Step]:
    """The time of a sample in the steps since the line before: the running mean has all steps, the other rate the last
    alone. Raises ParseError if the last is not in the mean."""
    found = []
    for before, step in zip([None, *steps[:-1]], steps, strict=True):
        total = (step.number - _START) / step.found.number("running", "the mean")
        if before is None or before.session != step.session or before.number <= _START:
            count = step.number - _START
            is_mean = count == 1
            own = step.time.value
            if not is_mean and step.covers > 1:
                step = replace(step, apart=_UNKNOWN)
        else:
            count = step.number - before.number
            is_mean = True
            own = (total - (before.number - _START) / before.found.number("running", "the mean")) / count
        if is_mean and count == 1 and abs(own / step.time.value - 1.0) > 1e-3 + _EXACT * step.number:
            raise step.found.error("the mean of all steps has another rate for this one: damaged, or lines are missing")
        if own <= 0:
            raise step.found.error("the mean of all steps contradicts that of the line before")
        found.append(replace(step, time=Printed(own, 0.0)))
    return found


def _apart_s(steps: Sequence[Step]) -> dict[int, float]:
    """Number of a step -> time of a step since the line before, by time stamps."""
    return {
        step.number: (step.at - before.at).total_seconds() / (step.number - before.number)
        for before, step in itertools.pairwise(steps)
        if before.at is not None and step.at is not None and before.session == step.session
    }


def _batch(steps: Sequence[Step]) -> int:
    """The batch by rates and time stamps, if these are exact enough to give one whole number. Raises ParseError."""
    apart_s = _apart_s(steps)
    own = [step for step in steps if step.number in apart_s and not step.apart and not step.skipped]
    why = "train_batch_size is not in the log, and time stamps do not give it: the printed rates cannot be checked"
    if len(own) < _LEAST:
        raise steps[-1].found.error(why)
    found = [apart_s[step.number] / step.time.value for step in own]
    batch = round(median(found))
    for step, one in zip(own, found, strict=True):
        off = batch * (_LATE + _STAMP_S / (apart_s[step.number] * step.covers))
        if batch < 1 or off >= 0.25 or abs(one - batch) > off:
            raise step.found.error(why)
    return batch


def _by_stamps(steps: Sequence[Step], batch: int) -> tuple[list[Step], list[str]]:
    """The steps with times that the time stamps allow, and a remark if the rates of the log are not."""
    apart_s = _apart_s(steps)
    if not apart_s:
        return list(steps), ["no time stamps, so the printed rates cannot be compared with them"]
    ratio = median(apart_s[step.number] / step.time.value for step in steps if step.number in apart_s)
    if 1.0 / (1.0 + _FITS) <= ratio <= 1.0 + _FITS:
        return list(steps), []
    if len(apart_s) < _LEAST or max(apart_s.values()) > _EVEN * min(apart_s.values()):
        why = f"the printed rates are not those of {batch} samples in steps as far apart as the time stamps are"
        raise steps[-1].found.error(why)
    timed = [
        replace(step, time=Printed(apart_s[step.number], _STAMP_S / 2 / step.covers), apart="")
        for step in steps
        if step.number in apart_s
    ]
    printed, true = (batch / median(one.time.value for one in own) for own in (steps, timed))
    why = (
        f"the printed {printed:.4g} samples/s do not fit: {batch} samples in steps as far apart as the time stamps are"
    )
    return timed, [f"{why} {true:.4g} samples/s, which counts"]


IMPORTED = figures.imported(
    "deepspeed",
    _TOOL,
    "How fast did DeepSpeed train?",
    TRAINING_PARAMETERS,
    training_figures(
        "samples of the steady steps over their time by DeepSpeed's timer, without the time between steps; if this "
        "does not fit batch and time stamps, over the time between these",
        "the same, divided by the number of devices",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
