"""Differences of environments, builds and parameters, and in how the measured programs were compiled, where their files
state it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.fairness.side import Noticed, SideFacts, Topic, contrast, counted
from seatrial.benchmarks import registry
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import State
from seatrial.model.spelling import plain, written

BUILD = "build"
_NAMES = frozenset({"name"})
"""Keys that repeat the rest of a document."""
_KEY_DIGITS = 12
_DEEPEST = 6
_REFUSED = frozenset({State.SKIPPED, State.UNSUPPORTED})


def environment_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Compiler, flags, target, C library, or an application's version; and the resulting build.

    Values of `variables` in the records of repeats take precedence over these.
    """
    first, second = (list(side.environments.values()) for side in (baseline, candidate))
    if first and second:
        flat = [_flat(documents) for documents in (first, second)]
        for name in dict.fromkeys((*flat[0], *flat[1])):
            values = [side.get(name) for side in flat]
            if values[0] != values[1]:
                kind, bare = (
                    (Topic.VARIABLE, name.removeprefix("variables "))
                    if name.startswith("variables ")
                    else (Topic.ENVIRONMENT, name)
                )
                yield contrast(kind, bare, *values)
    programs = [
        sorted({experiment.program for experiment in side.experiments.values()} - {""})
        for side in (baseline, candidate)
    ]
    if programs[0] != programs[1] and all(programs):
        yield contrast(Topic.PROGRAM, BUILD, *(", ".join(key[:_KEY_DIGITS] for key in keys) for keys in programs))


def parameter_differences(baseline: SideFacts, candidate: SideFacts) -> Iterator[Noticed]:
    """Parameters that differ between experiments that are compared with each other.

    Experiments that could not run here keep words such as "all" where others have numbers: no difference.
    """
    known_values: list[dict[str, list[Value]]] = [{}, {}]
    for side, values in zip((baseline, candidate), known_values, strict=True):
        for experiment in side.experiments.values():
            for name, value in experiment.parameters.items():
                if _was_not_resolved(side, experiment, name):
                    continue
                if value not in (known := values.setdefault(name, [])):
                    known.append(value)
    for name in dict.fromkeys((*known_values[0], *known_values[1])):
        shown = [
            ", ".join(sorted(spelled(name, value) for value in values[name])) if name in values else None
            for values in known_values
        ]
        if shown[0] != shown[1] and not any(_was_dropped(side, name) for side in (baseline, candidate)):
            yield contrast(Topic.PARAMETER, name, *shown)


def _was_not_resolved(side: SideFacts, experiment: Experiment, name: str) -> bool:
    """Whether a parameter of an experiment that was refused is still at its default."""
    records = side.records.get(experiment.id, ())
    benchmark = registry().get(experiment.benchmark)
    if benchmark is None or not records or not all(record.outcome.state in _REFUSED for record in records):
        return False
    return any(p.name == name and p.default == experiment.parameters[name] for p in benchmark.parameters)


def _was_dropped(side: SideFacts, name: str) -> bool:
    """Whether all experiments of a side left a parameter unresolved."""
    found = [experiment for experiment in side.experiments.values() if name in experiment.parameters]
    return bool(found) and all(_was_not_resolved(side, experiment, name) for experiment in found)


def spelled(name: str, value: Value) -> str:
    """A parameter's value as text; an argument list separated by spaces."""
    return plain(value) if isinstance(value, tuple) else written(name, value)


def _flat(documents: list[Mapping[str, Any]]) -> dict[str, str]:
    """Every leaf of the documents, named by its path: "compiler version"."""
    found: dict[str, Counter[str]] = {}
    for document in documents:
        for name, value in _leaves(document, ()):
            found.setdefault(name, Counter())[value] += 1
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _leaves(value: Any, way: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping) and len(way) < _DEEPEST:
        for name, item in value.items():
            if way or name not in _NAMES:
                yield from _leaves(item, (*way, str(name)))
        return
    name = " ".join(way).replace("_", " ") if way[:1] != ("variables",) else f"variables {' '.join(way[1:])}"
    yield name, "not set" if value is None else plain(value)


Stated = Mapping[str, Counter[tuple[str, str]]]
"""Program -> (compiler, flags) with the number of repeats; "" for what a file does not state."""
_LONGEST = 4000


def stated(files: Sequence[tuple[Mapping[str, Mapping[str, Any]], int]]) -> Stated:
    """What the programs of one side state, from sets of files with the number of their repeats."""
    found: dict[str, Counter[tuple[str, str]]] = {}
    for entries, times in files:
        for name, entry in entries.items():
            found.setdefault(name, Counter())[_text(entry.get("compiler")), _text(entry.get("flags"))] += times
    return found


def _text(value: object) -> str:
    return value[:_LONGEST] if isinstance(value, str) else ""


def compilation_differences(baseline: Stated, candidate: Stated) -> Iterator[tuple[str, Noticed]]:
    """(program that both sides have, or "", the difference in its flags or compiler).

    Programs of one name are compared, and the only one that each side has besides: two builds often have two names.
    """
    pairs = [(name, name) for name in baseline if name in candidate]
    alone = [
        [name for name in own if name not in other] for own, other in ((baseline, candidate), (candidate, baseline))
    ]
    if all(len(names) == 1 for names in alone):
        pairs.append((alone[0][0], alone[1][0]))
    for first, second in pairs:
        name = first if first == second else f"{first} / {second}"
        for difference in _of_pair(name, baseline[first], candidate[second]):
            yield first if first == second else "", difference


def _of_pair(name: str, first: Counter[tuple[str, str]], second: Counter[tuple[str, str]]) -> Iterator[Noticed]:
    flags = [Counter({own: n for (_, own), n in side.items()}) for side in (first, second)]
    if all("" not in side for side in flags) and set(flags[0]) != set(flags[1]):
        shown = _apart(*(counted(side) for side in flags))
        yield contrast(Topic.PROGRAM, f"{name} built with", *shown)
    # The section .comment names a compiler in other words than debug information does.
    is_alike = ("" in flags[0]) == ("" in flags[1])
    compilers = [Counter({own: n for (own, _), n in side.items()}) for side in (first, second)]
    if is_alike and all("" not in side for side in compilers) and set(compilers[0]) != set(compilers[1]):
        yield contrast(Topic.PROGRAM, f"{name} compiled by", *(counted(side) for side in compilers))


def _apart(first: str, second: str) -> tuple[str, str]:
    """The flags that only one side has, in their order; both in full if they differ in order only."""
    words = first.split(), second.split()
    only = [
        " ".join(word for word in own if word in (Counter(own) - Counter(other))) for own, other in (words, words[::-1])
    ]
    if not any(only):
        return first, second
    return only[0] or "without these", only[1] or "without these"
