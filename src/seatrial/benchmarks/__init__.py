"""The benchmarks: every module of this package and of `seatrial.applications` that defines a `BENCHMARK`, a family of
them in `BENCHMARKS`, or one that is only imported in `IMPORTED`; those of other packages with the entry point
`seatrial.benchmarks`; and those that users declare in files.

Modules are found by the names of the packages that hold them, so this package imports nothing of the applications,
which are built on it.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from types import ModuleType

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark, Figure, Role
from seatrial.model.benchmark.declaration import FOLDER, PREFIX
from seatrial.model.benchmark.power import with_power

_PACKAGES = ("seatrial.benchmarks", "seatrial.applications")
_ENTRY_POINTS = "seatrial.benchmarks"
_NAMES = ("BENCHMARK", "IMPORTED")
_log = logging.getLogger(__name__)


class _Declared:
    """The benchmarks that users declare: `files`, from declaration files; `stored`, from results folders, which cannot
    be run."""

    files: Mapping[str, Benchmark] = {}
    stored: Mapping[str, Benchmark] = {}


def registry() -> Mapping[str, Benchmark]:
    """Name -> declaration of all benchmarks, sorted by name."""
    return _all()


@cache
def _all() -> Mapping[str, Benchmark]:
    known = {**_Declared.stored, **_Declared.files, **_packaged()}
    return {name: with_power(known[name]) for name in sorted(known)}


@cache
def _packaged() -> Mapping[str, Benchmark]:
    """Those of our packages and of installed ones."""
    found: dict[str, Benchmark] = {}
    for package in _PACKAGES:
        for module_info in pkgutil.walk_packages(importlib.import_module(package).__path__, prefix=f"{package}."):
            if not module_info.ispkg:
                found |= {one.name: one for one in _in_module(importlib.import_module(module_info.name))}
    return {**_of_other_packages(found), **dict(sorted(found.items()))}


def _in_module(module: ModuleType) -> Iterator[Benchmark]:
    for benchmark in (*(getattr(module, name, None) for name in _NAMES), *getattr(module, "BENCHMARKS", ())):
        if isinstance(benchmark, Benchmark):
            yield benchmark


def _of_other_packages(ours: Mapping[str, Benchmark]) -> dict[str, Benchmark]:
    """The benchmarks of installed packages: each entry point names a module with a BENCHMARK or BENCHMARKS. One that
    fails to load, or takes the name of another benchmark, is reported and left out."""
    from importlib.metadata import entry_points

    found: dict[str, Benchmark] = {}
    for entry in entry_points(group=_ENTRY_POINTS):
        try:
            benchmarks = list(_in_module(entry.load()))
        except Exception as error:  # whatever another package's module raises
            _log.warning("the benchmarks of %s cannot be loaded: %r", entry.value, error)
            continue
        for benchmark in benchmarks:
            if benchmark.name in ours or benchmark.name in found:
                _log.warning("%s: the benchmark %s exists already; it is left out", entry.value, benchmark.name)
            else:
                found[benchmark.name] = benchmark
    return found


def declare(benchmarks: Iterable[Benchmark]) -> None:
    """Make these the benchmarks that are declared in files, in place of earlier ones."""
    _Declared.files = {benchmark.name: benchmark for benchmark in benchmarks}
    _all.cache_clear()


def know_stored(benchmarks: Iterable[Benchmark]) -> None:
    """Add benchmarks whose declarations were stored with results."""
    _Declared.stored = {**_Declared.stored, **{benchmark.name: benchmark for benchmark in benchmarks}}
    _all.cache_clear()


def benchmark_named(name: str) -> Benchmark:
    """The benchmark of that name; UnknownNameError names the nearest."""
    benchmarks = registry()
    if name not in benchmarks:
        unknown = UnknownNameError("benchmark", name, (known for known, b in benchmarks.items() if b.program.can_run))
        if name.startswith(PREFIX) and not any(near.startswith(PREFIX) for near in unknown.nearest):
            todo = f"give its declaration file, or put that in ./{FOLDER} or a folder of the site file"
            raise UsageError(unknown.message, todo)
        if "=" in name and not unknown.nearest:
            raise UsageError(unknown.message, f"each setting needs its own option: --set {name}")
        raise unknown
    return benchmarks[name]


def declared_figure(benchmark: str, figure: str) -> Figure | None:
    """The declaration of a result's figure; None if no benchmark here declares it."""
    found = registry().get(benchmark)
    return next((one for one in found.figures if one.name == figure), None) if found is not None else None


@cache
def benchmark_of(role: Role) -> str:
    """The name of the first benchmark with a figure of this role."""
    return next(name for name, found in _packaged().items() if any(figure.role is role for figure in found.figures))
