"""The benchmarks: every module below this package that has a `BENCHMARK`, or a family of them in `BENCHMARKS`. Nothing
else lists them."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from seatrial.errors import UnknownNameError
from seatrial.model.benchmark import Benchmark, Figure
from seatrial.model.role import Role


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


def declared_figure(benchmark: str, figure: str) -> Figure | None:
    """The declaration behind a figure of some result; None where no benchmark of ours has it."""
    found = registry().get(benchmark)
    return next((one for one in found.figures if one.name == figure), None) if found is not None else None


@cache
def benchmark_of(role: Role) -> str:
    """The name of the (first) benchmark that measures this: what to run for it."""
    return next(name for name, found in registry().items() if any(figure.role is role for figure in found.figures))
