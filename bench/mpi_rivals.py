"""mpi.* beside the OSU micro-benchmarks and Intel MPI Benchmarks: interleaved rounds on each MPI, best of rounds.

All programs of a round are started by the launcher, and with the binding, with which seatrial starts its own; their
order turns from round to round. What each counts:

* ping-pong: half the round trip. OSU: mean of 10,000 trips, two readings of the clock in each; IMB PingPong: mean of
  1,000; ours: the median of samples of a millisecond. Theirs are printed with two decimals (10 ns).
* bandwidth: a window of 64 non-blocking sends and one answer, from one buffer into another. OSU: osu_bw; IMB: Uniband.
  Ours is run without huge pages here, as theirs are: copies through the kernel are faster with them.
* collectives: mean over ranks. OSU has a barrier before each call and times the call alone, IMB calls back to back;
  ours does as `start` in the table below says.

The best of the rounds is compared, since a figure of a shared machine is only ever disturbed upwards (downwards for a
rate); the median of the rounds stands beside it. A ping-pong is also told as a multiple of the cache line bounce of the
same run: two rounds whose bounces differ ran on different pairs of the host's cores.

    python bench/mpi_rivals.py --osu openmpi=DIR --osu mpich=DIR --imb openmpi=FILE --imb mpich=FILE [--rounds 20]
                               [--mpi openmpi --mpi mpich] [--only ping-pong ...] [-o docs/results/mpi_rivals.json]

DIR is a folder below which OSU's programs lie, FILE an IMB-MPI1, both built with that MPI. A rival that is not given,
or that fails, is named as absent. Rivals should be built with the compiler and flags that seatrial uses (-O3 and its
-march; -frecord-gcc-switches tells them in the result); IMB's Makefile says -O0, which must be taken out.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from common import live_machine, provenance, ready, rival_provenance, write

from seatrial.engine.prepare import Ready
from seatrial.engine.repeat import command_of, variables_of
from seatrial.environments.mpi import find_mpis
from seatrial.errors import ParseError
from seatrial.imports.imb import read_imb
from seatrial.imports.osu import read_osu
from seatrial.interface.point import measure_point
from seatrial.model.imported import ImportedFile
from seatrial.model.machine import Machine
from seatrial.model.reading import readings

_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class Rival:
    """A program with its arguments, and the series of its table that is compared (as the importer names it). A number
    of messages is what is told exactly where nobody can say what a megabyte is: `counts_messages`."""

    program: str
    arguments: tuple[str, ...]
    series: str
    counts_messages: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """One thing that all measure. `goal`: ours over the better rival, at most for a time, at least for a rate."""

    name: str
    benchmark: str
    settings: Mapping[str, str]
    figure: str
    osu: Rival
    imb: Rival
    goal: float
    higher_is_better: bool = False
    size_B: int | None = 8


_8_B = ("-m", "8:8")
_LOG_8_B = ("-npmin", "2", "-msglog", "3:3")

COMPARISONS = (
    Comparison(
        "ping-pong",
        "mpi.latency",
        {"size_B": "8", "huge_pages": "false"},
        "one_way",
        Rival("osu_latency", _8_B, "one_way"),
        Rival("PingPong", _LOG_8_B, "one_way"),
        goal=1.15,
    ),
    Comparison(
        "bandwidth",
        "mpi.bandwidth",
        {"size_B": "1MiB", "huge_pages": "false"},
        "bandwidth",
        Rival("osu_bw", ("-m", "1048576:1048576"), "bandwidth"),
        Rival("Uniband", ("-npmin", "2", "-msglog", "20:20"), "message_rate", counts_messages=True),
        goal=0.90,
        higher_is_better=True,
        size_B=1 << 20,
    ),
    Comparison(
        "allreduce",
        "mpi.allreduce",
        {"size_B": "8", "ranks": "2", "datatype": "MPI_FLOAT", "start": "barrier"},
        "time_mean",
        Rival("osu_allreduce", (*_8_B, "-T", "mpi_float"), "time_mean"),
        Rival("Allreduce", _LOG_8_B, "time_mean"),
        goal=1.20,
    ),
    Comparison(
        "alltoall",
        "mpi.alltoall",
        {"size_B": "8", "ranks": "2", "start": "barrier"},
        "time_mean",
        Rival("osu_alltoall", _8_B, "time"),
        Rival("Alltoall", _LOG_8_B, "time_mean"),
        goal=1.20,
    ),
    Comparison(
        "barrier",
        "mpi.barrier",
        {"ranks": "2", "start": "back-to-back"},
        "time_mean",
        Rival("osu_barrier", (), "time"),
        Rival("Barrier", ("-npmin", "2"), "time_mean"),
        goal=1.20,
        size_B=None,
    ),
)
"""What is compared. A line more is all that another comparison needs."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The figure of one program in one round, and for a ping-pong of ours how many bounces of a line that is."""

    value: float
    bounces: float | None = None


class FailedError(Exception):
    """A program that gave no figure, and why."""


def ours(item: Ready, comparison: Comparison, machine: Machine) -> Reading:
    """One repeat of our program: its figure."""
    record = measure_point(item, machine)
    if not record.outcome.is_ok:
        raise FailedError(f"{record.outcome.state}: {record.outcome.reason}")
    found = {
        r.figure.name: r.value for r in readings(item.point.benchmark, machine, item.point.parameters, record.samples)
    }
    return Reading(found[comparison.figure], found.get("bounces"))


def theirs(
    item: Ready, rival: Rival, command: Sequence[str], read: Callable[[bytes], ImportedFile], size_B: int | None
) -> Reading:
    """One run of a rival, started as our program is."""
    with tempfile.TemporaryDirectory() as folder:
        ours_starts = command_of(item, Path(folder))
        before = ours_starts[: ours_starts.index(str(item.built.path))]
        variables = variables_of(item, Path(folder))
        try:
            done = subprocess.run(
                [*before, *command], capture_output=True, env=variables, cwd=folder, timeout=_LONGEST_S, check=True
            )
            text = read(done.stdout)
        except subprocess.CalledProcessError as error:
            raise FailedError(
                f"exit status {error.returncode}: {error.stderr.decode('utf-8', 'replace')[-500:]}"
            ) from error
        except (subprocess.TimeoutExpired, ParseError, OSError) as error:
            raise FailedError(str(error)[:500]) from error
    for experiment in text.experiments:
        for sample in experiment.samples:
            if sample.series == rival.series and (size_B is None or sample.point.get("size_B") == size_B):
                amount = sample.work.get("bytes", sample.work.get("amount"))
                if amount is None:
                    return Reading(sample.elapsed_s)
                each = size_B if rival.counts_messages and size_B is not None else 1
                return Reading(each * amount / sample.elapsed_s)
    raise FailedError(f"its output has no {rival.series} of {size_B} B")


def _paths(options: Sequence[str]) -> dict[str, Path]:
    """`["openmpi=PATH", ...]` as MPI -> path."""
    found: dict[str, Path] = {}
    for option in options:
        mpi, equals, path = option.partition("=")
        if not equals or not Path(path).exists():
            raise SystemExit(f"{option!r} is not MPI=PATH of something that is there")
        found[mpi] = Path(path)
    return found


def _osu_program(folder: Path | None, name: str) -> Path | None:
    """The program of this name below a folder; libtool's scripts of the same name are none."""
    for path in sorted(folder.rglob(name)) if folder is not None else ():
        if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF":
            return path
    return None


Runner = Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Contest:
    """One comparison on one MPI: who takes part, and who is absent and why."""

    comparison: Comparison
    item: Ready
    runners: dict[str, Runner]
    absent: dict[str, str]


def contest(comparison: Comparison, mpi: str, osu: Path | None, imb: Path | None, machine: Machine) -> Contest:
    """The programs of one comparison, ours built."""
    item = ready(machine, comparison.benchmark, **{"environment.mpi": mpi, **comparison.settings})
    runners: dict[str, Runner] = {"seatrial": lambda: ours(item, comparison, machine)}
    absent: dict[str, str] = {}
    program = _osu_program(osu, comparison.osu.program)
    if program is None:
        absent["osu"] = f"{comparison.osu.program}: no path was given, or there is none below it"
    else:
        command = [str(program), *comparison.osu.arguments]
        runners["osu"] = lambda: theirs(item, comparison.osu, command, read_osu, comparison.size_B)
    if imb is None:
        absent["imb"] = f"{comparison.imb.program}: no path of an IMB-MPI1 was given"
    else:
        words = [str(imb), comparison.imb.program, *comparison.imb.arguments]
        runners["imb"] = lambda: theirs(item, comparison.imb, words, read_imb, comparison.size_B)
    return Contest(comparison, item, runners, absent)


def compete(contests: Sequence[Contest], rounds: int) -> list[dict[str, list[Reading]]]:
    """Each program of each contest once in a round; who fails in a round has no reading in it."""
    found: list[dict[str, list[Reading]]] = [{name: [] for name in c.runners} for c in contests]
    for number in range(rounds):
        for of, one in zip(found, contests, strict=True):
            names = list(one.runners)
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                try:
                    of[name].append(one.runners[name]())
                except FailedError as problem:
                    one.absent[name] = str(problem)
                    print(f"{one.comparison.name}: {name} in round {number + 1}: {problem}")
    return found


def summary(one: Contest, found: Mapping[str, Sequence[Reading]]) -> dict[str, Any]:
    """Best and median of each, and ours over the better rival."""
    comparison = one.comparison
    best_of = max if comparison.higher_is_better else min
    values = {name: [reading.value for reading in each] for name, each in found.items() if each}
    best = {name: best_of(each) for name, each in values.items()}
    rivals = [value for name, value in best.items() if name != "seatrial"]
    ratio = best["seatrial"] / best_of(rivals) if rivals and "seatrial" in best else None
    met = (
        None
        if ratio is None
        else (ratio >= comparison.goal if comparison.higher_is_better else ratio <= comparison.goal)
    )
    bounces = [reading.bounces for reading in found["seatrial"] if reading.bounces is not None]
    return {
        "what": comparison.name,
        "unit": "B/s" if comparison.higher_is_better else "s",
        "best": best,
        "median": {name: median(each) for name, each in values.items()},
        "ours_over_better": ratio,
        "goal": comparison.goal,
        "met": met,
        **({"bounces": bounces} if bounces else {}),
        "absent": one.absent,
        "rounds": values,
    }


def _shown(mpi: str, result: Mapping[str, Any]) -> str:
    scale, unit = (1e-9, "GB/s") if result["unit"] == "B/s" else (1e9, "ns")
    best = "  ".join(f"{name} {value * scale:.4g} {unit}" for name, value in result["best"].items())
    ratio, sign = result["ours_over_better"], ">=" if unit == "GB/s" else "<="
    told = "no rival" if ratio is None else f"ours / better {ratio:.3f} (goal {sign} {result['goal']:.2f})"
    return f"{mpi}: {result['what']}: {best}; {told}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osu", action="append", default=[], metavar="MPI=DIR", help="OSU's programs for an MPI")
    parser.add_argument("--imb", action="append", default=[], metavar="MPI=FILE", help="an IMB-MPI1 for an MPI")
    parser.add_argument("--mpi", action="append", default=[], help="an MPI by its name; all that are found without it")
    parser.add_argument("--only", action="append", default=[], choices=[c.name for c in COMPARISONS])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = _arguments()
    osu, imb = _paths(options.osu), _paths(options.imb)
    machine = live_machine()
    chosen = [c for c in COMPARISONS if not options.only or c.name in options.only]
    document: dict[str, Any] = {}
    for mpi in find_mpis():
        if options.mpi and mpi.name not in options.mpi:
            continue
        contests = [contest(c, mpi.name, osu.get(mpi.name), imb.get(mpi.name), machine) for c in chosen]
        for one in contests:
            for name, why in one.absent.items():
                print(f"{mpi.name}: {one.comparison.name}: {name} is absent: {why}")
        document.setdefault("provenance", provenance(machine, contests[0].item))
        found = compete(contests, options.rounds)
        results = [summary(one, of) for one, of in zip(contests, found, strict=True)]
        programs = {p for c in chosen if (p := _osu_program(osu.get(mpi.name), c.osu.program))} | {
            path for path in (imb.get(mpi.name),) if path
        }
        document[mpi.name] = {
            "mpi": mpi.document(),
            "rivals": [rival_provenance(path) for path in sorted(programs)],
            "results": results,
        }
        for result in results:
            print(_shown(mpi.name, result))
    write("mpi_rivals", document, options.output)


if __name__ == "__main__":
    main()
