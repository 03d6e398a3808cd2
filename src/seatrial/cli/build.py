"""`seatrial build`."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks import benchmark_named, registry
from seatrial.engine.environments import native_environment
from seatrial.environments.build import build
from seatrial.machine.live import discover_live
from seatrial.model.benchmark import Native
from seatrial.report.units import show


def build_command(targets: Sequence[str]) -> int:
    """Build the programs of these benchmarks (of all, when none is named) and print where they lie."""
    benchmarks = [benchmark_named(name) for name in targets] or list(registry().values())
    environment = native_environment(discover_live())
    print(f"{environment.document()['name']} ({environment.target.resolution})")
    for benchmark in benchmarks:
        if not isinstance(benchmark.program, Native):
            continue  # installed by the site, or not here at all
        built = build(environment, benchmark.program.source)
        how = "from the cache" if built.from_cache else f"built in {show(built.seconds, 's')}"
        print(f"{benchmark.name}: {built.path} ({how})")
    return 0
