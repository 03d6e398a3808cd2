"""Files that our own programs wrote where the lab was not: a GPU machine with a driver and a compiler and no Python.

A program says which benchmark it measures and with which arguments it was started; parameters are those that give these
arguments: the defaults, or what `--set` names.
"""

from __future__ import annotations

from seatrial.benchmarks import registry
from seatrial.errors import ParseError, ProtocolError
from seatrial.imports.reader import Reader
from seatrial.model.imported import ImportedExperiment, ImportedFile
from seatrial.model.parameter import Value
from seatrial.model.protocol import parse_record

_TOOL = "seatrial"


def read_records(data: bytes) -> ImportedFile:
    """The one run that a record file holds. Raises ParseError where it did not come to its end, or measured nothing."""
    try:
        record = parse_record(data)
    except ProtocolError as error:
        raise ParseError(_TOOL, None, "", str(error)) from error
    if record.hello is None:
        raise ParseError(_TOOL, None, "", "it does not begin with the `hello` of a measuring program")
    if record.skip is not None:
        raise ParseError(_TOOL, None, "", f"the program measured nothing: {record.skip}")
    if not record.ended:
        raise ParseError(_TOOL, None, "", "there is no `end`: the program died, or the file was cut off")
    name = record.hello.program
    ours = [b.name for b in registry().values() if (source := b.program.source) and source.stem == name]
    if len(ours) != 1:
        known = "several benchmarks have it" if ours else "no benchmark has it"
        raise ParseError(_TOOL, None, "", f"it is of the program {name[:40]!r}, and {known}")
    checks = {check: value if value is not None else float("nan") for check, value in record.checks.items()}
    parameters = _devices(record.notes.get("devices"))
    experiment = ImportedExperiment(ours[0], record.samples, parameters, record.notes, checks, is_ours=True)
    return ImportedFile(_TOOL, "", (experiment,), host=record.hello.host)


def _devices(told: object) -> dict[str, Value]:
    """The parameters that say which devices were measured, from what the program tells of them."""
    match told:
        case [{"backend": str(backend), "index": int(first)}, *_] if isinstance(told, list):
            return {"backend": backend, "device": first, "devices": len(told)}
    return {}


READER = Reader("records", read_records)
