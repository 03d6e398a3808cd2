"""torchtitan's log: `tps` is tokens per second of one device, since the line before it.

It is ntokens / (time x non-data-parallel size): the tokens of one rank's batch, divided by the ranks that share this
batch. The time of a step is not printed: it follows from the tokens of a step, if the log states batch and length, and
must fit between the time stamps. tflops is tps times the FLOP of a token as torchtitan counts them, mfu that over the
peak that it takes for the device; both are compared with tps, so that a damaged number is detected. A memory of 0.00GiB
is unknown.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log, Measured, Printed
from seatrial.applications.reading.steps import Ending, Step, StepLines, check_whole, moment, sessions
from seatrial.applications.reading.text import Pattern
from seatrial.applications.reading.training import TRAINING_PARAMETERS, step_reader, training, training_figures
from seatrial.model.benchmark.parameter import Value

_TOOL = "torchtitan"
_STAMPED = (
    r"(?:\[titan\] )?\[?(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{3,6})?)"
    r"(?: - \w{1,40} - [A-Z]{4,8} - |\]\[[A-Z]\]\[[\w./:]{1,100}\] )"
)
"""Before each line: as torchtitan writes it, or with the logger of ezpz."""
_REST = rf"(?:{_STAMPED.replace('?P<at>', '?:')})?"
_LINES = StepLines(
    Pattern(
        rf"(?:{_STAMPED})?step: *(?P<step>[0-9]{{1,12}})(?:/[0-9]{{1,12}}(?: = [0-9.]{{1,9}}%)?)?"
        r" +loss: *(?P<loss>\S{1,30}) +(?:grad_norm: *\S{1,30} +)?"
        r"memory: *[0-9.]{1,12}GiB\([0-9.]{1,12}%\) +(?:tps|wps): *(?P<tps>[0-9,]{1,20})"
        r"(?: +tflops: *(?P<tflops>[0-9,.]{1,20}))?(?: +mfu: *(?P<mfu>[0-9.]{1,12}%|N/A))?"
    ),
    "step: ",
    first=1,
    banner=Pattern(_REST + r"Starting job: .{0,400}"),
    resumed=Pattern(r"(?:Loading the checkpoint|Loading checkpoint|Finished loading the checkpoint)\b"),
)
_LIKE = Pattern(r"(?:.{0,120} )?(?<!validate )step: *[0-9]{1,12} +loss: .{0,400}")
_STAMP = Pattern(r"(?:\[titan\] )?\[?(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{3,6})?)(?: - |\]\[)")
_PEAK = Pattern(_REST + r"Peak FLOPS used for computing MFU: ([0-9.e+]{1,20})")
_STARTS = Pattern(
    _REST
    + r"Training starts at step [0-9]{1,12}, with local batch size ([0-9]{1,9}), global batch size ([0-9]{1,12}), "
    r"sequence length ([0-9]{1,9})(?:, gradient accumulation steps [0-9]{1,9})?, total steps ([0-9]{1,12})\b.{0,100}"
)
_MESH = Pattern(_REST + r"Building [0-9]-D device mesh with \[.{0,200}\], \[([0-9, ]{0,60})\]")
_DONE = Pattern(_REST + r"Training completed")
_FITS = 0.05
"""How far tokens by the rate and the time stamps may be from those of a step: stamps are taken after the line's
rate."""


def _step(found: Found, covers: int) -> Step:
    """A line; its time is that of one token of a device, until the tokens of a step are known."""
    text = found.match["tps"].replace(",", "")
    tps = Printed(found.line.number_of(text, "tps"), 0.5)
    flops = None
    if (tflops := found.match["tflops"]) is not None and tflops.replace(",", "").strip("0."):
        token = tflops.replace(",", "")
        flops = Printed.of(found.line.number_of(token, "tflops"), token).scaled(1e12)
    stamp = found.match["at"]
    return Step(
        found,
        int(found.match["step"]),
        tps.inverse(),
        found.match["loss"],
        device_counts={"tokens": 1.0},
        flops=flops,
        at=None if stamp is None else moment(found.line, stamp),
        covers=covers,
    )


def _measured(log: Log) -> Measured:
    """One run. Raises ParseError if rates, batch and time stamps contradict each other."""
    steps = sessions(log, _LINES, _step)
    check_whole(log, _LIKE, _LINES.step)
    _check_flops(steps)
    parameters: dict[str, Value] = {}
    starts = log.found(_STARTS)
    for one in starts[1:]:
        if one.match.groups()[:3] != starts[0].match.groups()[:3]:
            raise one.error(f"another batch than in line {starts[0].line.number}: two runs, or changed by a restart")
    last = int(starts[-1].match[4]) if starts else None
    mesh = log.maybe(_MESH, "mesh of devices")
    if mesh is not None:
        parameters["devices"] = math.prod(map(int, re.findall(r"[0-9]+", mesh.match[1])))
    tokens = samples = 0.0
    if starts:
        local, batch, length = (starts[0].whole(group, "the batch") for group in (1, 2, 3))
        parameters |= {"micro_batch": local, "global_batch": batch, "sequence_length": length}
        tokens, samples = float(batch * length), float(batch)
        if mesh is None and batch % local == 0 and _is_even_share(steps, local * length):
            parameters["devices"] = batch // local
    done = log.found(_DONE)
    ending = Ending(done[0] if done else None, last)
    notes = _peak(log, steps)
    devices = parameters.get("devices")
    if not tokens or not isinstance(devices, int):
        _check_even(steps)
        return training(log, steps, ending, parameters=parameters, notes=notes, is_timed=False)
    each = tokens / devices
    timed = [
        replace(
            step,
            time=step.time.scaled(each),
            counts={"tokens": tokens, "samples": samples},
            device_counts={"tokens": each},
        )
        for step in steps
    ]
    _check_tokens(timed, each)
    return training(log, timed, ending, parameters=parameters, notes=notes, stamp=_STAMP)


def _pairs(steps: Sequence[Step]) -> list[tuple[Step, Step]]:
    """Consecutive lines with time stamps."""
    return [
        (before, step)
        for before, step in itertools.pairwise(steps)
        if step.session == before.session
        and step.number > before.number
        and step.at is not None
        and before.at is not None
    ]


def _check_flops(steps: Sequence[Step]) -> None:
    """Raise ParseError if the FLOP of a token, tflops over tps, change."""
    known = [
        (step, Printed(work := step.flops.value * step.time.value, work * (step.flops.share + step.time.share)))
        for step in steps
        if step.flops is not None
    ]
    exact = min((one for _, one in known), key=lambda one: one.share, default=Printed(1.0, 0.0))
    for step, flop in known:
        if abs(flop.value - exact.value) > flop.error + exact.error + 2e-3 * exact.value:
            raise step.found.error(f"tflops over tps are {flop.value:.4g} FLOP of a token, elsewhere {exact.value:.4g}")


def _tokens_between(before: Step, step: Step) -> float:
    """Tokens of a device in a step, by the rate and the time stamps."""
    apart_s = (step.at - before.at).total_seconds() if step.at is not None and before.at is not None else 0.0
    return apart_s / step.time.value / (step.number - before.number)


def _is_even_share(steps: Sequence[Step], tokens: float) -> bool:
    """Whether these are the tokens of a device in a step by rates and time stamps, so that each has its own batch."""
    pairs = _pairs(steps)
    return bool(pairs) and abs(median(_tokens_between(b, a) for b, a in pairs) / tokens - 1.0) <= _FITS


def _check_even(steps: Sequence[Step]) -> None:
    """Raise ParseError if a line has fewer tokens in a step, by its rate and the time stamps, than the others have."""
    pairs = _pairs(steps)
    found = [(step, _tokens_between(before, step)) for before, step in pairs]
    if len(found) < 3:
        return
    usual = median(tokens for _, tokens in found)
    for step, tokens in found:
        slack = _FITS + 2e-3 / (usual * step.time.value * step.covers)
        if tokens < usual * (1.0 - slack):
            raise step.found.error(
                f"{tokens:.0f} tokens of a device in a step by rate and time stamp, elsewhere {usual:.0f}"
            )


def _check_tokens(steps: Sequence[Step], each: float) -> None:
    """Raise ParseError if the stated tokens of a step do not fit rates and time stamps."""
    pairs = _pairs(steps)
    found = [_tokens_between(before, step) * each for before, step in pairs]  # times are of a step here
    if found and abs(median(found) / each - 1.0) > 0.1 + 2e-3 / min(step.elapsed_s for step in steps):
        why = f"{median(found):.0f} tokens of a device in a step by rates and stamps, {each:.0f} by batch and length"
        raise steps[-1].found.error(why)


def _peak(log: Log, steps: Sequence[Step]) -> dict[str, object]:
    """The FLOP rate that mfu is a share of: as the log states it, else as it follows. Raises ParseError if the two are
    not the same."""
    found = [(step.flops, step.found.match["mfu"]) for step in steps]
    peaks = [
        (flops.share + 0.005 / share, flops.value / share * 100)
        for flops, text in found
        if flops is not None and text is not None and text.endswith("%") and (share := float(text[:-1])) > 0
    ]
    off, peak = min(peaks, default=(1.0, 0.0))
    line = log.maybe(_PEAK, "peak")
    if line is None:
        return {"mfu_is_share_of_flops": float(f"{peak:.2g}")} if off < 0.05 else {}
    stated = line.number(1, "the peak")
    if peaks and abs(peak / stated - 1.0) > off + 0.01:
        raise line.error(f"tflops over mfu are a peak of {peak:.3g}")
    return {"mfu_is_share_of_flops": stated}


IMPORTED = figures.imported(
    "torchtitan",
    _TOOL,
    "How fast did torchtitan train?",
    TRAINING_PARAMETERS,
    training_figures(
        "global batch x sequence length of the steady steps over their time, which is tokens of a device / tps",
        "tps: tokens of a rank's batch over time and the ranks that share it; here tokens over summed time",
        "tflops, which is tps x FLOP of a token as torchtitan counts them",
    ),
)

READER = step_reader(IMPORTED, _TOOL, _LINES, _measured)
