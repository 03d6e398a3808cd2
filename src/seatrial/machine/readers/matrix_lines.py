"""The lines of a text with matrices of devices, restored to the tool's layout.

Documentation shows matrices as Markdown tables, often with reordered columns: a table with one column of row labels,
and devices or affinities in all others, is converted to the tool's layout cell by cell. Wrapped lines are joined by
`matrix_wraps`. Everything else stays unchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from seatrial.machine.readers.dump import Line, read_lines
from seatrial.machine.readers.matrix_wraps import unwrapped
from seatrial.machine.readers.topology_matrix import CPU_AFFINITY, GPU_NUMA, MAX_LABELS, NUMA_AFFINITY

_RULE = re.compile(r":?-{1,200}:?\Z")
_DECORATION = " \t`*"


def read_matrix_lines(data: bytes, tool: str) -> tuple[Line, ...]:
    """All lines of a text, each matrix in the layout of the tool that prints it. Raises ParseError as `read_lines`."""
    return unwrapped(_without_tables(read_lines(data, tool)))


def _without_tables(lines: Sequence[Line]) -> tuple[Line, ...]:
    result = list(lines)
    at = 0
    while at + 1 < len(result):
        header, rule = _cells(result[at].text), _cells(result[at + 1].text)
        if header is None or rule is None or not all(_RULE.match(cell) for cell in rule):
            at += 1
            continue
        end = at + 2
        rows: list[list[str]] = []
        while end < len(result) and (row := _cells(result[end].text)) is not None and len(rows) <= MAX_LABELS:
            rows.append(row)
            end += 1
        texts = _matrix_texts(header, rows)
        if texts is not None:
            replaced = [texts[0], "", *texts[1:]]
            result[at:end] = [replace(line, text=text) for line, text in zip(result[at:end], replaced, strict=True)]
        at = end
    return tuple(result)


def _cells(text: str) -> list[str] | None:
    """The cells of a table row; None for any other line."""
    text = text.strip().lstrip("> ")
    if len(text) < 3 or text[0] != "|" or text[-1] != "|":
        return None
    return [cell.strip(_DECORATION) for cell in text[1:-1].split("|")]


def _matrix_texts(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str] | None:
    """The lines of a matrix as nvidia-smi prints it; None unless the table is exactly one matrix."""
    if not rows or any(len(row) != len(header) for row in rows):
        return None
    own = [
        column
        for column in range(len(header))
        if header[column] not in (CPU_AFFINITY, NUMA_AFFINITY, GPU_NUMA)
        and all(row[column] and row[column] in header for row in rows)
    ]
    if len(own) != 1:
        return None
    labels = {row[own[0]] for row in rows}
    devices = [column for column, name in enumerate(header) if name in labels and column != own[0]]
    places = [header.index(name) for name in (CPU_AFFINITY, NUMA_AFFINITY, GPU_NUMA) if name in header]
    if len(devices) + len(places) + 1 != len(header):
        return None
    texts = ["\t".join(["", *(header[column] for column in (*devices, *places))])]
    for row in rows:
        tails = [
            f"\t{row[column]}" if header[column] == GPU_NUMA and len(places) > 1 else row[column] for column in places
        ]
        texts.append("\t".join([row[own[0]], *(row[column] for column in devices), *tails]))
    return texts
