"""What a node is, printed in short lines that survive launchers which mix the output of nodes.

Run as `python -m seatrial.launch.node_probe NODE`; "" is the name that Slurm gives the node. Each line is
`seatrial-node NAME NUMBER COUNT TEXT`; all texts of a node together are its `seatrial.machine/1`, compressed.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import platform
import sys
import zlib
from collections.abc import Iterator

from seatrial.errors import UsageError
from seatrial.machine.live import discover_live
from seatrial.model.machine.document import machine_document, machine_from_document
from seatrial.model.machine.machine import Machine

_MARK = "seatrial-node"
_LENGTH = 700
_MOST_LINES = 20_000
_MOST_B = 64 << 20


def node_lines(name: str, machine: Machine) -> Iterator[str]:
    """The lines of a node."""
    packed = base64.b64encode(zlib.compress(json.dumps(machine_document(machine)).encode(), 9)).decode()
    parts = [packed[start : start + _LENGTH] for start in range(0, len(packed), _LENGTH)]
    for number, part in enumerate(parts):
        yield f"{_MARK} {name} {number} {len(parts)} {part}"


def machines_in(output: str) -> dict[str, Machine]:
    """Node -> its machine, of those that printed all of it; other lines are ignored. Raises UsageError for a damaged
    description."""
    found: dict[str, dict[int, str]] = {}
    counts: dict[str, int] = {}
    for line in output.splitlines():
        words = line.split()
        if len(words) != 5 or words[0] != _MARK or not words[2].isdigit() or not words[3].isdigit():
            continue
        counts[words[1]] = min(int(words[3]), _MOST_LINES)
        found.setdefault(words[1], {})[int(words[2])] = words[4]
    return {
        name: _machine(name, "".join(parts[number] for number in range(counts[name])))
        for name, parts in found.items()
        if all(number in parts for number in range(counts[name]))
    }


def _machine(name: str, packed: str) -> Machine:
    try:
        text = zlib.decompressobj().decompress(base64.b64decode(packed, validate=True), _MOST_B)
        return machine_from_document(json.loads(text))
    except (ValueError, binascii.Error, zlib.error, UsageError) as error:
        raise UsageError(
            f"what {name} printed of itself cannot be read: {error}", "use the same version on all nodes"
        ) from None


def main() -> None:
    """Print this node."""
    given = sys.argv[1] if len(sys.argv) > 1 else ""
    name = given or os.environ.get("SLURMD_NODENAME") or platform.node()
    sys.stdout.write("\n".join(node_lines(name, discover_live())) + "\n")


if __name__ == "__main__":
    main()
