"""Adapters, where a tool gives only the GUID of each of their ports.

An adapter with several ports numbers their GUIDs after its own: the GUID of port 2 is that of port 1 plus one. Newer
hardware has an adapter of one port for each of its ports.
"""

from __future__ import annotations

from msgspec import Struct


class Adapters(Struct):
    """The GUID of a port -> its adapter. Ports are of one adapter if it has the same name and their GUIDs follow."""

    _ports: dict[str, tuple[int, str]] = {}
    _of: dict[tuple[int, str], dict[int, str]] = {}

    def add(self, guid: str, port: int, name: str) -> None:
        """A port: its GUID as 16 hexadecimal digits, its number, the name of its adapter."""
        key = (int(guid, 16) - port, name)
        self._ports.setdefault(guid, key)
        self._of.setdefault(key, {}).setdefault(port, guid)

    def of(self, guid: str) -> str:
        """The id of the adapter of a port: "H-" and the GUID of the adapter, or of its only port."""
        key = self._ports[guid]
        return f"H-{guid if len(self._of[key]) == 1 else format(key[0], '016x')}"
