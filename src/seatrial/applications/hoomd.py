"""HOOMD-blue: the metadata that hoomd-benchmarks writes (JSON), and the log of a script (HOOMD 1 and 2).

The published number is the hours for "10e6 steps", which are ten million. For molecular dynamics they follow from the
steps per second. For hard-particle Monte Carlo (HPMC) they follow from the trial moves per particle: a step makes
several, so they are not the rate of steps. `** run complete **` is printed after Ctrl-C, too: a run ended if it has an
average, and that must be between the rates of its parts.

`apps.hoomd`: HOOMD-blue on the scripts of hoomd-benchmarks.
"""

from __future__ import annotations

import itertools
import math
import re

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, is_json, read_object
from seatrial.applications.reading.log import Found, Log, Printed
from seatrial.applications.reading.text import SIX_DIGITS, Pattern
from seatrial.applications.running.given_input import FORMAT_SEEN, application
from seatrial.model.benchmark.given_input import INPUT, InputCase
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "HOOMD-blue"
_LIST = re.compile(rb"^\[\s{0,200}\{", re.MULTILINE)
_BANNER = Pattern(r"HOOMD-blue v?([0-9]\S{0,60})(?: (.{0,200}))?")
_START = Pattern(r"\*\* starting run \*\*")
_COMPLETE = Pattern(r"\*\* run complete \*\*")
_STATUS = Pattern(r"Time [0-9:]{4,20} \| Step ([0-9]{1,15}) / ([0-9]{1,15}) \| TPS (\S{1,20}) \| ETA .{1,20}")
_AVERAGE = Pattern(r"Average TPS: (\S{1,20})")
_MOVES = Pattern(r"(?:notice\(2\): )?Trial moves per second: +(\S{1,20})")
_HOURS = Pattern(r"Hours to complete 10e6 steps: (\S{1,30})")
_PARTICLES = Pattern(r'(?:notice\(2\): )?Group "all" created containing ([0-9]{1,15}) particles')
_DOMAINS = Pattern(r".{0,20}n_x = ([0-9]{1,9}) n_y = ([0-9]{1,9}) n_z = ([0-9]{1,9})\.?")
_ERROR = Pattern(r".{0,20}\*\*ERROR\*\*.{0,300}")
_PRECISION = {"SINGLE": "fp32", "DOUBLE": "fp64"}
_MANY = 10e6
"""Steps of the published number: ten million, as hoomd-benchmarks computes it."""
_AN_HOUR_S = 3600.0
_SINGLE = 1e-5
"""How far numbers that were computed in single precision may differ."""
_MOST_MOVES = 1e4
"""No step of HPMC tries to move each particle so often."""


def read(data: bytes) -> ImportedFile:
    """One run of hoomd-benchmarks, or one log. Raises ParseError if it did not end, failed, holds two runs, or its
    numbers contradict each other."""
    return _read_metadata(data) if is_json(data, "user") else _read_log(data)


def _read_metadata(data: bytes) -> ImportedFile:
    document = read_object(data, _TOOL, "hoomd", "user", opening="[" if _LIST.search(data) else "{")
    build, result = document.object("hoomd"), document.object("user")
    named = "data.system_data"
    particles = _particles(document.object(named if named in document else f"hoomd.{named}"))  # HOOMD 1, or 2
    rates, moves = _rates(result), result.number("mps")
    mean = math.fsum(rates) / len(rates)
    is_hpmc = any(key.removeprefix("hoomd.").startswith("hpmc.integrate.") for key in document.values)
    if not is_hpmc and abs(moves - mean * particles) > _SINGLE * moves:
        raise document.error(
            f"{particles} particles x {mean:.6g} steps per second are not {moves:.6g} particle steps (mps)"
        )
    if not 1 / _MOST_MOVES < moves / (mean * particles) < _MOST_MOVES:
        raise document.error(
            f"mps = {moves:.6g} is impossible for {particles} particles and {mean:.6g} steps per second"
        )
    about = next(
        (
            JsonObject(_TOOL, key, found)
            for key in ("context", "device")
            if isinstance(found := document.get(key), dict)
        ),
        JsonObject(_TOOL, "", {}),
    )
    parameters: dict[str, Value] = {"method": "hpmc" if is_hpmc else "md", "particles": particles}
    if ranks := about.whole("num_ranks"):
        parameters["ranks"] = ranks
    if device := about.text("gpu"):
        parameters["device"] = device
    parameters |= _precision(build.text("hoomd_compile_flags") or "")
    samples = [
        figures.time_sample("step", 1 / mean),
        figures.rate_sample("mps", moves),
        figures.time_sample("ten_million_steps", _MANY * particles / moves),
    ]
    experiment = _experiment(samples, parameters, rates, moves / (mean * particles))
    version = build.get("hoomd_version")
    named = ".".join(map(str, version)) if isinstance(version, list) else build.text("hoomd_version") or ""
    return ImportedFile(_TOOL, named[:100], (experiment,), host=about.text("hostname"))


def _particles(system: JsonObject) -> int:
    count = system.object("particles").whole("N")
    if not count:
        raise system.error("no number of particles")
    in_box = system.number("number_density") * system.object("box").number("V")
    if abs(in_box - count) > _SINGLE * count:
        raise system.error(f"density x volume are {in_box:.6g} particles, not {count}")
    return count


def _rates(result: JsonObject) -> list[float]:
    found = result.get("tps")
    values = found if isinstance(found, list) else [found]
    rates = [JsonObject(_TOOL, "user", {"tps": value}).number("tps") for value in values]
    if not rates or not all(rates):
        raise result.error("the steps per second (tps) are missing or 0")
    return rates


class _Run(Frozen):
    """One `run()` of a script: its steps (None if unknown), its steps per second, and trial moves per second if any."""

    steps: int | None
    rate: Printed
    moves: float | None


def _read_log(data: bytes) -> ImportedFile:
    log = Log(_TOOL, data)
    banner = log.banner(_BANNER, "HOOMD-blue v2.9.0 DOUBLE HPMC_MIXED SSE SSE2")
    log.refuse(_ERROR, "HOOMD stopped with an error")
    runs = _runs(log)
    counted, samples = _series(log, runs)
    rates = [run.rate.value for run in counted]
    mean, last = math.fsum(rates) / len(rates), counted[-1]
    parameters: dict[str, Value] = {"method": "md" if last.moves is None else "hpmc"}
    particles = log.maybe(_PARTICLES, "number of particles")
    if particles is not None:
        parameters["particles"] = particles.whole(1, "the number of particles")
    if (domains := log.maybe(_DOMAINS, "decomposition")) is not None:
        parameters["ranks"] = math.prod(domains.whole(axis, "the domains") for axis in (1, 2, 3))
    if last.steps is not None:
        parameters["steps"] = last.steps
    parameters |= _precision(banner.match[2] or "")
    samples.append(figures.time_sample("step", 1 / mean, resolution=SIX_DIGITS))
    per_step = 1.0
    if last.moves is not None:
        samples.append(figures.rate_sample("mps", last.moves / last.rate.value * mean, resolution=SIX_DIGITS))
        per_step = last.moves / last.rate.value / (1.0 if particles is None else particles.number(1, "particles"))
    experiment = _experiment(samples, parameters, rates, per_step, left_out=len(runs) - len(counted))
    return ImportedFile(_TOOL, banner.text(1), (experiment,))


def _runs(log: Log) -> list[_Run]:
    starts = [start.line.number for start in log.found(_START)]
    if not starts:
        raise log.not_ended("no `** starting run **`")
    edges = itertools.pairwise([*starts, len(log.lines) + 1])
    runs: list[_Run] = []
    before: int | None = None
    for start, end in edges:
        run, before = _run(log, start, end, before)
        runs.append(run)
    return runs


def _run(log: Log, start: int, end: int, before: int | None) -> tuple[_Run, int]:
    """The run between two lines, and its last step; `before` is the last step of the run before it."""
    lines = log.lines[start - 1 : end - 1]
    status, averages = log.found(_STATUS, lines), log.found(_AVERAGE, lines)
    if not log.found(_COMPLETE, lines) or not status or not averages:
        how_far = f"step {status[-1].match[1]} of {status[-1].match[2]}" if status else "no step"
        raise log.not_ended(f"the run of line {start} has no `Average TPS` and `** run complete **` ({how_far})")
    if len(averages) > 1 or len({one.match[2] for one in status}) > 1:
        raise status[-1].error("two runs without a `** starting run **` between them")
    average = averages[0].printed(1, "the average")
    parts = [one.printed(3, "TPS") for one in status]
    least, most = (pick(part.value for part in parts) for pick in (min, max))
    slack = 1e-3 * average.value
    if not least - slack <= average.value <= most + slack:
        why = f"the average of rates from {least:g} to {most:g} steps per second is not {averages[0].match[1]}"
        raise averages[0].error(why)
    moves = log.found(_MOVES, lines)
    last = status[-1].whole(1, "the step")
    steps = None if before is None or last <= before else last - before
    return _Run(steps, average, moves[-1].number(1, "trial moves") if moves else None), last


def _series(log: Log, runs: list[_Run]) -> tuple[list[_Run], list[Sample]]:
    """The runs that count, and the time of ten million steps if the script printed it: then those runs that it is the
    mean of, else those with as many steps as the last. The others warm up."""
    hours = log.maybe(_HOURS, "time of 10e6 steps")
    if hours is None:
        last = runs[-1]
        same = [run for run in runs if run.steps == last.steps and last.steps is not None]
        return same or [last], []
    stated_s = hours.printed(1, "the hours").scaled(_AN_HOUR_S)
    for first in reversed(range(len(runs))):
        if abs(_many_steps_s(log, runs[first:], hours) - stated_s.value) <= stated_s.error + _SINGLE * stated_s.value:
            return runs[first:], [figures.time_sample("ten_million_steps", stated_s.value)]
    raise hours.error("these hours are not those of ten million (10e6) steps at the rate of the runs above")


def _many_steps_s(log: Log, runs: list[_Run], hours: Found) -> float:
    rate = math.fsum(run.rate.value for run in runs) / len(runs)
    last = runs[-1]
    if last.moves is None:
        return _MANY / rate
    particles = log.maybe(_PARTICLES, "number of particles")
    if particles is None:
        raise hours.error("the number of particles, by which these hours are computed, is not in the log")
    return _MANY * particles.number(1, "the number of particles") / (last.moves / last.rate.value * rate)


def _experiment(
    samples: list[Sample], parameters: dict[str, Value], rates: list[float], moves_per_step: float, left_out: int = 0
) -> ImportedExperiment:
    notes: dict[str, object] = {"steps_per_second": rates}
    if parameters["method"] == "hpmc" and "particles" in parameters:
        notes["moves_per_particle_and_step"] = moves_per_step
    remarks = (f"{left_out} earlier runs of the script, such as warm-up, are left out",) if left_out else ()
    return ImportedExperiment("imported.hoomd", tuple(samples), parameters, notes, remarks=remarks)


def _precision(flags: str) -> dict[str, Value]:
    found = [name for word, name in _PRECISION.items() if word in flags.split()]
    return {"precision": found[0]} if len(found) == 1 else {}


IMPORTED = figures.imported(
    "hoomd",
    "HOOMD-blue",
    "How fast did HOOMD-blue simulate?",
    (
        figures.choice("method", "molecular dynamics, or Monte Carlo of hard particles", "md", "hpmc"),
        *figures.counts(particles="particles of the system", steps="time steps of a run", ranks="processes"),
        figures.text("device", "GPU, as named in the file"),
        figures.choice("precision", "precision of the build", "fp64", "fp32"),
    ),
    (
        figures.time(
            "step",
            "elapsed time of a time step, by the mean rate of the runs",
            lambda params, step_s: f"{1 / step_s:.4g} steps/s",
        ),
        figures.rate("mps", "op/s", "particle steps (md) or trial moves (hpmc), of all particles"),
        figures.time(
            "ten_million_steps",
            "elapsed time of 10e6 = 10 million steps (md), or trial moves of each particle (hpmc)",
            lambda params, many_s: f"{many_s / 3600:.4g} h",
        ),
    ),
)

READER = figures.Reader("hoomd", read, (_BANNER.text,))


_REPOSITORY = "https://github.com/joaander/hoomd-benchmarks"

BENCHMARK = application(
    IMPORTED,
    "How fast does HOOMD-blue simulate?",
    tool="HOOMD-blue",
    programs=("hoomd",),
    install="install HOOMD-blue 1 or 2 (Spack: spack install hoomd-blue) and put hoomd on PATH",
    arguments=lambda params: [str(params[INPUT])],
    output="metadata.json",
    cases=(
        InputCase("hexagon", "1,048,576 hard hexagons", f"{_REPOSITORY}, folder hexagon", "bmark.py"),
        InputCase("quasicrystal", "100,000 particles", f"{_REPOSITORY}, folder quasicrystal", "bmark.py"),
    ),
    stated={"ranks": "ranks"},
    evidence=FORMAT_SEEN,
)
