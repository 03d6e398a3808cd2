"""The text output of `seatrial list`: what can be measured here, then the tools that programs are built with; and
references: a block for each source, a line for each value, its remarks below."""

from __future__ import annotations

import re
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
from seatrial.report.blocks import Tone
from seatrial.report.text.terminal import PLAIN, Style

_TONES: dict[str, Tone] = {"ready": "direct", "unverified": "near"}
_STATES = {"absent": "not installed"}
_SETTINGS = {
    "ready": "",
    "unverified": " (never tried on such a machine)",
    "unsupported": " cannot be changed here",
}
_MOST_QUESTIONS = 12
"""An area with more benchmarks is listed by their names, so that a listing fits a screen."""
_MORE = "`seatrial list NAME` shows parameters, figures and checks of a benchmark, `seatrial list AREA` what is missing"
_LIMITS = {"physical": "physical limit", "measured": "measured ceiling", None: "no limit"}


def list_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """What fits a screen: the benchmarks that can run, by area, those of a large area by their names alone; what cannot
    run, by its cause; the tools by their names."""
    areas = _by_area(document["benchmarks"])
    short = [one for own in areas.values() if len(own) <= _MOST_QUESTIONS for one in own]
    width = max((len(benchmark["name"]) for benchmark in short), default=0)
    lines: list[str] = []
    for area, own in areas.items():
        lines += _names(area, own, style) if len(own) > _MOST_QUESTIONS else _questions(own, width, style)
    lines += _unsupported(document["benchmarks"], style)
    return "\n".join([*lines, "", *_tools(document, style), *style.wrapped(_MORE)])


def area_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """The question of each benchmark of an area that can run; what each of the others needs."""
    benchmarks = document["benchmarks"]
    able = [one for own in _by_area(benchmarks).values() for one in own]
    width = max((len(benchmark["name"]) for benchmark in able), default=0)
    return "\n".join([*_questions(able, width, style), *_needs(benchmarks, style)])


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
    for one in document.get("machine_settings", ()):
        why = f": {one['need']}" if one["need"] else ""
        lines += style.wrapped(f"environment.{one['name']} ({one['accepts']}): {one['state']}{why}", then="  ")
    for use, command in (("import", "seatrial import"), ("discover", "seatrial discover --from")):
        own = [one for one in document.get("formats", ()) if one["use"] == use]
        lines += style.wrapped(f"formats of `{command} KIND=FILE`: {', '.join(map(_format, own))}", then="  ")
    return "\n".join(lines)


def _format(one: Mapping[str, Any]) -> str:
    return f"{one['kind']} (format from documentation)" if one["from_documentation"] else str(one["kind"])


def names_text(document: Mapping[str, Any]) -> str:
    """The name of each benchmark that is ready, a line each."""
    return "\n".join(one["name"] for one in document["benchmarks"] if one["state"] == "ready")


def details_text(document: Mapping[str, Any], style: Style = PLAIN) -> str:
    """Each benchmark in full: its question, state, parameters, figures and checks."""
    return "\n\n".join("\n".join(_details(benchmark, style)) for benchmark in document["benchmarks"])


def _by_area(benchmarks: Sequence[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    """Those that can run, the ready ones first."""
    able = [one for one in benchmarks if one["state"] != "unsupported"]
    found = grouped((one["area"], one) for one in sorted(able, key=lambda one: one["state"] != "ready"))
    return dict(sorted(found.items(), key=lambda item: (item[1][0]["state"] != "ready", item[0])))


def _questions(benchmarks: Iterable[Mapping[str, Any]], width: int, style: Style) -> Iterator[str]:
    for benchmark in benchmarks:
        mark = "" if benchmark["state"] == "ready" else f"[{benchmark['state']}] "
        lead = f"{benchmark['name']:{width}}  "
        first, *others = style.wrapped(mark + benchmark["question"], lead, " " * len(lead))
        tone = _TONES.get(benchmark["state"])
        yield first.replace(mark, f"{style.paint(mark.rstrip(), tone)} ", 1) if mark and tone else first
        yield from others


def _names(area: str, benchmarks: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    states = {one["state"] for one in benchmarks}
    state = f", {states.pop()}" if len(states) == 1 and "ready" not in states else ""
    yield style.paint(f"{area} ({len(benchmarks)} benchmarks{state}; their questions: seatrial list {area})", "heading")
    yield from style.wrapped(" ".join(one["name"] for one in benchmarks), "  ")


def _unsupported(benchmarks: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """The benchmarks of each cause. What to do about it is in `area_text`."""
    causes = grouped((_cause(one["need"]), one["name"]) for one in benchmarks if one["state"] == "unsupported")
    if causes:
        yield style.paint("not available here (what to do: seatrial list NAME)", "heading")
    for cause, names in causes.items():
        yield from style.wrapped(f"{cause}: {' '.join(names)}", "  ", "    ")


def _cause(need: str) -> str:
    """What many of them have in common: `program is not on PATH` of `hpcg: xhpcg is not on PATH; build it`."""
    what, _, rest = need.partition(": ")
    why = rest.partition("; ")[0]
    if what.casefold() not in why.casefold():
        return f"needs {what}" if rest else f"needs {need}"
    return re.sub(re.escape(what), "program" if why.startswith(what) else "it", why, flags=re.IGNORECASE)


def _needs(benchmarks: Sequence[Mapping[str, Any]], style: Style) -> Iterator[str]:
    """What each cause needs in full, with the benchmarks that it concerns."""
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


def _tools(document: Mapping[str, Any], style: Style) -> Iterator[str]:
    """A line for each kind of tool."""
    yield style.paint("tools (the first is the default; their paths: seatrial list -v)", "heading")
    runtimes = grouped((one["state"], one["name"]) for one in document.get("containers", ()))
    kinds: dict[str, Sequence[str]] = {
        "compilers (environment.compiler)": [text.partition(" (")[0] for text in document["compilers"]],
        "MPI libraries (environment.mpi)": [
            f"{one['name']} ({one['title']})" if one["state"] == "ready" else f"{one['title']}: needs {one['need']}"
            for one in document["mpis"]
        ],
        "BLAS libraries (blas)": list(dict.fromkeys(one["name"] for one in document["blas"])),
    }
    if own := [one for one in document["environments"] if one["site"]]:
        kinds["site file"] = [one["name"] + (f": needs {one['need']}" if one["need"] else "") for one in own]
    for kind, names in kinds.items():
        yield from style.wrapped(f"{kind}: {', '.join(names) or 'none'}", "  ", "    ")
    if runtimes:
        states = (f"{', '.join(names)} {_STATES.get(state, state)}" for state, names in runtimes.items())
        yield from style.wrapped(f"containers (environment.container_runtime): {'; '.join(states)}", "  ", "    ")
    if settings := document.get("machine_settings", ()):
        can = grouped((one["state"], one["name"]) for one in settings)
        texts = (f"{', '.join(can[state])}{words}" for state, words in _SETTINGS.items() if state in can)
        yield from style.wrapped(f"settings of the machine (environment.NAME): {'; '.join(texts)}", "  ", "    ")
    for guest in document.get("guests", ()):
        why = f": {guest['need'].partition(';')[0]}" if guest["need"] else ""
        text = f"virtual machine (environment.vm): {guest['name']} {guest['state']}{why}"
        yield from style.wrapped(text, "  ", "    ")


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
    if style.width < Style.width:  # the paths do not fit into columns
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
