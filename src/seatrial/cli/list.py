"""`seatrial list`."""

from __future__ import annotations

import sys

from seatrial.benchmarks import registry
from seatrial.cli.output import print_json, style_of
from seatrial.cli.references import print_references, with_references
from seatrial.engine.environments import native_environment
from seatrial.engine.prepare import lacking
from seatrial.environments.build import Environment
from seatrial.environments.compiler import find_compilers
from seatrial.environments.mpi import discover_mpis, need_of_runtime
from seatrial.environments.site import site_environments
from seatrial.errors import BuildError
from seatrial.machine.live import discover_live
from seatrial.report.documents.list import Tools, list_document
from seatrial.report.text.list import list_text


def list_command(*, as_json: bool, references: bool = False) -> None:
    """Print every benchmark with its state on this machine, and what programs are built with; with `references` the
    published values (JSON has both)."""
    if references and not as_json:
        print_references()
        return
    machine = discover_live()
    try:
        environment: Environment | BuildError = native_environment(machine)
    except BuildError as error:
        environment = error
    missing = {name: need for name, b in registry().items() if (need := lacking(b, environment)) is not None}
    listed = [b for b in registry().values() if b.program.can_run]
    document = list_document(listed, machine, _tools(), missing)
    if references:
        document = with_references(document)
    if as_json:
        print_json(document)
    else:
        print(list_text(document, style_of(sys.stdout)))


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
    )
