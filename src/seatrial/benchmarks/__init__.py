"""The benchmarks: every module below this package that has a `BENCHMARK`, or a family of them in `BENCHMARKS`. Nothing
else lists them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from seatrial.errors import UnknownNameError
from seatrial.model.benchmark import Benchmark


@cache
def registry() -> dict[str, Benchmark]:
    """Name -> declaration of all benchmarks, by name."""
    found: dict[str, Benchmark] = {}
    for module_info in pkgutil.walk_packages(__path__, prefix=f"{__name__}."):
        if module_info.ispkg:
            continue
        module = importlib.import_module(module_info.name)
        for benchmark in (getattr(module, "BENCHMARK", None), *getattr(module, "BENCHMARKS", ())):
            if isinstance(benchmark, Benchmark):
                found[benchmark.name] = benchmark
    return dict(sorted(found.items()))


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of that name; UnknownNameError names the nearest."""
    benchmarks = registry()
    if name not in benchmarks:
        raise UnknownNameError("benchmark", name, benchmarks)
    return benchmarks[name]
