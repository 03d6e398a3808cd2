"""Lists of host names as Slurm, Flux and LLNL's hostlist write them: "n[001-004,7],login1".

Grammar: Slurm, scontrol(1) `show hostnames`. A name may contain several brackets ("r[1-2]n[01-16]").
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import product

MAX_NAMES = 1_000_000
"""A longer list is damaged or malicious: "n[0-999999999]" must not fill memory."""

_SPAN = re.compile(r"(\d{1,18})(?:-(\d{1,18}))?\Z", re.ASCII)
_NUMBERED = re.compile(r"(.*?)(\d{1,18})(\D*)\Z", re.DOTALL | re.ASCII)


_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9._-]|\A[^A-Za-z0-9]")


def host_in_names(host: str) -> str:
    """A host's name as a part of the names of files: the kernel allows any bytes in it, such as "../x" and "-rf"."""
    return _NOT_IN_NAMES.sub("_", host) or "host"


def expand_hosts(text: str) -> tuple[str, ...]:
    """The names of a list, in its order. Raises ValueError for a list that is not valid, or too long."""
    names: list[str] = []
    for item in _items(text):
        names += _expanded(item, MAX_NAMES - len(names))
    return tuple(names)


def _items(text: str) -> Iterator[str]:
    """The parts between commas outside brackets."""
    start = depth = 0
    for at, letter in enumerate(text):
        if letter in "[]":
            depth += 1 if letter == "[" else -1
            if depth not in (0, 1):
                raise ValueError(f"brackets do not match in {text[:200]!r}")
        elif letter == "," and not depth:
            yield text[start:at].strip()
            start = at + 1
    if depth:
        raise ValueError(f"a bracket is not closed in {text[:200]!r}")
    if last := text[start:].strip():
        yield last


def _expanded(item: str, most: int) -> list[str]:
    parts = re.split(r"\[([^\[\]]*)\]", item)
    if not item or any(re.search(r"[\s=\"']", part) for part in parts[::2]):
        raise ValueError(f"{item[:200]!r} is not a host name")
    choices: list[list[str]] = []
    number = 1
    for index, part in enumerate(parts):
        choices.append([part] if index % 2 == 0 else _numbers(part, most // number))
        number *= len(choices[-1])
        if number > most:
            raise ValueError(f"more than {MAX_NAMES} names in {item[:200]!r}")
    return ["".join(chosen) for chosen in product(*choices)]


def _numbers(text: str, most: int) -> list[str]:
    """The numbers in brackets, with their leading zeros."""
    numbers: list[str] = []
    for span in text.split(","):
        match = _SPAN.match(span.strip())
        if match is None:
            raise ValueError(f"[{text[:200]}] is not a list of numbers")
        first, last = int(match[1]), int(match[2] or match[1])
        if last < first:
            raise ValueError(f"{span.strip()} in [{text[:200]}] is reversed")
        if last - first >= most - len(numbers):
            raise ValueError(f"more than {MAX_NAMES} names in [{text[:200]}]")
        numbers += [str(number).zfill(len(match[1])) for number in range(first, last + 1)]
    return numbers


def fold_hosts(names: Iterable[str]) -> str:
    """The list of these names, each once, sorted: "login1,n[001-004,007]"; only the last number is folded."""
    return ",".join(host_spans(names))


def host_spans(names: Iterable[str]) -> list[str]:
    """The items of that list: "login1" and "n[001-004,007]"."""
    plain: list[str] = []
    found: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(names):
        match = _NUMBERED.match(name)
        if match is None:
            plain.append(name)
        else:
            found.setdefault((match[1], match[3]), []).append(match[2])
    texts = [(name, name) for name in plain]
    texts += [(head, _spanned(head, tail, _spans(numbers))) for (head, tail), numbers in found.items()]
    return [text for _, text in sorted(texts)]


def _spans(numbers: Iterable[str]) -> list[str]:
    """Numbers as spans; "09" and "10" are of one width, "9" and "10" have none."""
    texts = list(numbers)
    padded = {len(text) for text in texts if text.startswith("0") and len(text) > 1}
    by_width: dict[int, list[int]] = {}
    for text in texts:
        by_width.setdefault(len(text) if len(text) in padded else 0, []).append(int(text))
    return [
        str(first).zfill(width) if first == last else f"{str(first).zfill(width)}-{str(last).zfill(width)}"
        for width, found in sorted(by_width.items())
        for first, last in _runs(sorted(found))
    ]


def by_number(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts "n9" before "n10"."""
    return tuple((text, int(digits or 0)) for text, digits in re.findall(r"(\D*)(\d{0,18})", name, re.ASCII))


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], number)
        else:
            runs.append((number, number))
    return runs


def _spanned(head: str, tail: str, spans: list[str]) -> str:
    if len(spans) == 1 and "-" not in spans[0]:
        return f"{head}{spans[0]}{tail}"
    return f"{head}[{','.join(spans)}]{tail}"
