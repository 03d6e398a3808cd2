"""MXNet's Speedometer: the rate of the last batches of one worker.

`Speed` is disp_batches x batch_size over the time since the line before; a worker with several devices has one line for
all of them, of several workers (`kv_store` dist) each has its own. The first batches of each epoch are not printed. The
lines of an epoch must fit into its `Time cost`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import EPOCH, Ending, Step, StepLines, check_whole, sessions
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value

_TOOL = "MXNet"
_LINES = StepLines(
    Pattern(
        r"(?:INFO:root:)?Epoch\[(?P<epoch>[0-9]{1,6})\] Batch \[(?:[0-9]{1,9}-)?(?P<step>[0-9]{1,9})\]\s{1,8}"
        r"Speed: (?P<speed>[0-9.]{1,20}) samples/sec(?=(?:.{0,200}(?:loss|entropy)=(?P<loss>[^\s,]{1,30}))?).{0,400}"
    ),
    "Speed: ",
    first=0,
    banner=Pattern(r"(?:INFO:root:)?start with arguments Namespace\(.{1,4000}"),
    resumed=Pattern(r"Loaded model .{1,200}\.params"),
)
_LIKE = Pattern(r".{0,60}Epoch\[[0-9]{1,6}\] Batch \[.{0,400}")
_ARGUMENTS = Pattern(r"(?:INFO:root:)?start with arguments Namespace\((.{1,4000})\)")
_COST = Pattern(r"(?:INFO:root:)?Epoch\[([0-9]{1,6})\] Time cost=([0-9.]{1,20})")
_SLACK = 1.02


def _step(found: Found, covers: int) -> Step:
    """A line; its time is that of one sample."""
    speed = found.printed("speed", "the speed")
    return Step(
        found, _LINES.number(found.match), speed.inverse(), found.match["loss"], counts={"samples": 1.0}, covers=covers
    )


def _measured(log: Log) -> Measured:
    """One run of one worker. Raises ParseError if lines and the time of an epoch contradict each other."""
    check_whole(log, _LIKE, _LINES.step)
    steps = sessions(log, _LINES, _step)
    arguments = log.maybe(_ARGUMENTS, "list of arguments")
    stated = "" if arguments is None else arguments.match[1]
    batch = re.search(r"\bbatch_size=([0-9]{1,9})\b", stated)
    if batch is None or int(batch[1]) == 0:
        raise log.error(
            "the batch size (`start with arguments Namespace(batch_size=...`) is missing: no rate is checked"
        )
    size = int(batch[1])
    parameters: dict[str, Value] = {"global_batch": size}
    workers = re.search(r"\bkv_store='dist", stated)
    gpus = re.search(r"\bgpus='([0-9,]{1,60})'", stated)
    if workers is None and gpus is not None:
        parameters["devices"] = len(gpus[1].strip(",").split(","))
    if workers is not None:
        del parameters["global_batch"]
    timed = [_timed(step, size, parameters.get("devices"), is_whole=workers is None) for step in steps]
    costs = log.found(_COST)
    _check_costs(timed, costs)
    remarks = ["one worker of several: its rate is not that of the run"] if workers is not None else []
    return training(log, timed, Ending(costs[-1] if costs else None), parameters=parameters, remarks=remarks)


def _timed(step: Step, size: int, devices: Value | None, *, is_whole: bool) -> Step:
    counts = {"samples": float(size)} if is_whole else {}
    each = {"samples": size / devices} if isinstance(devices, int) else {}
    time = Printed(step.time.value * size, step.time.error * size)
    return Step(step.found, step.number, time, step.loss, counts, each, covers=step.covers, session=step.session)


def _check_costs(steps: Sequence[Step], costs: Sequence[Found]) -> None:
    """Raise ParseError if the lines of an epoch took longer than it."""
    for cost in costs:
        own = [step for step in steps if step.number // EPOCH == int(cost.match[1])]
        lines_s = math.fsum(step.elapsed_s for step in own)
        if lines_s > _SLACK * cost.number(2, "the time"):
            raise cost.error(f"the batches of this epoch took {lines_s:.6g} s by their rates: not one run, or damaged")


IMPORTED = figures.imported(
    "mxnet",
    _TOOL,
    "How fast did MXNet train?",
    TRAINING_PARAMETERS,
    training_figures(
        "samples of the steady batches over their summed time, by Speed of a run with one worker",
        "the same, divided by the number of devices",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
