"""Files on the command line: `KIND=FILE[#n]`."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.errors import UsageError
from seatrial.machine.dumps import READERS


def parse_dumps(options: Sequence[str] | None) -> tuple[tuple[str, str], ...]:
    """(kind, file) of each `--from`. Raises UsageError for any other form."""
    return tuple(map(_dump, options or ()))


def _dump(source: str) -> tuple[str, str]:
    kind, equals, name = source.partition("=")
    if not equals or not name:
        example = "seatrial discover --from nvidia-smi-topo=topo.txt"
        raise UsageError(
            f"--from {source!r} is not of the form KIND=FILE",
            f"for example: {example}; the kinds are {', '.join(sorted(READERS))}",
        )
    return kind, name
