"""The benchmarks, and the tools that they need, on this machine."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from seatrial.benchmarks import registry
from seatrial.engine.prepare import lacking
from seatrial.environments.blas import find_blas
from seatrial.environments.build import Environment
from seatrial.environments.chosen import native_environment
from seatrial.environments.compiler import find_compilers
from seatrial.environments.mpi import discover_mpis, need_of_runtime
from seatrial.errors import BuildError, UnknownNameError
from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.cpus import survey_cpus
from seatrial.model.benchmark import Benchmark, area_of
from seatrial.model.frozen import Frozen
from seatrial.model.machine import Device, DeviceKind, Machine
from seatrial.places.containers.trials import container_trials
from seatrial.places.guest.home import guest_home_path
from seatrial.places.guest.offered import offered_guests
from seatrial.plan.declared_benchmarks import with_declared
from seatrial.plan.site_in_force import at_site, site_environments, site_in_force
from seatrial.report.documents.list import Tools


class Listing(Frozen):
    """The benchmarks, and the tools that build programs. `missing` has the benchmarks whose program cannot be built or
    found here, with what they need."""

    benchmarks: tuple[Benchmark, ...]
    tools: Tools
    missing: Mapping[str, str]


def list_benchmarks(name: str | None = None, *, site: Path | None = None, system: str | None = None) -> Listing:
    """List the benchmarks, or only the one of that name, or those of an area (`mpi`).

    Raises UsageError for an invalid site file or $CXX, UnknownNameError for the name.
    """
    with at_site(site, system):
        with_declared()
        benchmarks = chosen(name)
        try:
            environment: Environment | BuildError = native_environment(_processors())
        except BuildError as error:
            environment = error
        missing = {b.name: need for b in benchmarks if (need := lacking(b, environment)) is not None}
        return Listing(benchmarks, _tools(), missing)


def chosen(name: str | None) -> tuple[Benchmark, ...]:
    """The benchmarks of that name or area; None: all that can run."""
    can_run = {known: benchmark for known, benchmark in registry().items() if benchmark.program.can_run}
    if name is None:
        return tuple(can_run.values())
    found = tuple(benchmark for known, benchmark in can_run.items() if name in (known, area_of(known)))
    if not found:
        raise UnknownNameError("benchmark or area", name, {*can_run, *map(area_of, can_run)})
    return found


def _processors() -> Machine:
    """The packages of this machine with their features: no other part decides what can be built."""
    packages = [part for part in survey_cpus(FileTree(Path("/"))).parts if part.kind is DeviceKind.PACKAGE]
    return Machine(
        "", tuple(Device(f"package:{number}", part.kind, "", facts=part.facts) for number, part in enumerate(packages))
    )


def _tools() -> Tools:
    found = discover_mpis()
    environments = site_environments()
    names = {environment.name for environment in environments}
    return Tools(
        [f"{compiler.name} ({' '.join(compiler.command)})" for compiler in find_compilers()],
        found.mpis,
        [(mpi, need_of_runtime(mpi)) for mpi in found.runtimes],
        environments,
        {name: why for name, why in found.passed_over if name in names},
        find_blas(),
        container_trials(),
        offered_guests(site_in_force().guests, guest_home_path(os.environ)),
    )
