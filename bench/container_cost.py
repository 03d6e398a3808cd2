"""What seatrial adds to the start of a container: at most 5 ms beyond the runtime's own start.

python bench/container_cost.py [--rounds 30] [-o FILE.json]

The image is a root of one static program. In each round every runtime starts it twice, in turn first and second: by its
own command alone (subprocess), and as a repeat does (the command is made anew, its folders are mounted, the guard
starts it and reads what it used). The cost is the median of the differences.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from common import live_machine, machine_provenance, write

from seatrial.engine.contained import Contained
from seatrial.engine.starting import started
from seatrial.environments.variables import variables_with
from seatrial.launch.containers.image import image_of
from seatrial.launch.containers.runtime import SHARED, Inside, Runtime
from seatrial.launch.containers.runtimes import RUNTIMES
from seatrial.launch.containers.tiny_root import PROGRAM, STATUS, write_root
from seatrial.launch.containers.trial import tried
from seatrial.launch.local import Program, run_together

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
    (done,) = run_together([Program(command, begun.variables, folder)], 60.0)
    require(done.returncode == STATUS, done.evidence)
    return time.perf_counter() - start


def measure(runtime: Runtime, root: Path, folder: Path, rounds: int) -> dict[str, Any]:
    """Both ways, interleaved; the first round warms up."""
    pairs: list[tuple[float, float]] = []
    for number in range(rounds + 1):
        if number % 2:
            own = alone(runtime, root)
            ours = as_a_repeat(runtime, root, folder)
        else:
            ours = as_a_repeat(runtime, root, folder)
            own = alone(runtime, root)
        pairs.append((own, ours))
    owns, all_ours = zip(*pairs[1:], strict=True)
    cost_s = statistics.median(ours - own for own, ours in pairs[1:])
    return {
        "runtime": runtime.name,
        "own_start_s": statistics.median(owns),
        "as_a_repeat_s": statistics.median(all_ours),
        "cost_s": cost_s,
        "met": cost_s <= GOAL_S,
    }


def main() -> None:
    """Print a line for each runtime that starts programs here."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as name, tempfile.TemporaryDirectory() as results:
        require(write_root(Path(name)), "no static program for this processor")
        Path(name).chmod(0o755)
        for runtime in RUNTIMES.values():
            found = tried(runtime)
            if found.state != "ready":
                print(f"{runtime.name}: skipped: {found.need or found.state}")
                continue
            row = measure(runtime, Path(name), Path(results), options.rounds)
            rows.append(row)
            print(
                f"{row['runtime']}: own start {row['own_start_s'] * 1e3:.1f} ms, as a repeat "
                f"{row['as_a_repeat_s'] * 1e3:.1f} ms, cost {row['cost_s'] * 1e3:.2f} ms (goal 5 ms)"
            )
    document = {"machine": machine_provenance(live_machine()), "rounds": options.rounds, "runtimes": rows}
    write("container_cost", document, options.output)


if __name__ == "__main__":
    main()
