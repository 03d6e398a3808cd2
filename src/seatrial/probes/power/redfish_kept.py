"""What was found in a Redfish service is kept in the cache: a walk through its tree takes hundreds of requests.

It is used as long as the root object shows the same service (its UUID, versions, links), for a week at most, and for an
hour if something was left out; if an object does not exist any more, it is forgotten, and the next start walks again.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from seatrial.errors import BuildError, UsageError
from seatrial.model.environment.site import RedfishAccess
from seatrial.model.frozen import Frozen
from seatrial.probes.power.redfish_found import REST, Found
from seatrial.store.cache import make_folder, own_cache
from seatrial.store.files import write_once

FOLDER = "bmcs"
_LONGEST_S, _LONGEST_OF_SOME_S = 7 * 86_400.0, 3600.0
_VERSION = 2
_DEEPEST = 6
_STATED = frozenset(
    {"UUID", "RedfishVersion", "Product", "Vendor", "Name", "ManagerFirmwareVersion", "ServiceTag", "@odata.id"}
)
"""Keys of a root object, at any depth, that do not change while the service stays the same."""


class Kept(Frozen):
    """The file. `at_s`: when it was found, in seconds since the epoch."""

    v: int
    root: str
    at_s: float
    sensors: tuple[Found, ...]
    parts: tuple[str, ...] = ()
    """The URIs of the objects with the states of fans and supplies."""


def load(access: RedfishAccess, root: Any) -> Kept | None:
    """What was found earlier in this service; None if nothing that can still be used is kept."""
    with suppress(OSError, ValueError, UsageError, BuildError, msgspec.DecodeError):
        data = own_cache().read(FOLDER, _name(access))
        if data is not None:
            kept = msgspec.json.decode(data, type=Kept)
            longest_s = _LONGEST_OF_SOME_S if any(one.name == REST for one in kept.sensors) else _LONGEST_S
            if kept.v == _VERSION and kept.root == _same(root) and 0 <= time.time() - kept.at_s < longest_s:
                return kept
    return None


def keep(access: RedfishAccess, root: Any, found: Sequence[Found], parts: Sequence[str]) -> None:
    """Keep what was found. A cache that cannot be written keeps nothing."""
    with suppress(OSError, UsageError, BuildError):
        folder = own_cache().path / FOLDER
        make_folder(folder)
        kept = Kept(_VERSION, _same(root), time.time(), tuple(found), tuple(parts))
        write_once(folder, _name(access), data=msgspec.json.encode(kept))


def forget(access: RedfishAccess) -> None:
    """Remove what is kept of this service."""
    with suppress(OSError, BuildError):
        (own_cache().path / FOLDER / _name(access)).unlink(missing_ok=True)


def _name(access: RedfishAccess) -> str:
    """Users may see different parts of a service."""
    return f"{hashlib.sha256(f'{access.url} {access.user}'.encode()).hexdigest()[:32]}.json"


def _same(root: Any) -> str:
    return hashlib.sha256(json.dumps(sorted(_stated(root))).encode()).hexdigest()


def _stated(found: Any, deep: int = _DEEPEST) -> Iterator[str]:
    if not deep:
        return
    for key, value in found.items() if isinstance(found, Mapping) else ():
        if key in _STATED and isinstance(value, str):
            yield f"{key} {value}"
        yield from _stated(value, deep - 1)
    for value in found if isinstance(found, list) else ():
        yield from _stated(value, deep - 1)
