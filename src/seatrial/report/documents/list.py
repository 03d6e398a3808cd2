"""`seatrial.list/1`: what can be measured here, and what with, as one JSON object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from seatrial.model.benchmark import Benchmark
from seatrial.model.machine import Machine
from seatrial.model.mpi import Mpi
from seatrial.model.site import SiteEnvironment
from seatrial.report.units import written


@dataclass(frozen=True, slots=True)
class Tools:
    """What programs can be built with here, of each the one that is used first.

    `runtimes` are MPI libraries without mpi.h, each with what it needs. `missing` says of environments of the site, by
    their names, why they cannot be used.
    """

    compilers: Sequence[str] = ()
    mpis: Sequence[Mpi] = ()
    runtimes: Sequence[tuple[Mpi, str]] = ()
    environments: Sequence[SiteEnvironment] = ()
    missing: Mapping[str, str] | None = None


def list_document(
    benchmarks: Iterable[Benchmark], machine: Machine, tools: Tools, missing: Mapping[str, str]
) -> dict[str, Any]:
    """The object that CONTRACT names, with compilers, MPI libraries and environments in order of preference: the first
    is used.

    `missing` says of benchmarks whose program cannot be had here what they lack.
    """
    return {
        "schema": "seatrial.list/1",
        "compilers": list(tools.compilers),
        "mpis": [
            *(_mpi(mpi, None) for mpi in tools.mpis),
            *(_mpi(mpi, need) for mpi, need in tools.runtimes),
        ],
        "environments": list(_environments(tools)),
        "benchmarks": [_benchmark(benchmark, machine, missing.get(benchmark.name)) for benchmark in benchmarks],
    }


def _mpi(mpi: Mpi, need: str | None) -> dict[str, Any]:
    return {
        "name": mpi.name,
        "title": mpi.title,
        "family": mpi.family.value,
        "version": mpi.version,
        "library": str(mpi.library),
        "build_id": mpi.build_id,
        "launcher": None if mpi.launcher is None else str(mpi.launcher),
        "generic": mpi.is_generic,
        "found": mpi.found,
        "state": "ready" if need is None else "runtime-only",
        "need": need,
    }


def _environments(tools: Tools) -> Iterator[dict[str, Any]]:
    """The site's own, then one for each MPI library with the first compiler; without MPI that compiler alone."""
    missing = tools.missing or {}
    known = {mpi.name for mpi in tools.mpis}
    of_site = {environment.name for environment in tools.environments}
    first = tools.compilers[0] if tools.compilers else None
    for environment in tools.environments:
        yield {
            "name": environment.name,
            "site": True,
            "compiler": environment.compiler or first,
            "flags": list(environment.flags),
            "mpi": environment.name if environment.name in known else None,
            "variables": dict(environment.variables),
            "need": missing.get(environment.name),
        }
    found: list[str | None] = [mpi.name for mpi in tools.mpis if mpi.name not in of_site]
    if not found and not tools.environments and first is not None:
        found = [None]
    for name in found:
        yield {
            "name": name or first,
            "site": False,
            "compiler": first,
            "flags": [],
            "mpi": name,
            "variables": {},
            "need": None if first is not None else "a C++20 compiler",
        }


def _benchmark(benchmark: Benchmark, machine: Machine, missing: str | None) -> dict[str, Any]:
    return {
        "name": benchmark.name,
        "question": benchmark.question,
        "state": "unsupported" if missing else "ready" if benchmark.verified else "unverified",
        "need": missing,
        "parameters": [
            {
                "name": parameter.name,
                "default": written(parameter.name, parameter.default),
                "help": parameter.help,
                "accepts": parameter.accepts(),
            }
            for parameter in benchmark.parameters
        ],
        "figures": [
            {"name": figure.name, "unit": figure.unit, "better": figure.better.value, "work": figure.work}
            for figure in benchmark.figures
        ],
    }
