"""Provenance: builds, run conditions, sources and their disagreements."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seatrial.analysis.rules.finding import finite_numbers
from seatrial.benchmarks.declared import typed_command
from seatrial.model.machine.machine import Machine
from seatrial.model.spelling import NO_VALUE, cpu_list, plain, show, show_fact, show_percent, show_range
from seatrial.report.blocks import Cell, Cells, Table, headings, right
from seatrial.report.pages.view import TrialView
from seatrial.report.panels.charts import Panel

_MOST_VALUES = 3
_LONG_VALUE = 300
"""Values beyond this many characters are folded, and cut on paper: flags for each feature of a processor."""
_MOST_FACTS = 400
"""The page lists this many facts; `seatrial discover --format json` prints all of them."""


def _context(view: TrialView) -> Mapping[str, Any]:
    trial = view.trial
    conditions, commands = _conditions_and_commands(view)
    return {
        "trial": trial,
        "machine": trial.machine,
        "environments": [_environment(key, facts) for key, facts in trial.environments.items()],
        "conditions": conditions,
        "commands": commands,
        "disagreements": _disagreements(trial.machine),
        "facts": _facts(trial.machine),
    }


def _environment(key: str, facts: Mapping[str, Any]) -> tuple[str, Sequence[tuple[str, str, bool]]]:
    """(name, lines) of one environment: all its facts, the known ones first. A line is (label, value, whether it is
    long)."""
    known = ("compiler", "flags", "target", "libc")
    names = [name for name in known if name in facts] + [name for name in facts if name not in (*known, "name")]
    lines = [("key", key), *((name.replace("_", " "), plain(facts[name])) for name in names)]
    return str(facts.get("name", key)), [(*line, len(line[1]) > _LONG_VALUE) for line in lines]


def _conditions_and_commands(view: TrialView) -> tuple[Table | None, list[tuple[str, str]]]:
    """The conditions during the repeats of each experiment: load, steal, clock, CPUs of its threads, program notes. And
    (experiment, the exact command of its first repeat; of a user's program, the command as typed)."""
    rows: list[Cells] = []
    commands: list[tuple[str, str]] = []
    for benchmark in view.benchmarks:
        for result in benchmark.results:
            seen = list(view.seen(result.id, sorted(view.repeats(result.id))))
            if not seen:
                continue
            steal = finite_numbers(entry.get("steal_share") for entry in seen)
            rows.append(
                [
                    benchmark.labels[result.id],
                    Cell.number(len(seen)),
                    _span(finite_numbers(entry.get("load_1m") for entry in seen), "{:.1f}"),
                    show_percent(max(steal)) if steal else NO_VALUE,
                    _clocks(seen),
                    _affinities(entry.get("affinity") for entry in seen),
                    ", ".join(_notes(seen)) or NO_VALUE,
                ]
            )
            command = next((c for one in seen if (c := one.get("command"))), None)
            if command is not None:
                experiment = result.experiment
                words = typed_command(experiment.benchmark, experiment.parameters, command)
                commands.append((benchmark.labels[result.id], plain(command) if words is None else shlex.join(words)))
    numbers = right("Repeats", "Load", "Highest steal", "Clock")
    columns = headings("Experiment", *numbers, "CPUs of the threads", "Notes of the program")
    return Table.if_any("Conditions during the runs", columns, rows), commands


def _notes(seen: Sequence[Mapping[str, Any]]) -> list[str]:
    """The program's notes over all repeats: up to three different values of each, else their number."""
    values: dict[str, dict[str, None]] = {}
    distinct: dict[int, object] = {id(found): found for entry in seen if (found := entry.get("notes"))}
    for notes in distinct.values():  # stored records share equal notes
        if isinstance(notes, Mapping):
            for name, value in notes.items():
                values.setdefault(name, {})[plain(value)] = None
    return [
        f"{name} {' or '.join(texts)}" if len(texts) <= _MOST_VALUES else f"{name} ({len(texts)} different values)"
        for name, texts in values.items()
    ]


def _span(numbers: Sequence[float], form: str) -> str:
    if not numbers:
        return NO_VALUE
    low, high = form.format(min(numbers)), form.format(max(numbers))
    return low if low == high else f"{low} to {high}"


def _clocks(seen: Sequence[Mapping[str, Any]]) -> str:
    found = [entry.get("clock_Hz") for entry in seen]
    clocks = finite_numbers(clock for value in found for clock in (value if isinstance(value, list) else [value]))
    if not clocks:
        return NO_VALUE
    return show_range(min(clocks), max(clocks), "Hz") if min(clocks) != max(clocks) else show(clocks[0], "Hz")


def _affinities(values: Iterable[object]) -> str:
    """Distinct placements: "0-1" is a thread on CPU 0 and one on CPU 1; a mask of several CPUs is in brackets."""
    spelled: dict[str, None] = {}
    for value in {id(value): value for value in values}.values():  # stored records share equal masks
        if isinstance(value, list | tuple) and value:
            spelled[_placement(value)] = None
    return " or ".join(list(spelled)[:3]) + (f" or {len(spelled) - 3} others" if len(spelled) > 3 else "") or NO_VALUE


def _placement(masks: Sequence[object]) -> str:
    sets = [tuple(mask) if isinstance(mask, list | tuple) else (mask,) for mask in masks]
    if all(len(mask) == 1 for mask in sets):
        return cpu_list([mask[0] for mask in sets])
    return " ".join(f"[{cpu_list(list(mask))}]" for mask in dict.fromkeys(sets))


def _disagreements(machine: Machine) -> Table | None:
    rows = [
        (disagreement.name, show_fact(disagreement.name, fact), fact.source)
        for disagreement in machine.disagreements()
        for fact in disagreement.facts
    ]
    return Table.if_any("Disagreements between sources", ["Fact", "Value", "Source"], rows)


def _facts(machine: Machine) -> Table | None:
    """All facts about the machine and its devices, up to the most that the page lists."""
    owners = [("machine", machine.facts), *((device.id, device.facts) for device in machine.devices)]
    rows = [
        (owner, name, show_fact(name, fact), fact.kind.value, fact.source)
        for owner, facts in owners
        for name, statements in facts.items()
        for fact in statements
    ]
    caption = f"Every fact and its source ({len(rows)})"
    if len(rows) > _MOST_FACTS:
        caption = f"The first {_MOST_FACTS} of {len(rows)} facts; `seatrial discover --format json` prints all of them"
    return Table.if_any(caption, ["Device", "Fact", "Value", "Kind", "Source"], rows[:_MOST_FACTS])


PROVENANCE_PANEL = Panel("provenance", "Provenance", _context)
