"""`seatrial list`."""

from __future__ import annotations

from seatrial.benchmarks import registry
from seatrial.cli.output import print_json
from seatrial.cli.references import print_references, with_references
from seatrial.engine.environments import native_environment
from seatrial.engine.prepare import lacking
from seatrial.environments.build import Environment
from seatrial.environments.compiler import find_compilers
from seatrial.errors import BuildError
from seatrial.machine.live import discover_live
from seatrial.model.benchmark import Elsewhere
from seatrial.report.list_document import list_document
from seatrial.report.text import list_text


def list_command(*, as_json: bool, references: bool = False) -> None:
    """Print every benchmark with its state on this machine; with `references` the published values (JSON has both)."""
    if references and not as_json:
        print_references()
        return
    machine = discover_live()
    try:
        environment: Environment | BuildError = native_environment(machine)
    except BuildError as error:
        environment = error
    missing = {name: need for name, b in registry().items() if (need := lacking(b, environment)) is not None}
    compilers = [f"{compiler.name} ({' '.join(compiler.command)})" for compiler in find_compilers()]
    listed = [b for b in registry().values() if not isinstance(b.program, Elsewhere) or b.program.is_to_come]
    document = list_document(listed, machine, compilers, missing)
    if references:
        document = with_references(document)
    if as_json:
        print_json(document)
    else:
        print(list_text(document["benchmarks"], document["compilers"]))
