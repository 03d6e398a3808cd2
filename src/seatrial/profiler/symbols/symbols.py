"""Function, file and line of addresses in a program or library.

`addr2line` of binutils reads the debug information, including inlined functions; if it is missing or finds nothing,
the symbol table of the file still gives the function. Addresses in a module that cannot be read stay unresolved.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from seatrial.environments.elf import Functions, read_functions
from seatrial.errors import ParseError
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path
from seatrial.profiler.cause import Frame

_TIMEOUT_S = 60.0
_LINE = re.compile(r"^(?P<file>.*):(?P<line>\d+|\?)(?: \(discriminator \d+\))?$")


class Symbols:
    """Resolves return addresses; each module is read once. `addr2line` is its path, None if it is not installed."""

    def __init__(self, addr2line: str | None = None) -> None:
        self._addr2line = addr2line
        self._functions: dict[str, Functions | None] = {}
        self._known: dict[str, dict[int, tuple[Frame, ...]]] = {}

    @classmethod
    def of_this_machine(cls) -> Symbols:
        """With the addr2line on PATH."""
        return cls(on_path("addr2line"))

    def frames(self, module: str, offsets: Sequence[int]) -> Mapping[int, tuple[Frame, ...]]:
        """Return address, as an offset in the file `module` -> its frames, innermost first; only resolved ones."""
        known = self._known.setdefault(module, {})
        if module not in self._functions:
            self._functions[module] = None
            with suppress(OSError, ParseError):
                self._functions[module] = read_functions(Path(module))
        functions = self._functions[module]
        new = [offset for offset in offsets if offset not in known]
        if functions is not None and new:
            # A return address is that of the next instruction, which may belong to the next line.
            addresses = {offset: functions.address(offset - 1) for offset in new}
            in_code = [address for address in addresses.values() if address is not None]
            resolved = self._by_addr2line(module, in_code) if in_code else {}
            for offset, address in addresses.items():
                name = None if address is None else functions.name(address)
                known[offset] = resolved.get(address or 0) or (() if name is None else (Frame(name),))
        return {offset: known[offset] for offset in offsets if known.get(offset)}

    def _by_addr2line(self, module: str, addresses: Sequence[int]) -> dict[int, tuple[Frame, ...]]:
        if self._addr2line is None:
            return {}
        try:
            text = "".join(f"{address:#x}\n" for address in addresses)
            command = [self._addr2line, "-a", "-f", "-i", "-C", "-e", module]
            done = output_of(command, os.environ, _TIMEOUT_S, text.encode())
        except (OSError, ValueError, OutOfTimeError):
            return {}
        return parse_addr2line(done.stdout.decode("utf-8", "replace"))


def parse_addr2line(text: str) -> dict[int, tuple[Frame, ...]]:
    """The output of `addr2line -a -f -i`: for each address a line with it, then two lines for each frame."""
    found: dict[int, tuple[Frame, ...]] = {}
    address: int | None = None
    function: str | None = None
    for line in text.splitlines():
        if function is None and re.fullmatch(r"0x[0-9a-f]+", line):
            address = int(line, 16)
            found[address] = ()
        elif function is None:
            function = line
        elif address is not None:
            place = _LINE.match(line)
            file = place["file"] if place and place["file"] != "??" else ""
            number = int(place["line"]) if place and file and place["line"] != "?" else 0
            if function != "??":
                found[address] += (Frame(function, file, number),)
            function = None
    return found
