"""Files on the command line: `KIND=FILE[#n]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.errors import UnknownNameError, UsageError
from seatrial.fabric.dumps import FABRIC_READERS
from seatrial.machine.dumps import READERS

KINDS = (*READERS, *FABRIC_READERS)
"""Every kind of `--from`: those of a machine, and those of a fabric."""


def parse_dumps(options: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """(kind, file) of each `--from`. Raises UsageError for any other form, and for a kind that does not exist."""
    return tuple(map(_dump, options or ()))


def refuse_options(given: Mapping[str, bool]) -> None:
    """Raise UsageError for the first option that was given beside dumps of a fabric."""
    for option, is_given in given.items():
        if is_given:
            raise UsageError(f"{option} is for a machine, and these dumps describe a fabric", "leave the option out")


def _dump(source: str) -> tuple[str, str]:
    kind, equals, name = source.partition("=")
    if not equals or not name:
        example = "seatrial discover --from nvidia-smi-topo=topo.txt"
        raise UsageError(
            f"--from {source!r} is not of the form KIND=FILE",
            f"for example: {example}; the kinds are {', '.join(sorted(KINDS))}",
        )
    if kind not in KINDS:
        raise UnknownNameError("kind of dump", kind, KINDS)
    return kind, name
