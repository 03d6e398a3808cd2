"""The site file, system and partition that a call uses."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def at_site(site: str | Path | None, system: str | None) -> Iterator[None]:
    """Use this site file, and run programs on this system of it (`NAME[:PARTITION]`), within the context.

    If neither is given, the user's own site file is read when it is needed. Raises UsageError for a file that cannot be
    read, and for an unknown system or partition.
    """
    if site is None and system is None:
        yield
        return
    from seatrial.environments.site import use_site_within
    from seatrial.plan.site_file import site_of

    found = site_of(None if site is None else Path(site))
    with use_site_within(found, None if system is None else found.place(system)):
        yield
