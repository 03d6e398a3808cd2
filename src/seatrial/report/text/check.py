"""Findings and bindings as text for a terminal: the most severe first, then the CPUs next to each device."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.rank_layout import Binding, RankLayout
from seatrial.analysis.rules.devices import spans
from seatrial.model.machine.fact import Finding, Severity
from seatrial.model.spelling import count, cpu_list
from seatrial.report.blocks import Detail, Tone
from seatrial.report.text.terminal import PLAIN, Style, clean, joined
from seatrial.report.trial_verdict import findings_counted

_GROUPS = ((Severity.ERROR, "error"), (Severity.WARNING, "warning"), (Severity.INFO, "note"))
_TONES: dict[Severity, Tone] = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "near"}
_MOST_PROBLEMS = 8
_MOST_EVIDENCE = 3
"""Number of evidence lines shown; `--verbose` and the JSON have all."""


def check_text(
    findings: Sequence[Finding],
    bindings: Sequence[Binding],
    layout: RankLayout | None = None,
    style: Style = PLAIN,
    detail: Detail = Detail.USUAL,
) -> str:
    """The output of `seatrial check` without a trailing newline; in brief, the number of findings and a line for each
    error and warning.

    Text from firmware and dumps is shown without control characters. Commands of bindings and layouts are on separate
    lines and are never wrapped, so that they can be copied.
    """
    ordered = [finding for severity, _ in _GROUPS for finding in findings if finding.severity is severity]
    if detail is Detail.BRIEF:
        problems = [one for one in ordered if one.severity is not Severity.INFO]
        return "\n".join([_summary(findings, style), *(_brief(one, style) for one in problems)])
    blocks = [_summary(findings, style), *(finding_text(finding, style, detail) for finding in ordered)]
    return joined([*blocks, _bindings(bindings, style), _layout(layout, style) if layout is not None else ""])


def problems_text(findings: Sequence[Finding], style: Style = PLAIN) -> str:
    """A line for each error and warning, the most severe and costly first, and the number of the others."""
    ordered = [finding for severity, _ in _GROUPS for finding in findings if finding.severity is severity]
    problems = [one for one in ordered if one.severity is not Severity.INFO][:_MOST_PROBLEMS]
    lines = [line for one in problems for line in _wrapped(style, _brief(one, style), "", "  ")]
    more = len(ordered) - len(problems)
    return "\n".join([*lines, *([f"and {count(more, 'more finding')} on the page"] if more else [])])


def _summary(findings: Sequence[Finding], style: Style) -> str:
    return style.paint(findings_counted(findings) or "no findings", "heading")


def _word(finding: Finding, style: Style) -> str:
    return style.paint(dict(_GROUPS)[finding.severity], _TONES[finding.severity])


def _brief(finding: Finding, style: Style) -> str:
    return f"{_word(finding, style)} {clean(finding.rule)}: {clean(' '.join(finding.observation.split()))}"


def finding_text(finding: Finding, style: Style = PLAIN, detail: Detail = Detail.USUAL) -> str:
    """One finding: what was observed, what it means, what to do, and its evidence (in full, or the first lines)."""
    head = f"{_word(finding, style)} {style.paint(clean(finding.rule), 'heading')}"
    lines = [head, *_wrapped(style, finding.observation, "  ")]
    lines += _wrapped(style, finding.diagnosis, "  means:    ")
    lines += _wrapped(style, finding.remedy, "  do:       ")
    evidence = _wrapped(style, finding.evidence, "  evidence: ")
    if len(evidence) > _MOST_EVIDENCE and detail is not Detail.FULL:
        evidence = [*evidence[: _MOST_EVIDENCE - 1], f"{' ' * 12}... (all of it with --verbose)"]
    lines += [style.paint(line, "faint") for line in evidence]
    return "\n".join(lines)


def _bindings(bindings: Sequence[Binding], style: Style) -> str:
    if not bindings:
        return ""
    lines = [style.paint("Bindings", "heading")]
    for names, binding in _grouped(bindings):
        numa = "unknown" if binding.numa is None else str(binding.numa)
        cpus = "unknown" if binding.cpus is None else cpu_list(binding.cpus)
        lines += _wrapped(style, f"{spans(names)}: NUMA node {numa}, CPUs {cpus}", "  ", "    ")
        lines += [f"    {binding.numactl}"] if binding.numactl is not None else []
    if any(binding.numactl for binding in bindings):
        note = "With Open MPI: `mpirun --bind-to none numactl ...`; for Slurm and MPICH see `--format json`."
        lines += _wrapped(style, note, "  ")
    return "\n".join(lines)


def _grouped(bindings: Sequence[Binding]) -> list[tuple[list[str], Binding]]:
    """Devices with the same CPUs and NUMA node share a row."""
    rows: dict[tuple[object, ...], tuple[list[str], Binding]] = {}
    for binding in bindings:
        key = (binding.cpus, binding.numa)
        rows.setdefault(key, ([], binding))[0].append(binding.device)
    return list(rows.values())


def _layout(layout: RankLayout, style: Style) -> str:
    rows = [("rank", "GPU", "adapter", "NUMA", "CPUs")]
    for place in layout.places:
        numa = "-" if place.numa is None else str(place.numa)
        devices = (clean(place.gpu or "-"), clean(place.adapter or "-"))
        rows.append((str(place.rank), *devices, numa, cpu_list(place.cpus)))
    lines = [style.paint(f"Layout of {count(len(layout.places), 'rank')}", "heading")]
    lines += [*_wrapped(style, f"{layout.how}.", "  "), style.table(rows, has_head=True)]
    for name, command in (("Open MPI", layout.mpirun), ("Slurm", layout.srun), ("MPICH", layout.mpich)):
        if command is not None:
            lines += [f"  {style.paint(f'{name}:', 'faint')}", f"    {command}"]
    if layout.rankfile is not None:
        lines += [f"  {style.paint('Open MPI, as a rankfile:', 'faint')}"]
        lines += [f"    {line}" for line in layout.rankfile.splitlines()]
    return "\n".join(lines)


def _wrapped(style: Style, text: str, lead: str, then: str | None = None) -> list[str]:
    """The wrapped paragraphs of a text; later lines begin with `then`."""
    then = " " * len(lead) if then is None else then
    lines: list[str] = []
    for paragraph in text.splitlines():
        lines += style.wrapped(clean(paragraph), then if lines else lead, then)
    return lines
