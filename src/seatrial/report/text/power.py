"""What can measure power and energy, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.model.machine.power import PartOut, PowerSource, Scope, SourceKind
from seatrial.model.results.energy import CommandEnergy, MeasuredEnergy, PhaseEnergy
from seatrial.model.spelling import count, show, show_percent
from seatrial.report.blocks import Detail
from seatrial.report.power_words import with_error
from seatrial.report.text.terminal import Style, plain, sentences

_MOST_PARTS = 12
"""Parts of a node that are listed one by one."""


def power_text(sources: Sequence[PowerSource], style: Style, detail: Detail, parts_out: Sequence[PartOut] = ()) -> str:
    """What measures the node first; then its parts, and what is not used."""
    nodes = [one for one in sources if one.usable and one.scope is Scope.NODE]
    parts = [one for one in sources if one.usable and one.scope is not Scope.NODE]
    unusable = [one for one in sources if not one.usable]
    first = f"{_first(sources, nodes, parts)}{_out_words(parts_out, ' {} out: {}.')}"
    lines = [style.paint(line, "heading") for line in style.wrapped(plain(first))]
    if detail is Detail.BRIEF:
        return "\n".join(lines)
    shown = len(parts) if detail is Detail.FULL else _MOST_PARTS
    rows = [_row(one) for one in (*nodes, *parts[:shown])]
    if rows:
        lines.append(style.table([["source", "scope", "reads", "changes every", "supply"], *rows], has_head=True))
    if len(parts) > shown:
        lines.append(f"  and {count(len(parts) - shown, 'part')} more (--verbose lists all)")
    notes = [f"{one.name} {one.why}" for one in (*nodes, *parts) if one.why.partition(" ")[0] != "measures"]
    lines += sentences(notes, style, "  note: ", "    ")
    lines += sentences((f"{one.name} {one.why}" for one in unusable), style, "  not used: ", "    ")
    return "\n".join(lines)


def _first(sources: Sequence[PowerSource], nodes: Sequence[PowerSource], parts: Sequence[PowerSource]) -> str:
    if nodes:
        return f"The power of the node is measured by {', '.join(one.name for one in nodes)}."
    if parts:
        return f"Nothing measures the node; {count(len(parts), 'sensor')} of its parts can be read."
    if sources:
        return "Nothing usable measures power here."
    return (
        "Nothing measures power here: no RAPL, hwmon or pm_counters in /sys, no GPU driver, no BMC. A BMC that is "
        "reached over the network goes into the site file (power:)."
    )


def _out_words(parts_out: Sequence[PartOut], form: str) -> str:
    """Number and names of the parts that are out, in these words; "" without any."""
    if not parts_out:
        return ""
    named = "; ".join(one.words for one in parts_out[:_MOST_PARTS])
    return form.format(f"{count(len(parts_out), 'part')} {'is' if len(parts_out) == 1 else 'are'}", named)


def _row(one: PowerSource) -> list[str]:
    reads = show(one.joules, "J") if one.kind is SourceKind.COUNTER else show(one.watts, "W")
    if one.accuracy is not None:
        reads += f" ± {show_percent(one.accuracy)}"
    changes = "?" if one.refresh_s is None else show(one.refresh_s, "s")
    return [
        plain(one.name),
        one.scope,
        reads,
        ", ".join([changes, *_times(one)]),
        one.supply if one.supply != "unknown" else "?",
    ]


def _times(one: PowerSource) -> Iterator[str]:
    if one.window_s:
        yield f"average of {show(one.window_s, 's')}"
    if one.age_s:
        yield f"{show(one.age_s, 's')} old"


def energy_text(found: CommandEnergy, style: Style, detail: Detail) -> str:
    """The energy of a command: by the sensor of the node first, else by those of its parts."""
    known = [one for one in found.energies if one.energy is not None]
    unknown = [one for one in found.energies if one.energy is None]
    first = f"{_energy_sentence(found, known)}{_out_words(found.parts_out, ' Meanwhile {} out: {}.')}"
    lines = [style.paint(line, "heading") for line in style.wrapped(plain(first))]
    if detail is Detail.BRIEF:
        return "\n".join(lines)
    rows = [_energy_row(one) for one in known]
    if rows:
        head = ["source", "energy", "mean power", "highest", "idle before", "after", "over idle"]
        lines.append(style.table([head, *rows], has_head=True))
    reasons: dict[str, list[str]] = {}
    for one in known:
        reasons.setdefault(one.reason, []).append(one.source)
    lines += sentences(
        (f"{', '.join(names)}: {why}" for why, names in reasons.items() if why), style, "  note: ", "    "
    )
    lines += sentences((f"no energy by {one.source}: {one.reason}" for one in unknown), style, "  ", "    ")
    return "\n".join(lines)


def phases_text(found: Sequence[PhaseEnergy], style: Style, detail: Detail) -> str:
    """The energy of what has run, by an external meter."""
    known = [one for one in found if one.energy.energy is not None]
    joules = sum(one.energy.energy or 0.0 for one in known)
    if known:
        used = with_error(joules, sum(one.energy.energy_error or 0.0 for one in known), "J")
        first = f"{len(known)} of {count(len(found), 'phase')} used {used} ({known[0].energy.source})."
    else:
        first = f"The meter shows no energy of {count(len(found), 'phase')}."
    lines = [style.paint(line, "heading") for line in style.wrapped(plain(first))]
    if detail is Detail.BRIEF:
        return "\n".join(lines)
    if known:
        rows = [[plain(one.what), *_energy_row(one.energy)[1:]] for one in known]
        head = ["what ran", "energy", "mean power", "highest", "idle before", "after", "over idle"]
        lines.append(style.table([head, *rows], has_head=True))
    reasons: dict[str, list[str]] = {}
    for one in found:
        reasons.setdefault(one.energy.reason, []).append(one.what)
    notes = (f"{names[0] if len(names) == 1 else count(len(names), 'phase')}: {why}" for why, names in reasons.items())
    return "\n".join([*lines, *sentences(notes, style, "  note: ", "    ")])


def _energy_sentence(found: CommandEnergy, known: Sequence[MeasuredEnergy]) -> str:
    status = f"exit status {found.exit_status}; " if found.exit_status else ""
    took = f"{status}{show(found.elapsed_s, 's')}"
    nodes = [one for one in known if one.scope is Scope.NODE]
    if nodes:
        best = min(nodes, key=lambda one: one.energy_error or 0.0)
        return (
            f"The node used {with_error(best.energy, best.energy_error, 'J')}, "
            f"{with_error(best.mean_power, best.mean_power_error, 'W')} on average ({took}; {best.source})."
        )
    if known:
        return f"Nothing measured the node; {count(len(known), 'part')} of it did ({took})."
    return f"The energy is not known ({took})."


def _energy_row(one: MeasuredEnergy) -> list[str]:
    return [
        plain(one.source),
        with_error(one.energy, one.energy_error, "J"),
        with_error(one.mean_power, one.mean_power_error, "W"),
        show(one.peak_power, "W"),
        show(one.idle_before, "W") if one.idle_before is not None else "?",
        show(one.idle_after, "W") if one.idle_after is not None else "?",
        show(one.energy_over_idle, "J") if one.energy_over_idle is not None else "?",
    ]
