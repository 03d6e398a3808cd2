"""The text output of `seatrial list`: what can be measured here, then the tools that programs are built with; and
references: a block for each source, a line for each value, its remarks below."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.grouped import grouped
from seatrial.model.results.history import Reference
from seatrial.model.spelling import arrow, settings
from seatrial.references.words import (
    ANOTHER_MACHINE,
    configuration_text,
    contradiction_text,
    machine_of,
    source_text,
    value_text,
)
from seatrial.report.text.terminal import PLAIN, Style, Tone

_TONES: dict[str, Tone] = {"ready": "direct", "unverified": "near"}
_LIMITS = {"physical": "physical limit", "measured": "measured ceiling", None: "no limit"}


def list_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """A line for each benchmark, by area, those that can run first; what cannot run, by its cause. Then compilers, MPI
    libraries and environments, the default of each first."""
    benchmarks = document["benchmarks"]
    lines: list[str] = []
    for area in sorted({b["area"] for b in benchmarks}, key=lambda area: _place_of(area, benchmarks)):
        own = sorted(
            (b for b in benchmarks if b["area"] == area and b["state"] != "unsupported"),
            key=lambda benchmark: benchmark["state"] != "ready",
        )
        lines += [style.paint(area, "heading")] if own else []
        width = max((len(benchmark["name"]) for benchmark in own), default=0)
        lines += [_line(benchmark, width, style) for benchmark in own]
    lines += _unsupported(benchmarks, style)
    lines += style.wrapped("`seatrial list NAME` or `seatrial list AREA` shows parameters, figures and checks")
    return "\n".join([*lines, "", tools_text(document, style)])


def tools_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Compilers, MPI and BLAS libraries, environments, container runtimes and virtual machines, the default of each
    first."""
    lines = style.wrapped(f"compilers: {', '.join(document['compilers']) or 'none'}", then="  ")
    lines += _mpis(document["mpis"], style)
    lines += _environments(document["environments"], style)
    lines += _blas(document["blas"], style)
    runtimes = document.get("containers", ())
    installed = [one for one in runtimes if one["state"] != "absent"]
    first = "the first that starts the image is the default"
    lines += _runtimes(f"container runtimes (environment.container_runtime; {first}):", installed, style)
    if absent := [one["name"] for one in runtimes if one not in installed]:
        lines += style.wrapped(f"container runtimes that are not installed: {', '.join(absent)}", then="  ")
    lines += _runtimes("virtual machines (environment.vm):", document.get("guests", ()), style)
    return "\n".join(lines)


def names_text(document: Mapping[str, Any]) -> str:
    """The name of each benchmark that is ready, a line each."""
    return "\n".join(one["name"] for one in document["benchmarks"] if one["state"] == "ready")


def details_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Each benchmark in full: its question, state, parameters, figures and checks."""
    return "\n\n".join("\n".join(_details(benchmark, style)) for benchmark in document["benchmarks"])


def _place_of(area: str, benchmarks: Sequence[Mapping[str, Any]]) -> tuple[bool, bool, str]:
    """Areas with something that is ready come first."""
    states = {benchmark["state"] for benchmark in benchmarks if benchmark["area"] == area}
    return "ready" not in states, "unverified" not in states, area


def _line(benchmark: Mapping[str, Any], width: int, style: Style) -> str:
    question, mark = benchmark["question"], ""
    room = style.width - width - len("    ")
    if benchmark["state"] != "ready":
        mark = f"{style.paint('[unverified]', _TONES['unverified'])} "
        room -= len("[unverified] ")
    if style.cuts_lines and len(question) > room:
        question = question[: max(0, room - 3)].rstrip() + "..."
    return f"  {benchmark['name']:{width}}  {mark}{question}"


def _unsupported(benchmarks: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each cause, with the benchmarks that it concerns."""
    causes: dict[str, list[str]] = {}
    for benchmark in benchmarks:
        if benchmark["state"] == "unsupported":
            evidence = f" ({benchmark['evidence']})" if benchmark["evidence"] else ""
            causes.setdefault(benchmark["need"], []).append(benchmark["name"] + evidence)
    if causes:
        yield style.paint("not available here", "heading")
    for need, names in causes.items():
        yield from style.wrapped(", ".join(names), "  ", "  ")
        yield from style.wrapped(f"needs {need}", "    ")


def _details(benchmark: Mapping[str, Any], style: Style) -> Iterator[str]:
    state = style.paint(benchmark["state"], _TONES.get(benchmark["state"], "warning"))
    yield f"{style.paint(benchmark['name'], 'heading')}  [{state}]"
    need = f"needs {benchmark['need']}" if benchmark["need"] else ""
    for text in (benchmark["question"], benchmark["evidence"], need):
        yield from style.wrapped(text, "  ")
    if benchmark["ranks"] == "mpi":
        yield "  runs as MPI ranks"
    parts: dict[str, list[tuple[str, ...]]] = {
        "parameters (--set NAME=VALUE; the default is shown)": [
            (f"{one['name']}={one['default']}", f"{one['help']} ({one['accepts']})") for one in benchmark["parameters"]
        ],
        "figures": [
            (one["name"], one["unit"], f"{one['better']} is better", one["work"], _LIMITS[one["limit"]])
            for one in benchmark["figures"]
        ],
        "checks (no figure is published if one fails)": [(one["name"], one["meaning"]) for one in benchmark["checks"]],
    }
    for title, rows in parts.items():
        if rows:
            yield f"  {title}"
            yield style.table(rows, indent="    ")


def _mpis(mpis: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each library: its name for `environment.mpi`, its title and path; or what it needs."""
    if not mpis:
        yield "MPI libraries: none"
        return
    yield "MPI libraries (environment.mpi; the first is the default):"
    rows = []
    for mpi in mpis:
        remark = f"from {mpi['found']}" + ("" if mpi["launcher"] else "; without a launcher")
        if mpi["need"]:
            remark = f"needs {mpi['need']}"
        rows.append((mpi["name"] if mpi["state"] == "ready" else "-", mpi["title"], mpi["library"], remark))
    yield style.table(rows)


def _environments(environments: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """The site's own environments; the others follow from the compilers and libraries above."""
    rows = []
    for one in environments:
        if one["site"]:
            compiled = " ".join(filter(None, (one["compiler"] or "first compiler", *one["flags"])))
            variables = " ".join(f"{name}={value}" for name, value in one["variables"].items())
            remark = f"needs {one['need']}" if one["need"] else variables
            rows.append((one["name"], compiled, one["mpi"] or "no MPI", remark))
    if rows:
        yield "environments of the site file (the first is the default):"
        yield style.table(rows)


def _runtimes(title: str, those: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each, with its state and why it does not start."""
    if those:
        yield title
        yield style.table(
            (one["name"], one["title"], ": ".join(filter(None, (one["state"], one["need"])))) for one in those
        )


def _blas(libraries: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """A line for each library: its name for `blas`, its version and kernels, its path, and what is known of them."""
    if not libraries:
        yield "BLAS libraries: none"
        return
    yield "BLAS libraries (blas; the first is the default):"
    rows = [
        (
            "-" if library["name"] == library["library"] else library["name"],
            (library["version"] or library["family"]).partition("  ")[0].split(" NO_")[0].split(" DYNAMIC")[0],
            f"kernels of {library['kernels'] or 'unknown'}",
            library["library"],
            f"from {library['found']}; {library['remark']}",
        )
        for library in libraries
    ]
    if style.cuts_lines and style.width < Style.width:  # the paths do not fit into columns
        for row in rows:
            yield from style.wrapped(", ".join(row), "  ", "    ")
    else:
        yield style.table(rows)


_INTRODUCTION = (
    f"Published values, each of {ANOTHER_MACHINE}. To compare one with results: seatrial compare reference:ID DIR."
)


def references_text(references: Iterable[Reference]) -> str:
    """All references. A value that contradicts another one of its source is marked with "!"."""
    sources = grouped((source_text(reference), reference) for reference in references)
    return "\n\n".join([_INTRODUCTION, *(_source_block(source, those) for source, those in sources.items())])


def _source_block(source: str, references: Sequence[Reference]) -> str:
    shared = _shared(references)
    common = [text if name == "machine" else f"{name.replace('_', ' ')}: {text}" for name, text in shared.items()]
    lines = [source, *(f"  {text}" for text in common)]
    widest_id = max(len(reference.id) for reference in references)
    widest_value = max(len(value_text(reference)) for reference in references)
    for reference in references:
        mark = "!" if reference.contradicts else " "
        what = " ".join(filter(None, (reference.benchmark, reference.figure, settings(reference.parameters))))
        value = f"{value_text(reference).ljust(widest_value)} {arrow(reference.better)}"
        lines.append(f"{mark} {reference.id.ljust(widest_id)}  {value}  {what}")
        machine = "" if "machine" in shared else machine_of(reference)
        configuration = configuration_text(reference, without=shared)
        lines += [f"      {note}" for note in (machine, configuration, reference.remark) if note]
        if reference.contradicts:
            lines.append(f"      {contradiction_text(reference)}")
    return "\n".join(lines)


def _shared(references: Sequence[Reference]) -> Mapping[str, str]:
    """The configuration that all references of a source have in common, without `of` and `over`."""
    first = references[0].configuration
    return {
        name: text
        for name, text in first.items()
        if name not in ("of", "over") and all(other.configuration.get(name) == text for other in references)
    }
