"""The benchmarks: every module of this package that defines a `BENCHMARK`, or a family of them in `BENCHMARKS`. There
is no other list."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from seatrial.errors import UnknownNameError
from seatrial.model.benchmark import Benchmark, Figure
from seatrial.model.role import Role


@cache
def registry() -> dict[str, Benchmark]:
    """Name -> declaration of all benchmarks, sorted by name."""
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
        raise UnknownNameError("benchmark", name, (known for known, b in benchmarks.items() if b.program.can_run))
    return benchmarks[name]


def declared_figure(benchmark: str, figure: str) -> Figure | None:
    """The declaration of a result's figure; None if no benchmark here declares it."""
    found = registry().get(benchmark)
    return next((one for one in found.figures if one.name == figure), None) if found is not None else None


@cache
def benchmark_of(role: Role) -> str:
    """The name of the first benchmark with a figure of this role."""
    return next(name for name, found in registry().items() if any(figure.role is role for figure in found.figures))
