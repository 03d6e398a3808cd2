"""nanoGPT's log (train.py): `time` is that of the one iteration whose number stands before it.

An iteration in which losses are estimated has the evaluation, and the checkpoint, in its time: those are left out. The
first ones compile. `mfu` is FLOP of a device over 312 TFLOP/s, the peak of an A100 in bf16, whatever the device is, and
a running mean; -100 % means unknown (the first five). Here it is turned into the FLOP rate that it was made of, if it
has digits enough. `tokens per iteration` are those of all processes, whose number is not printed.
"""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, sessions
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures

_TOOL = "nanoGPT"
_A100 = 312e12
_LINES = StepLines(
    Pattern(
        r"iter (?P<step>[0-9]{1,12}): loss (?P<loss>\S{1,30}), time (?P<ms>[0-9.]{1,20})ms"
        r"(?:, mfu (?P<mfu>-?[0-9]{1,9}\.[0-9]{1,4})%)?"
    ),
    "iter ",
    first=0,
    banner=Pattern(r"tokens per iteration will be: [0-9,]{1,20}"),
    resumed=Pattern(r"Resuming training from "),
)
_LIKE = Pattern(r"iter [0-9]{1,12}: .{0,200}")
_TOKENS = Pattern(r"tokens per iteration will be: ([0-9,]{1,20})")
_EVALUATED = Pattern(r"step ([0-9]{1,12}): train loss \S{1,30}, val loss \S{1,30}")
_COARSEST = 0.05
"""No FLOP rate from an mfu whose printed digits are coarser than this share of it."""
_EVALUATION = "iterations with an evaluation"


def _step(found: Found, covers: int) -> Step:
    time = found.printed("ms", "the time").scaled(1e-3)
    return Step(found, int(found.match["step"]), time, found.match["loss"])


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError for a damaged line."""
    check_whole(log, _LIKE, _LINES.step)
    steps = sessions(log, _LINES, _step)
    evaluated = {int(one.match[1]) for one in log.found(_EVALUATED)}
    steps = [replace(s, apart=_EVALUATION if s.number in evaluated and s.number else "") for s in steps]
    tokens = log.maybe(_TOKENS, "number of tokens of an iteration")
    if tokens is not None:
        count = float(tokens.line.whole_of(tokens.match[1].replace(",", ""), "the tokens"))
        steps = [replace(step, counts={"tokens": count}) for step in steps]
    found = training(log, steps, Ending())
    shown = [step.found.match["mfu"] for step in steps if step.found.match["mfu"] is not None]
    if not found.failed and shown and float(shown[-1]) > 0:
        mfu = Printed.of(float(shown[-1]) / 100, shown[-1])
        flops = Printed(mfu.value * _A100, mfu.error / 100 * _A100)
        if flops.resolution <= _COARSEST:
            return replace(found, samples=[*found.samples, flops.rate_sample("model_flops")])
    return found


IMPORTED = figures.imported(
    "nanogpt",
    _TOOL,
    "How fast did nanoGPT train?",
    TRAINING_PARAMETERS,
    training_figures(
        "tokens of the steady iterations that are in the log over their time",
        flops="the last mfu, a running mean of FLOP of a device over 312 TFLOP/s (A100), x 312 TFLOP/s",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
