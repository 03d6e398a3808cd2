"""The kinds of programs, one file each: how a point's program is found, identified, prepared, started and read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.engine.kinds.declared import DeclaredCommandKind, DeclaredRanksKind
from seatrial.engine.kinds.external import ExternalKind
from seatrial.engine.kinds.given_input import GivenInputKind
from seatrial.engine.kinds.kind import ImportedKind, ProgramKind
from seatrial.engine.kinds.native import NativeKind
from seatrial.engine.kinds.python_script import PythonScriptKind
from seatrial.model.benchmark.benchmark import DeclaredCommand, DeclaredRanks, External, ImportedOnly, Native
from seatrial.model.benchmark.given_input import GivenInput
from seatrial.model.benchmark.program import Program
from seatrial.model.benchmark.python_script import PythonScript

KINDS: Mapping[type[Program], type[ProgramKind[Any]]] = {
    Native: NativeKind,
    External: ExternalKind,
    GivenInput: GivenInputKind,
    PythonScript: PythonScriptKind,
    DeclaredCommand: DeclaredCommandKind,
    DeclaredRanks: DeclaredRanksKind,
    ImportedOnly: ImportedKind,
}
"""Declaration -> kind."""
