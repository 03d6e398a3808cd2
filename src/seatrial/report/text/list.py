"""The text output of `seatrial list`: what can be measured here, then the tools that programs are built with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.report.text.terminal import PLAIN, Style, Tone

_TONES: dict[str, Tone] = {"ready": "direct", "unverified": "near"}


def list_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Name, state and question of each benchmark, then its parameters; compilers, MPI libraries and environments last,
    the default of each first."""
    lines: list[str] = []
    for benchmark in document["benchmarks"]:
        state = style.paint(benchmark["state"], _TONES.get(benchmark["state"], "warning"))
        lines.append(f"{style.paint(benchmark['name'], 'heading')}  [{state}]")
        lines.append(f"  {benchmark['question']}")
        if benchmark["need"]:
            lines.append(f"  needs {benchmark['need']}")
        rows = [(f"{p['name']}={p['default']}", f"{p['help']} ({p['accepts']})") for p in benchmark["parameters"]]
        if rows:
            lines.append(style.table(rows, indent="    "))
    lines.append(f"compilers: {', '.join(document['compilers']) or 'none'}")
    lines += _mpis(document["mpis"], style)
    lines += _environments(document["environments"], style)
    lines += _blas(document["blas"], style)
    return "\n".join(lines)


def _mpis(mpis: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each library: its name for `environment.mpi`, its title and path; or what it needs."""
    if not mpis:
        yield "MPI libraries: none"
        return
    yield "MPI libraries (environment.mpi; the first is the default):"
    yield style.table(
        (
            mpi["name"] if mpi["state"] == "ready" else "-",
            mpi["title"],
            mpi["library"],
            _remark(mpi),
        )
        for mpi in mpis
    )


def _remark(mpi: Mapping[str, Any]) -> str:
    if mpi["need"]:
        return f"needs {mpi['need']}"
    return f"from {mpi['found']}" + ("" if mpi["launcher"] else "; without a launcher")


def _environments(environments: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """The site's own environments; the others follow from the compilers and libraries above."""
    of_site = [environment for environment in environments if environment["site"]]
    if not of_site:
        return
    yield "environments of the site file (the first is the default):"
    yield style.table(
        (
            environment["name"],
            " ".join(filter(None, (environment["compiler"] or "first compiler", *environment["flags"]))),
            environment["mpi"] or "no MPI",
            " ".join(f"{name}={value}" for name, value in environment["variables"].items())
            if not environment["need"]
            else f"needs {environment['need']}",
        )
        for environment in of_site
    )


def _blas(libraries: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each library: its name for `blas`, its version and kernels, its path, and what is known of them."""
    if not libraries:
        yield "BLAS libraries: none"
        return
    yield "BLAS libraries (blas; the first is the default):"
    yield style.table(
        (
            "-" if library["name"] == library["library"] else library["name"],
            (library["version"] or library["family"]).partition("  ")[0].split(" NO_")[0].split(" DYNAMIC")[0],
            f"kernels of {library['kernels'] or 'unknown'}",
            library["library"],
            f"from {library['found']}; {library['remark']}",
        )
        for library in libraries
    )
