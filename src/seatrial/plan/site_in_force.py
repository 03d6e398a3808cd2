"""The site file in force in this process, and the system and partition on which programs are to run.

The command line sets it once at the start; the search for compilers and MPI libraries reads it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.environment.site import Place, Site, SiteEnvironment
from seatrial.plan.site_file import site_of


class _InForce(Struct):
    """`site` None: not set; the user's own site file is read at first use."""

    site: Site | None = None
    place: Place | None = None


_in_force = _InForce()


def use_site(site: Site | None, place: Place | None = None) -> None:
    """Set the site (None: that of the user's own file) and the partition whose order of environments applies."""
    _in_force.site, _in_force.place = site, place


@contextmanager
def use_site_within(site: Site, place: Place | None) -> Iterator[None]:
    """The same for the duration of the block."""
    before = replace(_in_force)
    use_site(site, place)
    try:
        yield
    finally:
        use_site(before.site, before.place)


@contextmanager
def at_site(site: str | Path | None, system: str | None) -> Iterator[None]:
    """Use this site file, and run programs on this system of it (`NAME[:PARTITION]`), within the context.

    If neither is given, the user's own site file is read when it is needed. Raises UsageError for a file that cannot be
    read, and for an unknown system or partition.
    """
    if site is None and system is None:
        yield
        return
    found = site_of(None if site is None else Path(site))
    with use_site_within(found, None if system is None else found.place(system)):
        yield


def site_in_force() -> Site:
    """The site. Raises UsageError if the user's own file is invalid."""
    if _in_force.site is None:
        _in_force.site = site_of(None)
    return _in_force.site


def place_in_force() -> Place | None:
    """Where programs are to run; None if not set."""
    return _in_force.place


def site_environments() -> tuple[SiteEnvironment, ...]:
    """The site's environments for this partition, the default first."""
    return site_in_force().environments_at(_in_force.place)


def first_site_environment() -> SiteEnvironment | None:
    """The default environment; None if the site has none."""
    return next(iter(site_environments()), None)


def site_environment(name: str | None) -> SiteEnvironment | None:
    """The site's environment of that name, or None."""
    return next((environment for environment in site_environments() if environment.name == name), None)
