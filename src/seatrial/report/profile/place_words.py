"""The place in the program that makes an MPI call."""

from __future__ import annotations

from pathlib import PurePosixPath

from seatrial.profiler.call_site import Caller, CallSite
from seatrial.profiler.merge.places import shown_of


def site_words(site: CallSite | Caller) -> str:
    """Function, file and line if known, else the file and the offset in it."""
    if site.frames:
        frame = site.frames[0]
        line = f":{frame.line}" if frame.line else ""
        where = f" {PurePosixPath(frame.file).name}{line}" if frame.file else f" in {site_module(site)}"
        return f"{frame.function}{where}"
    return f"{site_module(site)}+{site.offset:#x}" if site.module else "unknown"


def site_module(site: CallSite | Caller) -> str:
    """The name of the program or library that calls."""
    return PurePosixPath(site.module).name or site.module


def inlined_words(site: CallSite) -> str:
    """The functions that an inlined call is inlined into, from the inside out; "" if none."""
    return ", inlined in ".join(["", *(frame.function for frame in site.frames[1:])]).removeprefix(", ")


def path_words(site: CallSite) -> str:
    """The libraries through which MPI is called, and the callers of the place; "" if no path is known."""
    shown = shown_of(site.path)
    through = [site_words(one) for one in site.path[:shown]]
    callers = [site_words(one) for one in site.path[shown + 1 :]]
    parts = [f"through {', '.join(through)}"] if through else []
    parts += [f"called by {', '.join(callers)}"] if callers else []
    return "; ".join(parts)
