"""What seatrial adds to the start of a container: at most 5 ms beyond the runtime's own start.

python bench/container_cost.py [--rounds 30] [-o FILE.json]

The image is a root of one static program. In each round every runtime starts it twice, in turn first and second: by its
own command alone (subprocess), and as a repeat does (the command is made anew, its folders are mounted, the guard
starts it and reads what it used). The cost is the difference of the fastest of both: on a machine with other load, the
median also has the time that the scheduler lets a new session wait (sched_autogroup), which is not ours. What the
guard adds to a program without a container (`bare`) is a part of it.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from common import live_machine, machine_provenance, write

from seatrial.environments.compiler import variables_with
from seatrial.launch.local import LocalProgram, run_together
from seatrial.places.contained import Contained, started
from seatrial.places.containers.image import image_of
from seatrial.places.containers.runtime import SHARED, Inside, Runtime
from seatrial.places.containers.runtimes import RUNTIMES
from seatrial.places.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.places.containers.trial import tried

GOAL_S = 0.005


def require(holds: bool, why: str) -> None:
    """End the script where something cannot be measured."""
    if not holds:
        raise SystemExit(why)


def alone(runtime: Runtime, root: Path) -> float:
    """Seconds of the runtime's own command."""
    command = [*runtime.prefix(Inside(image_of(str(root)))), PROGRAM]
    variables = variables_with([*runtime.variables().items(), ("TMPDIR", str(SHARED))])
    start = time.perf_counter()
    done = subprocess.run(command, env=variables, capture_output=True, check=False)
    require(done.returncode == STATUS, done.stderr.decode("utf-8", "replace"))
    return time.perf_counter() - start


def as_a_repeat(runtime: Runtime, root: Path, folder: Path) -> float:
    """Seconds of the same as seatrial starts it."""
    container = Contained(image_of(str(root)), runtime, "")
    start = time.perf_counter()
    begun = started(None, None, container, (), {}, [folder, folder])
    command = [*begun.before, *begun.words([PROGRAM])]
    (done,) = run_together([LocalProgram(command, begun.variables, folder)], 60.0)
    require(done.returncode == STATUS, done.evidence)
    return time.perf_counter() - start


def alone_bare(root: Path) -> float:
    """Seconds of the program without a container."""
    start = time.perf_counter()
    done = subprocess.run([f"{root}{PROGRAM}"], capture_output=True, check=False)
    require(done.returncode == STATUS, done.stderr.decode("utf-8", "replace"))
    return time.perf_counter() - start


def as_a_repeat_bare(root: Path, folder: Path) -> float:
    """Seconds of the same as seatrial starts it."""
    start = time.perf_counter()
    begun = started(None, None, None, (), {}, [folder])
    (done,) = run_together([LocalProgram([f"{root}{PROGRAM}"], begun.variables, folder)], 60.0)
    require(done.returncode == STATUS, done.evidence)
    return time.perf_counter() - start


def measure(name: str, own: Callable[[], float], ours: Callable[[], float], rounds: int) -> dict[str, Any]:
    """Both ways, interleaved; the first round warms up."""
    seconds: dict[Callable[[], float], list[float]] = {own: [], ours: []}
    for number in range(rounds + 1):
        for way in (own, ours) if number % 2 else (ours, own):
            seconds[way].append(way())
    owns, all_ours = seconds[own][1:], seconds[ours][1:]
    cost_s = min(all_ours) - min(owns)
    return {
        "runtime": name,
        "own_start_s": {"best": min(owns), "median": statistics.median(owns)},
        "as_a_repeat_s": {"best": min(all_ours), "median": statistics.median(all_ours)},
        "cost_s": cost_s,
        "met": cost_s <= GOAL_S,
    }


def told(row: dict[str, Any]) -> str:
    """A row as a line."""
    own, ours = row["own_start_s"], row["as_a_repeat_s"]
    return (
        f"{row['runtime']}: own start {own['best'] * 1e3:.2f} ms (median {own['median'] * 1e3:.1f}), as a repeat "
        f"{ours['best'] * 1e3:.2f} ms ({ours['median'] * 1e3:.1f}), cost {row['cost_s'] * 1e3:.2f} ms (goal 5 ms)"
    )


def main() -> None:
    """Print a line for each runtime that starts programs here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = []
    with (
        tempfile.TemporaryDirectory() as name,
        tempfile.TemporaryDirectory() as results,
        tempfile.TemporaryDirectory() as trials,
    ):
        root, folder = Path(name), Path(results)
        require(write_root(root), "no static program for this processor")
        root.chmod(0o755)
        rows.append(measure("bare", partial(alone_bare, root), partial(as_a_repeat_bare, root, folder), options.rounds))
        print(told(rows[-1]))
        for runtime in RUNTIMES.values():
            trial = Path(trials, runtime.name)
            trial.mkdir()
            found = tried(runtime, trial)
            if found.state != "ready":
                print(f"{runtime.name}: skipped: {found.need or found.state}")
                continue
            own, ours = partial(alone, runtime, root), partial(as_a_repeat, runtime, root, folder)
            rows.append(measure(runtime.name, own, ours, options.rounds))
            print(told(rows[-1]))
    document = {"machine": machine_provenance(live_machine()), "rounds": options.rounds, "runtimes": rows}
    write("container_cost", document, options.output)


if __name__ == "__main__":
    main()
