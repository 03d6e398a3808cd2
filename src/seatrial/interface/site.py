"""The site that a call is made for: a site file, and a system and partition of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def at_site(site: str | Path | None, system: str | None) -> Iterator[None]:
    """Inside, this site file is in force, and programs are to run in this part of it (`NAME[:PARTITION]`).

    Where neither is given nothing changes: the user's own site file is read when it is needed. Raises UsageError for a
    file that cannot be read, and for a system or partition that it does not name.
    """
    if site is None and system is None:
        yield
        return
    from seatrial.environments.site import use_site_within
    from seatrial.plan.site_file import site_of

    found = site_of(None if site is None else Path(site))
    with use_site_within(found, None if system is None else found.place(system)):
        yield
