"""Labels that parallel shells, launchers and logs put before each line of output.

pdsh and clush write "node01: ", srun -l "0: " (right-aligned), mpirun --tag-output "[1,0]<stdout>:", logs a time and a
level. A label counts only if several consecutive lines have it, so "NIC0: mlx5_0" or a line of prose stays unchanged.
Mixed lines of several nodes are sorted by node.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_TIME = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_LABEL = re.compile(
    rf"(?P<time>{_TIME}|\[(?:{_TIME})\])(?=[ \t])"
    r"|(?P<level>DEBUG|INFO|WARN(?:ING)?|ERROR|stdout|stderr)(?=[ \t:|])[:|]?"
    r"|(?P<rank>\[[A-Za-z0-9_.\-]{1,80}(?:,[0-9]{1,9}){0,3}\](?:<std(?:out|err)>:?|:|(?=[ \t])))"
    r"|(?P<host>[A-Za-z0-9][A-Za-z0-9_.\-]{0,80}(?:,[0-9]{1,9})?:)(?=[ \t]|\Z)",
    re.ASCII,
)
_PADDED_RANK = re.compile(r" {1,7}(?=\d{1,7}:(?: |\Z))")
_NO_HOST = frozenset({"Capabilities:"})  # lspci -v without its indentation
_MAX_LABELS = 4
_MIN_LINES = 3

_Keys = tuple[str, ...]
"""The parts of a label that are equal on all lines: the node or rank itself; only the presence of a time."""

_Labels = list[tuple[_Keys, int]]
"""The first label of a line, the first two, ..., each with the start of the text after them."""


def labels_of(text: str) -> _Labels:
    """The possible labels at the beginning of a line. The name of a node is the last one."""
    if not text or not (text[0].isalnum() or text[0] in " ["):
        return []  # most lines: blank, or indented by a tab
    padding = _PADDED_RANK.match(text)
    at = padding.end() if padding else 0
    found: _Labels = []
    keys: _Keys = ()
    while len(found) < _MAX_LABELS:
        match = _LABEL.match(text, at)
        if match is None or match[0] in _NO_HOST:
            break
        kind = match.lastgroup or ""
        keys = (*keys, kind if kind in ("time", "level") else match[0])
        found.append((keys, match.end()))
        at = match.end() + text.startswith(" ", match.end())
        if kind == "host":
            break
    return found


def labelled_lines(texts: Sequence[str]) -> list[tuple[int, int]]:
    """Index and text start of every line, in reading order.

    The start is 0 for a line without a label. The order is unchanged except for mixed lines of several nodes.
    """
    order: list[tuple[int, int]] = []
    run: list[tuple[int, _Labels]] = []
    for index, text in enumerate(texts):
        labels = labels_of(text)
        if labels:
            run.append((index, labels))
            continue
        if run:
            order += _one_run(run, texts)
            run = []
        order.append((index, 0))
    return order + _one_run(run, texts)


def _one_run(run: Sequence[tuple[int, _Labels]], texts: Sequence[str]) -> list[tuple[int, int]]:
    """Consecutive lines that may begin with labels, sorted by node if they do."""
    counts = Counter(keys for _, labels in run for keys, _ in labels)
    by_keys: dict[_Keys, list[tuple[int, int]]] = {}
    for index, labels in run:
        keys, at = next((one for one in reversed(labels) if counts[one[0]] >= _MIN_LINES), ((), 0))
        by_keys.setdefault(keys, []).append((index, at))
    order: list[tuple[int, int]] = []
    for keys, lines in by_keys.items():
        # The space after a label belongs to it only if every line has it: lines of a tree begin with spaces.
        is_spaced = bool(keys) and all(texts[index][at : at + 1] in ("", " ") for index, at in lines)
        order += [(index, at + is_spaced) for index, at in lines]
    return order
