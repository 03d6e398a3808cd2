"""`seatrial list`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from seatrial.benchmarks import registry
from seatrial.cli.command import command
from seatrial.cli.output import Output, SiteOption, SystemOption, print_json, style_of
from seatrial.engine.prepare import lacking
from seatrial.environments.blas import find_blas
from seatrial.environments.build import Environment
from seatrial.environments.chosen import native_environment
from seatrial.environments.compiler import find_compilers
from seatrial.environments.mpi import discover_mpis, need_of_runtime
from seatrial.environments.settings.knobs import offered_settings
from seatrial.errors import BuildError, UnknownNameError
from seatrial.machine.files import FileTree
from seatrial.machine.sysfs.cpus import survey_cpus
from seatrial.model.benchmark.benchmark import Benchmark, area_of
from seatrial.model.json_shape import Json
from seatrial.model.machine.machine import Device, DeviceKind, Machine
from seatrial.places.containers.trial import container_trials
from seatrial.places.guest.home import guest_home_path
from seatrial.places.guest.of_run import offered_guests
from seatrial.plan.site_in_force import at_site, site_environments, site_in_force
from seatrial.plan.targets import with_declared
from seatrial.references.loader import all_references, own_file
from seatrial.report.blocks import Detail
from seatrial.report.documents.list import BuildTools, list_document, references_document
from seatrial.report.text.list import area_text, details_text, list_text, names_text, references_text, tools_text


@command("list")
def _list(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME|AREA", help="show this benchmark in full, or the questions of an area"),
    ] = None,
    references: Annotated[
        bool, typer.Option("--references", help="list published values of other machines, with their sources")
    ] = False,
    site: SiteOption = None,
    system: SystemOption = None,
    *,
    out: Annotated[
        Output,
        {
            "quiet": "the names of the benchmarks that are ready",
            "verbose": "every benchmark with parameters, figures and checks",
        },
    ],
) -> None:
    if references and not out.as_json:
        print_references()
        return
    document = _listed(name, site, system)
    if references:
        document = {**document, "references": references_document(all_references())}
    if out.as_json:
        print_json(document)
        return
    style = style_of(sys.stdout)
    if out.detail is Detail.BRIEF:
        text = names_text(document)
    elif name is not None and (out.detail is Detail.FULL or len(document["benchmarks"]) == 1):
        text = details_text(document, style)
    elif name is not None:
        text = area_text(document, style)
    elif out.detail is Detail.FULL:
        text = f"{details_text(document, style)}\n\n{tools_text(document, style)}"
    else:
        text = list_text(document, style)
    if text:
        print(text)


def print_references() -> None:
    """Print every published value with its source and those that contradict it, and which file is the site's own."""
    print(references_text(all_references()))
    own = own_file()
    print(f"\nown file: {own or 'none (docs/references.md states where to create one)'}")


def _listed(name: str | None, site: Path | None, system: str | None) -> Json:
    """The benchmarks, or the one of that name, or those of an area, with what they need here, and the tools. Raises
    UsageError for an invalid site file or $CXX, UnknownNameError for the name."""
    with at_site(site, system):
        with_declared()
        benchmarks = chosen(name)
        try:
            environment: Environment | BuildError = native_environment(_processors())
        except BuildError as error:
            environment = error
        missing = {b.name: need for b in benchmarks if (need := lacking(b, environment)) is not None}
        return list_document(benchmarks, _tools(), missing)


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


def _tools() -> BuildTools:
    found = discover_mpis()
    environments = site_environments()
    names = {environment.name for environment in environments}
    return BuildTools(
        [f"{compiler.name} ({' '.join(compiler.command)})" for compiler in find_compilers()],
        found.mpis,
        [(mpi, need_of_runtime(mpi)) for mpi in found.runtimes],
        environments,
        {name: why for name, why in found.passed_over if name in names},
        find_blas(),
        container_trials(),
        offered_guests(site_in_force().guests, guest_home_path(os.environ)),
        offered_settings(Path("/")),
    )
