"""The site that a command speaks of: `--site FILE` and `--system NAME[:PARTITION]`."""

from __future__ import annotations

from pathlib import Path


def use_site_options(site: Path | None, system: str | None) -> None:
    """Put the site file in force, and where in the site programs are to run. Raises UsageError for a file that cannot
    be read, and for a system or partition that it does not name.

    Without options nothing is read now: the user's own site file is read when somebody asks what it says.
    """
    if site is None and system is None:
        return
    from seatrial.environments.site import use_site
    from seatrial.plan.site_file import site_of

    found = site_of(site)
    use_site(found, None if system is None else found.place(system))
