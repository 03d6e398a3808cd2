"""The figures of logs of training, whatever framework wrote them.

Rates are counts over the sum of the times of the steady steps, never means of rates. Left out are the first step after
each start (it compiles and allocates) and the leading steps, at most half, that differ from the median of the later
half by more than a factor of `STEADY`: compilers run again, and steps that are not waited for look too fast. Steps that
were skipped, and those with an evaluation in them, are left out and counted apart.

Goodput is useful time over wall time. Useful are steps whose result was kept: those that were made again after a
restart are not, nor those that were skipped; the first step after a start counts with the median, what it takes longer
is start-up. The wall time goes from the first to the last time stamp: start-up, restarts, checkpoints and evaluations
are in it. (The definition of Google's ml-goodput-measurement, by what a log states.)
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.applications.reading import figures
from seatrial.applications.reading.figures import Reader
from seatrial.applications.reading.log import Log, Measured, Printed, plain_reader
from seatrial.applications.reading.steps import EPOCH, Ending, Step, StepLines, is_not_finite, moment_in
from seatrial.applications.reading.text import Pattern
from seatrial.model.benchmark.benchmark import Benchmark, Figure
from seatrial.model.benchmark.parameter import Parameter, Value
from seatrial.model.results.sample import Sample

STEADY = 1.5
"""Steps before the first that is nearer than this factor to the median are not steady."""
_FEW = 8
RULE = (
    "left out: the first step after each start, and leading steps (at most half of them) that differ from the median "
    f"step of the later half, of all if there are fewer than {_FEW} lines, by more than a factor of {STEADY:g}"
)
_LEAST_FOR_P95 = 20
_LEAST_FOR_GOODPUT = 5
_COARSEST = 0.01
"""No goodput from time stamps that are coarser than this share of the wall time."""
_OVERHEAD = 0.02
"""What a step may take longer than the time stamps around it say: they are taken later."""
_FAILED = Pattern(
    r"Traceback \(most recent call last\)|out of memory|CUDA error|NCCL (?:error|watchdog.{0,40}timeout)"
    r"|Segmentation fault"
)


def training(
    log: Log,
    steps: Sequence[Step],
    ending: Ending,
    *,
    parameters: Mapping[str, Value] = {},
    notes: Mapping[str, object] = {},
    remarks: Iterable[str] = (),
    stamp: Pattern | None = None,
    is_timed: bool = True,
) -> Measured:
    """The figures of a run. `stamp` finds time stamps (its first group) in lines. Without `is_timed`, times are of one
    count, not of a step: only rates follow. Raises ParseError if times contradict each other."""
    said = [*_how_far(log, steps, ending), *remarks]
    if is_timed:
        _check_stamps(steps, _resolution_s(steps))
    if (failed := _failed(steps)) is not None:
        samples = [_raw(step, i, is_timed=is_timed) for i, step in enumerate(steps)]
        return Measured(samples, parameters, {**notes, "lines_of_steps": len(steps)}, said, failed=failed)
    steady = _steady(steps)
    if not steady:
        raise steps[-1].found.error("no steady step: the first one has the start in it, and no other was logged")
    skipped = sum(step.skipped for step in steps)
    counted: dict[str, object] = {
        "lines_of_steps": len(steps),
        "steady_lines": len(steady),
        "steady_steps": sum(step.covers for step in steady),
        "rule": RULE,
        "ended": not _how_far(log, steps, ending),
    }
    if skipped:
        counted["skipped_steps"] = skipped
        said.append(f"{skipped} steps were skipped (overflow): they are in no figure")
    for why, count in Counter(step.apart for step in steps if step.apart).items():
        counted[why.replace(" ", "_")] = count
    samples = _samples(steps, steady, is_timed=is_timed)
    if stamp is not None and is_timed:
        good, parts = _goodput(log, steps, ending, stamp)
        samples += good
        counted |= parts
    return Measured(samples, parameters, {**counted, **notes}, said)


def _raw(step: Step, i: int, *, is_timed: bool) -> Sample:
    """The sample of a step whose run has no figure: the record has it beside the reason."""
    return step.time.sample("step", i=i) if is_timed else figures.rate_sample("rate", 1.0 / step.time.value, i=i)


def _how_far(log: Log, steps: Sequence[Step], ending: Ending) -> list[str]:
    """What is missing at the end, for the user; nothing if the run ended."""
    last = max(step.number for step in steps)
    if ending.line is not None or (ending.last is not None and last >= ending.last):
        return []
    of = f" of {ending.last}" if ending.last is not None else ""
    named = f"epoch {last // EPOCH}, step {last % EPOCH}" if last >= EPOCH else f"step {last}"
    words = f"no line says that the run ended: the figures are of what is there, to {named}{of}"
    for line, text in log.numbered(log.lines[steps[-1].found.line.number :]):
        if _FAILED.search(text):
            return [f"{words}; line {line.number}: {' '.join(text.split())[:120]}"]
    return [words]


def _failed(steps: Sequence[Step]) -> str | None:
    """Why the rates of this run mean nothing, or None."""
    for step in steps:
        if is_not_finite(step.loss) and step.skipped < step.covers:
            where = f"line {step.found.line.number}: the loss is {step.loss} in step {step.number}"
            return f"{where}, so the rate means nothing"
    if all(step.skipped >= step.covers for step in steps):
        count = sum(step.covers for step in steps)
        return f"all {count} steps were skipped (overflow): the rate is of steps without update"
    return None


def _steady(steps: Sequence[Step]) -> list[Step]:
    found: list[Step] = []
    for _, group in itertools.groupby(steps, key=lambda step: step.session):
        usable = [step for step in group if not step.skipped and not step.apart]
        usable = usable[1:] if usable and usable[0].is_start else usable
        if not usable:
            continue
        middle = _middle(usable if len(usable) < _FEW else usable[len(usable) // 2 :])
        first = next(k for k, step in enumerate(usable) if middle / STEADY <= step.time.value <= middle * STEADY)
        found += usable[first if 2 * first <= len(usable) else 0 :]
    return found


def _middle(steps: Sequence[Step]) -> float:
    """The median of the times of all steps that these lines cover; the lower one of two."""
    ordered = sorted(steps, key=lambda step: step.time.value)
    counts = list(itertools.accumulate(step.covers for step in ordered))
    return next(step.time.value for step, count in zip(ordered, counts, strict=True) if 2 * count >= counts[-1])


def _samples(steps: Sequence[Step], steady: Sequence[Step], *, is_timed: bool) -> list[Sample]:
    total_s = math.fsum(step.elapsed_s for step in steady)
    resolution = 2.0 * math.fsum(step.time.error * step.covers for step in steady) / total_s
    samples = [
        Sample(series, 0, total_s, {"amount": amount}, point={"counts": name}, extra=figures.stated(resolution))
        for series, counts in (
            ("rate", [step.counts for step in steady]),
            ("rate_per_device", [step.device_counts for step in steady]),
        )
        for name in sorted(set.intersection(*map(set, counts)))
        if (amount := math.fsum(own[name] * step.covers for own, step in zip(counts, steady, strict=True)))
    ]
    if is_timed:
        samples += [step.time.sample("step", i=i) for i, step in enumerate(steady)]
        ordered = sorted(steady, key=lambda step: step.time.value)
        samples.append(ordered[-1].time.sample("step_max"))
        if len(ordered) >= _LEAST_FOR_P95:
            samples.append(ordered[math.ceil(0.95 * len(ordered)) - 1].time.sample("step_p95"))
        first = steps[0]
        if first.is_first:
            samples.append(first.time.sample("first_step"))
    flops = [(step.flops, step.elapsed_s) for step in steady if step.flops is not None]
    if len(flops) == len(steady):
        mean = math.fsum(rate.value * time_s for rate, time_s in flops) / total_s
        error = math.fsum(rate.error * time_s for rate, time_s in flops) / total_s
        samples.append(Printed(mean, error).rate_sample("model_flops"))
    return samples


def _resolution_s(steps: Sequence[Step]) -> float:
    """The step of the time stamps: milliseconds, or whole seconds."""
    return 1e-3 if any(step.at is not None and step.at.microsecond for step in steps) else 1.0


def _check_stamps(steps: Sequence[Step], resolution_s: float) -> None:
    """Raise ParseError if a step took longer than the time stamps of its line and the one before are apart."""
    for before, step in itertools.pairwise(steps):
        if before.at is None or step.at is None or before.session != step.session:
            continue
        apart_s = (step.at - before.at).total_seconds()
        if apart_s < 0:
            raise step.found.error("its time stamp is before that of the line above: two runs, or damaged")
        slack_s = resolution_s + _OVERHEAD * step.elapsed_s + step.time.error * step.covers
        if step.number - before.number == step.covers and step.elapsed_s > apart_s + slack_s:
            why = f"{step.covers} steps of {step.time.value:.6g} s do not fit between time stamps {apart_s:g} s apart"
            raise step.found.error(why)


def _goodput(log: Log, steps: Sequence[Step], ending: Ending, stamp: Pattern) -> tuple[list[Sample], dict[str, object]]:
    """Goodput, if the log has the start of the run and time stamps that are fine enough, and the times it is made
    of."""
    until = log.lines if ending.line is None else log.lines[: ending.line.line.number]
    stamps = [
        (line.number, moment)
        for line, text in log.numbered(until)
        if (match := stamp.match(text)) is not None and (moment := moment_in(match[1])) is not None
    ]
    if not stamps or not steps[0].is_start or len(steps) < _LEAST_FOR_GOODPUT or any(step.at is None for step in steps):
        return [], {}
    begin, end, resolution_s = stamps[0], stamps[-1], _resolution_s(steps)
    wall_s = (end[1] - begin[1]).total_seconds()
    if begin[0] == steps[0].found.line.number:
        wall_s += steps[0].elapsed_s
    if wall_s <= 0 or resolution_s / wall_s > _COARSEST:
        return [], {}
    kept: dict[int, Step] = {step.number: step for step in steps}
    lost = [step for step in steps if kept[step.number] is not step]
    begins: dict[int, int] = {}  # session -> the least step of those behind it
    for step in reversed(steps):
        begins[step.session - 1] = min(step.number, begins.get(step.session - 1, step.number))
    for session in sorted(begins, reverse=True):
        begins[session] = min(begins[session], begins.get(session + 1, begins[session]))
    lost += [step for step in kept.values() if step.number >= begins.get(step.session, step.number + 1)]
    wasted = {id(step) for step in lost}
    middle = _middle(_steady(steps))
    useful_s = math.fsum(
        (min(step.time.value, middle) if step.is_start else step.time.value) * max(step.covers - step.skipped, 0)
        for step in steps
        if id(step) not in wasted
    )
    parts: dict[str, object] = {"wall_s": wall_s, "useful_s": useful_s, "starts": 1 + steps[-1].session}
    if lost:
        parts |= {"lost_steps": sum(step.covers for step in lost), "lost_s": sum(step.elapsed_s for step in lost)}
    if useful_s > wall_s + resolution_s + _OVERHEAD * wall_s:
        raise steps[-1].found.error(f"the steps took {useful_s:.6g} s, longer than the whole log ({wall_s:.6g} s)")
    return [Sample("goodput", 0, wall_s, {"amount": min(useful_s, wall_s)})], parts


TRAINING_PARAMETERS: tuple[Parameter, ...] = (
    *figures.counts(
        devices="devices that train",
        nodes="hosts",
        global_batch="samples of a step, of the whole run",
        micro_batch="samples of a device at once",
        sequence_length="tokens of a sample",
    ),
)
"""What logs of training state, if they do."""


def training_figures(rate: str, per_device: str = "", flops: str = "") -> tuple[Figure, ...]:
    """The figures of a log of steps; `rate` and `per_device` say how a rate follows from what the tool prints, `flops`
    how the tool computes its FLOP rate."""
    found = [figures.rate("rate", "op/s", f"of the whole run: {rate}")]
    if per_device:
        found.append(figures.rate("rate_per_device", "op/s", f"of one device: {per_device}"))
    found += [
        figures.time("step", "time of a steady step"),
        _secondary(figures.time("step_p95", "time that 95 % of the steady steps do not exceed")),
        _secondary(figures.time("step_max", "time of the slowest steady step")),
        _secondary(figures.time("first_step", "time of the first step, with compilation and allocation")),
    ]
    if flops:
        found.append(figures.rate("model_flops", "flop/s", f"of one device: {flops}", is_secondary=True))
    what = "useful time over wall time: steps that were kept, over the time between the first and the last time stamp"
    return (*found, figures.rate("goodput", "1", what, is_secondary=True))


def _secondary(figure: Figure) -> Figure:
    return replace(figure, is_secondary=True)


def step_reader(
    of: Benchmark,
    tool: str,
    lines: StepLines,
    measured: Callable[[Log], Measured],
    *,
    is_from_documentation: bool = False,
) -> Reader:
    """The reader of a log of steps. A record has the definition of each of its figures."""
    return plain_reader(
        of,
        tool,
        with_definitions(of, measured),
        starts=lines.starts,
        is_from_documentation=is_from_documentation,
    )


def with_definitions(of: Benchmark, measured: Callable[[Log], Measured]) -> Callable[[Log], Measured]:
    """The same, with the definitions of the figures that were found among the notes."""

    def read(log: Log) -> Measured:
        found = measured(log)
        return replace(found, notes={**found.notes, "definitions": definitions(of, found.samples)})

    return read


def definitions(of: Benchmark, samples: Sequence[Sample]) -> dict[str, str]:
    """The definition of each figure that these samples give."""
    there = {sample.series for sample in samples}
    return {figure.name: figure.work for figure in of.figures if figure.series in there}
