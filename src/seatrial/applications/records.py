"""Records that our own programs wrote on a machine without Python, such as a GPU node with just a driver and a
compiler.

A record states which program wrote it and the arguments it was started with. The parameters must give these arguments:
they are the defaults, or set by `--set`.
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.benchmarks import registry
from seatrial.errors import ParseError, ProtocolError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.program import parse_record
from seatrial.model.machine.identity import emulation_unnoticed
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

_TOOL = "seatrial"


def read_records(data: bytes) -> ImportedFile:
    """The run in a record file. Raises ParseError if the run did not finish, or measured nothing."""
    try:
        record = parse_record(data)
    except ProtocolError as error:
        raise ParseError(_TOOL, None, "", str(error)) from error
    if record.hello is None:
        raise ParseError(_TOOL, None, "", "the file does not begin with the `hello` of a measuring program")
    if record.skip is not None:
        raise ParseError(_TOOL, None, "", f"the program measured nothing: {record.skip}")
    if not record.ended:
        raise ParseError(_TOOL, None, "", "no `end`: the program died, or the file was cut off")
    if why := emulation_unnoticed(Machine(""), record.hello):
        raise ParseError(_TOOL, None, "", why)
    name = record.hello.program
    ours = [b.name for b in registry().values() if (source := b.program.source) and source.stem == name]
    if len(ours) != 1:
        known = "several benchmarks use" if ours else "no benchmark uses"
        raise ParseError(_TOOL, None, "", f"written by the program {name[:40]!r}, which {known}")
    checks = {check: value if value is not None else float("nan") for check, value in record.checks.items()}
    parameters = _devices(record.notes.get("devices"))
    experiment = ImportedExperiment(ours[0], record.samples, parameters, record.notes, checks, is_ours=True)
    return ImportedFile(_TOOL, "", (experiment,), host=record.hello.host)


def _devices(reported: object) -> dict[str, Value]:
    """The parameters that select the measured devices, from the program's note `devices`."""
    match reported:
        case [{"backend": str(backend), "index": int(first)}, *_] if isinstance(reported, list):
            return {"backend": backend, "device": first, "devices": len(reported)}
    return {}


READER = figures.Reader("records", read_records)
