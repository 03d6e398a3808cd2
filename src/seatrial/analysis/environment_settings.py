"""The settings of an environment as the values of axes, for comparisons of what was measured without a study."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from seatrial.model.benchmark.parameter import Value
from seatrial.model.environment.container import CONTAINER, CONTAINER_MPI, CONTAINER_RUNTIME, NO_CONTAINER
from seatrial.model.environment.mpi import DEFAULTS
from seatrial.model.machine.guest import NO_GUEST, VM
from seatrial.store.contents import Contents

_DIGITS = 12
Setting = tuple[Value | None]
"""The value of an axis, in a tuple of one: an unset variable has the value None, where another axis has none."""


def environment_settings(contents: Contents) -> dict[str, dict[str, Setting]]:
    """The axes of each environment of a folder by their names without the prefix. An image is named as a user would,
    with its digest only where two have one name; without a container, a runtime and a placement of ranks have no
    value."""
    names = _names_of_images(contents)
    return {key: _settings(document, names) for key, document in contents.environments.items()}


def _settings(document: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    compiler, mpi, container = (document.get(name) for name in ("compiler", "mpi", CONTAINER))
    if isinstance(compiler, Mapping):
        found["compiler"] = (f"{compiler.get('family')} {compiler.get('version')}",)
    guest = document.get(VM)
    found[VM] = (str(guest.get("name")) if isinstance(guest, Mapping) else NO_GUEST,)
    found["flags"] = (" ".join(document.get("added_flags", ())),)
    if isinstance(mpi, Mapping):
        found["mpi"] = (str(mpi.get("name")),)
        found |= {name: (value,) for name, value in {**DEFAULTS, **(document.get("settings") or {})}.items()}
    found |= {name: (value,) for name, value in (document.get("variables") or {}).items()}
    if isinstance(container, Mapping):
        found[CONTAINER] = (names[_image(container)],)
        found[CONTAINER_RUNTIME] = (str(container.get("runtime")),)
        if "mpi" in container:
            found[CONTAINER_MPI] = (str(container["mpi"]),)
    elif "chosen" not in document:  # else it is not known: what was chosen is not available
        found[CONTAINER] = (NO_CONTAINER,)
    return found


def _image(container: Mapping[str, Any]) -> str:
    return f"{container.get('image')}\0{container.get('digest')}"


def _names_of_images(contents: Contents) -> dict[str, str]:
    """Image -> its name, with digits of its digest where another image has that name."""
    images = {
        _image(container): (str(container.get("image")), str(container.get("digest") or "").removeprefix("sha256:"))
        for document in contents.environments.values()
        if isinstance(container := document.get(CONTAINER), Mapping)
    }
    times = Counter(name for name, _ in images.values())
    return {key: name if times[name] == 1 else f"{name} {digest[:_DIGITS]}" for key, (name, digest) in images.items()}
