"""Findings and bindings as text for a terminal: the worst first, then where to run beside each device."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from seatrial.analysis.bindings import Binding
from seatrial.analysis.rank_layout import Layout
from seatrial.analysis.rules.devices import spans
from seatrial.model.finding import Finding, Severity
from seatrial.report.text.results import columns
from seatrial.report.text.terminal import COLOURS, PLAIN, Style, clean
from seatrial.report.units import count, cpu_list

WIDTH = 118

_GROUPS = ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note"))
_MOST_EVIDENCE = 3
"""Lines of the evidence that are shown; all of it is in the JSON."""


def _code(style: Style, severity: Severity) -> str:
    return {Severity.ERROR: style.error, Severity.WARNING: style.warning, Severity.INFO: style.near}[severity]


def check_text(
    findings: Sequence[Finding], bindings: Sequence[Binding], layout: Layout | None = None, colour: bool = False
) -> str:
    """The answer of `seatrial check` without a trailing newline; `colour` adds ANSI codes for a terminal.

    Text from firmware and dumps is shown without control characters. Commands of bindings and layouts stand on lines of
    their own and are never wrapped, so that they can be copied.
    """
    style = COLOURS if colour else PLAIN
    blocks = [_summary(findings, style)]
    blocks += [
        _finding(finding, word, style)
        for severity, word in _GROUPS
        for finding in findings
        if finding.severity is severity
    ]
    blocks += [_bindings(bindings, style), _layout(layout, style) if layout is not None else ""]
    return "\n\n".join(block for block in blocks if block)


def _summary(findings: Sequence[Finding], style: Style) -> str:
    numbers = [(word, sum(f.severity is severity for f in findings)) for severity, word in _GROUPS]
    counted = [count(number, word) for word, number in numbers if number]
    return f"{style.heading}{', '.join(counted) or 'no findings'}{style.end}"


def _finding(finding: Finding, word: str, style: Style) -> str:
    head = f"{_code(style, finding.severity)}{word}{style.end} {style.heading}{clean(finding.rule)}{style.end}"
    lines = [head, *_wrapped(finding.observation, "  ")]
    lines += _wrapped(finding.diagnosis, "  means:    ")
    lines += _wrapped(finding.remedy, "  do:       ")
    evidence = _wrapped(finding.evidence, "  evidence: ")
    if len(evidence) > _MOST_EVIDENCE:
        evidence = [*evidence[: _MOST_EVIDENCE - 1], f"{' ' * 12}... (all of it with --format json)"]
    lines += [f"{style.faint}{line}{style.end}" for line in evidence]
    return "\n".join(lines)


def _bindings(bindings: Sequence[Binding], style: Style) -> str:
    if not bindings:
        return ""
    lines = [f"{style.heading}Bindings{style.end}"]
    for names, binding in _alike(bindings):
        numa = "unknown" if binding.numa is None else str(binding.numa)
        cpus = "unknown" if binding.cpus is None else cpu_list(binding.cpus)
        lines += _wrapped(f"{spans(names)}: NUMA node {numa}, CPUs {cpus}", "  ", "    ")
        lines += [f"    {binding.numactl}"] if binding.numactl is not None else []
    if any(binding.numactl for binding in bindings):
        note = "With Open MPI: `mpirun --bind-to none numactl ...`; for Slurm and MPICH see `--format json`."
        lines += _wrapped(note, "  ")
    return "\n".join(lines)


def _alike(bindings: Sequence[Binding]) -> list[tuple[list[str], Binding]]:
    """Devices with the same place share a row."""
    rows: dict[tuple[object, ...], tuple[list[str], Binding]] = {}
    for binding in bindings:
        key = (binding.cpus, binding.numa)
        rows.setdefault(key, ([], binding))[0].append(binding.device)
    return list(rows.values())


def _layout(layout: Layout, style: Style) -> str:
    rows = [("rank", "GPU", "adapter", "NUMA", "CPUs")]
    rows += [
        (
            str(place.rank),
            clean(place.gpu or "-"),
            clean(place.adapter or "-"),
            "-" if place.numa is None else str(place.numa),
            cpu_list(place.cpus),
        )
        for place in layout.places
    ]
    lines = [f"{style.heading}Layout of {count(len(layout.places), 'rank')}{style.end}"]
    lines += [*_wrapped(f"{layout.how}.", "  "), columns(rows)]
    for name, command in (("Open MPI", layout.mpirun), ("Slurm", layout.srun), ("MPICH", layout.mpich)):
        if command is not None:
            lines += [f"  {style.faint}{name}:{style.end}", f"    {command}"]
    if layout.rankfile is not None:
        lines += [f"  {style.faint}Open MPI, as a rankfile:{style.end}"]
        lines += [f"    {line}" for line in layout.rankfile.splitlines()]
    return "\n".join(lines)


def _wrapped(text: str, lead: str, then: str | None = None) -> list[str]:
    """Wrapped at WIDTH between words only, so that no path or option is cut; later lines begin with `then`."""
    then = " " * len(lead) if then is None else then
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines += textwrap.wrap(
            clean(paragraph),
            WIDTH,
            initial_indent=then if lines else lead,
            subsequent_indent=then,
            break_long_words=False,
            break_on_hyphens=False,
        )
    return lines
