"""mpi.* compared with the OSU and Intel MPI Benchmarks: interleaved rounds on each MPI, best of rounds.

All programs of a round use the launcher and the binding that seatrial uses for its own; their order rotates from round
to round. What each measures:

* ping-pong: half the round trip. OSU: mean of 10,000 trips, with two clock readings in each; IMB PingPong: mean of
  1,000; ours: the median of samples of a millisecond. Theirs are printed with two decimals (10 ns).
* bandwidth: a window of 64 nonblocking sends and one reply, from one buffer to another. OSU: osu_bw; IMB: Uniband.
  Ours runs without huge pages here, like theirs, because copies through the kernel are faster with huge pages.
* collectives: mean over ranks. OSU has a barrier before each call and times only the call, IMB calls back to back;
  ours follows `start` in the table below.

The best of the rounds is compared, because disturbances on a shared machine only increase times (and decrease rates);
the ratio of the medians of the rounds is also reported. Collectives: all programs give the mean over their calls and
ranks, of which ours is the median over samples of a millisecond. A ping-pong is also given as a multiple of the
cache-line bounce of the same run: two rounds with different bounces ran on different pairs of the host's cores.

    python bench/mpi_rivals.py --osu openmpi=DIR --osu mpich=DIR --imb openmpi=FILE --imb mpich=FILE [--rounds 20]
                               [--mpi openmpi --mpi mpich] [--only ping-pong ...] [-o docs/results/mpi_rivals.json]

DIR is a folder that contains OSU's programs, FILE is IMB-MPI1, both built with that MPI. A rival that is not given, or
that fails, is listed under `absent` with the reason. Build rivals with the compiler and flags that seatrial uses (-O3
and its -march; with -frecord-gcc-switches the result includes them), and remove -O0 from IMB's Makefile.
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
from one_point import measure_point

from seatrial.applications.imb import read_imb
from seatrial.applications.osu import read_osu
from seatrial.engine.ready import Ready
from seatrial.engine.repeat import command_of, variables_of
from seatrial.environments.mpi import find_mpis
from seatrial.errors import ParseError
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedFile
from seatrial.model.results.record import readings

_LONGEST_S = 120.0


@dataclass(frozen=True, slots=True)
class Rival:
    """A program with its arguments, and the series of its table to compare (as the importer names it).
    `counts_messages`: the series is a message rate, which unlike MB/s is unambiguous."""

    program: str
    arguments: tuple[str, ...]
    series: str
    counts_messages: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """A quantity that all programs measure. `goal`: bound on ours over the better rival (at most for times, at least
    for rates)."""

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
        "allreduce-64KiB",
        "mpi.allreduce",
        {"size_B": "64KiB", "ranks": "2", "datatype": "MPI_FLOAT", "start": "barrier"},
        "time_mean",
        Rival("osu_allreduce", ("-m", "65536:65536", "-T", "mpi_float"), "time_mean"),
        Rival("Allreduce", ("-npmin", "2", "-msglog", "16:16"), "time_mean"),
        goal=1.20,
        size_B=64 << 10,
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
"""To add a comparison, add an entry here."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The figure of one program in one round; for our ping-pong, also as a multiple of the cache-line bounce."""

    value: float
    bounces: float | None = None


class FailedError(Exception):
    """A program produced no figure; the message states why."""


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
    """Run a rival once, launched like our program."""
    with tempfile.TemporaryDirectory() as folder:
        ours_starts = command_of(item, Path(folder))
        before = ours_starts[: ours_starts.index(str(item.program.path))]
        before = [word for word in before if word != "-print-all-exitcodes"]  # would follow the table
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


def mpi_paths(options: Sequence[str]) -> dict[str, Path]:
    """`["openmpi=PATH", ...]` as MPI -> path."""
    found: dict[str, Path] = {}
    for option in options:
        mpi, equals, path = option.partition("=")
        if not equals or not Path(path).exists():
            raise SystemExit(f"{option!r}: expected MPI=PATH with an existing path")
        found[mpi] = Path(path)
    return found


def osu_program(folder: Path | None, name: str) -> Path | None:
    """The program of this name below a folder, ignoring libtool scripts of the same name."""
    for path in sorted(folder.rglob(name)) if folder is not None else ():
        if path.is_file() and os.access(path, os.X_OK) and path.read_bytes()[:4] == b"\x7fELF":
            return path
    return None


Runner = Callable[[], Reading]


@dataclass(frozen=True, slots=True)
class Contest:
    """One comparison on one MPI: the programs that run, and those that do not, with the reason."""

    comparison: Comparison
    item: Ready
    runners: dict[str, Runner]
    absent: dict[str, str]


def contest(comparison: Comparison, mpi: str, osu: Path | None, imb: Path | None, machine: Machine) -> Contest:
    """Build our program and find the rivals of one comparison."""
    item = ready(machine, comparison.benchmark, **{"environment.mpi": mpi, **comparison.settings})
    runners: dict[str, Runner] = {"seatrial": lambda: ours(item, comparison, machine)}
    absent: dict[str, str] = {}
    program = osu_program(osu, comparison.osu.program)
    if program is None:
        absent["osu"] = f"{comparison.osu.program}: no path given, or not found below it"
    else:
        command = [str(program), *comparison.osu.arguments]
        runners["osu"] = lambda: theirs(item, comparison.osu, command, read_osu, comparison.size_B)
    if imb is None:
        absent["imb"] = f"{comparison.imb.program}: no path of IMB-MPI1 given"
    else:
        words = [str(imb), comparison.imb.program, *comparison.imb.arguments]
        runners["imb"] = lambda: theirs(item, comparison.imb, words, read_imb, comparison.size_B)
    return Contest(comparison, item, runners, absent)


def compete(contests: Sequence[Contest], rounds: int) -> list[dict[str, list[Reading]]]:
    """Run each program of each contest once per round; a program that fails has no reading in that round."""
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
    """Best and median of each program, and ours over the better rival."""
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
    medians = {name: median(each) for name, each in values.items()}
    others = [value for name, value in medians.items() if name != "seatrial"]
    bounces = [reading.bounces for reading in found["seatrial"] if reading.bounces is not None]
    return {
        "what": comparison.name,
        "unit": "B/s" if comparison.higher_is_better else "s",
        "best": best,
        "median": medians,
        "ours_over_better": ratio,
        "ours_over_better_of_medians": medians["seatrial"] / best_of(others) if ratio is not None else None,
        "goal": comparison.goal,
        "met": met,
        **({"bounces": bounces} if bounces else {}),
        "absent": one.absent,
        "rounds": values,
    }


def shown(mpi: str, result: Mapping[str, Any]) -> str:
    """One line about a comparison."""
    scale, unit = (1e-9, "GB/s") if result["unit"] == "B/s" else (1e9, "ns")
    best = "  ".join(
        f"{name} {value * scale:.4g} {unit} (median {result['median'][name] * scale:.4g})"
        for name, value in result["best"].items()
    )
    ratio, sign = result["ours_over_better"], ">=" if unit == "GB/s" else "<="
    compared = (
        "no rival"
        if ratio is None
        else f"best over better best {ratio:.3f} (goal {sign} {result['goal']:.2f}), "
        f"of medians {result['ours_over_better_of_medians']:.3f}"
    )
    return f"{mpi}: {result['what']}: best of rounds: {best}; {compared}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--osu", action="append", default=[], metavar="MPI=DIR", help="folder of OSU's programs, built with this MPI"
    )
    parser.add_argument("--imb", action="append", default=[], metavar="MPI=FILE", help="IMB-MPI1, built with this MPI")
    parser.add_argument("--mpi", action="append", default=[], help="an MPI by name (default: all)")
    parser.add_argument("--only", action="append", default=[], choices=[c.name for c in COMPARISONS])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = _arguments()
    osu, imb = mpi_paths(options.osu), mpi_paths(options.imb)
    machine = live_machine()
    chosen = [c for c in COMPARISONS if not options.only or c.name in options.only]
    document: dict[str, Any] = {}
    for mpi in find_mpis():
        if options.mpi and mpi.name not in options.mpi:
            continue
        contests = [contest(c, mpi.name, osu.get(mpi.name), imb.get(mpi.name), machine) for c in chosen]
        for one in contests:
            for name, why in one.absent.items():
                print(f"{mpi.name}: {one.comparison.name}: {name} skipped: {why}")
        document.setdefault("provenance", provenance(machine, contests[0].item))
        found = compete(contests, options.rounds)
        results = [summary(one, of) for one, of in zip(contests, found, strict=True)]
        programs = {p for c in chosen if (p := osu_program(osu.get(mpi.name), c.osu.program))} | {
            path for path in (imb.get(mpi.name),) if path
        }
        document[mpi.name] = {
            "mpi": mpi.document(),
            "rivals": [rival_provenance(path) for path in sorted(programs)],
            "results": results,
        }
        for result in results:
            print(shown(mpi.name, result))
    write("mpi_rivals", document, options.output)


if __name__ == "__main__":
    main()
