"""`seatrial list`."""

from __future__ import annotations

from seatrial.benchmarks import registry
from seatrial.cli.output import print_json
from seatrial.engine.prepare import lacking, native_environment
from seatrial.environments.build import Environment
from seatrial.environments.compiler import find_compilers
from seatrial.errors import BuildError
from seatrial.machine.live import discover_live
from seatrial.model.benchmark import Elsewhere
from seatrial.report.list_document import list_document
from seatrial.report.text import list_text


def list_command(*, as_json: bool) -> None:
    """Print every benchmark with its state on this machine."""
    machine = discover_live()
    try:
        environment: Environment | BuildError = native_environment(machine)
    except BuildError as error:
        environment = error
    missing = {name: need for name, b in registry().items() if (need := lacking(b.program, environment)) is not None}
    compilers = [f"{compiler.name} ({' '.join(compiler.command)})" for compiler in find_compilers()]
    listed = [b for b in registry().values() if not isinstance(b.program, Elsewhere) or b.program.is_to_come]
    document = list_document(listed, machine, compilers, missing)
    if as_json:
        print_json(document)
    else:
        print(list_text(document["benchmarks"], document["compilers"]))
