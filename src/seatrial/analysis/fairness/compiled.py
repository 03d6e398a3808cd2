"""Differences in how the measured programs were compiled, where their files state it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.fairness.noticed import Kind, Noticed, contrast, counted

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
        yield contrast(Kind.PROGRAM, f"{name} built with", *shown)
    # The section .comment names a compiler in other words than debug information does.
    is_alike = ("" in flags[0]) == ("" in flags[1])
    compilers = [Counter({own: n for (own, _), n in side.items()}) for side in (first, second)]
    if is_alike and all("" not in side for side in compilers) and set(compilers[0]) != set(compilers[1]):
        yield contrast(Kind.PROGRAM, f"{name} compiled by", *(counted(side) for side in compilers))


def _apart(first: str, second: str) -> tuple[str, str]:
    """The flags that only one side has, in their order; both in full if they differ in order only."""
    words = first.split(), second.split()
    only = [
        " ".join(word for word in own if word in (Counter(own) - Counter(other))) for own, other in (words, words[::-1])
    ]
    if not any(only):
        return first, second
    return only[0] or "without these", only[1] or "without these"
