"""A text as people paste it: compressed or in UTF-16, quoted, indented, with labels of launchers and logs before each
line. What stands before every line is taken off here, for all readers.

pdsh and clush write "node01: ", srun -l "0: " (right-aligned), mpirun --tag-output "[1,0]<stdout>:", MPICH "[0] ",
torchrun "[rank0]:", Docker Compose "trainer  | ", Ray "(Worker pid=7, ip=10.0.0.1) ", kubectl and logs a time and a
level, mails "> ". A label counts only if several lines have it, so "NIC0: mlx5_0" or a line of prose stays unchanged.
Lines of several nodes or ranks are kept apart, unless the reader knows that all of them write one log.
"""

from __future__ import annotations

import gzip
import io
import lzma
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

from msgspec.structs import replace

from seatrial.model.frozen import Frozen

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_DAY, _MONTH = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_TIME = (
    rf"\d{{4}}[-/]\d\d[-/]\d\d[T ]{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?"
    rf"|(?:{_DAY} )?{_MONTH} [ \d]\d {_CLOCK}(?: [A-Z]{{3,4}})?(?: \d{{4}})?|{_CLOCK}"
)
_LABEL = re.compile(
    rf"(?P<time>{_TIME}|\[(?:{_TIME})\])(?=[ \t\[]|\Z)"
    rf"|(?P<level>[DIWEF]\d{{4}} {_CLOCK} +\d{{1,20}} [\w./\-]{{1,80}}:\d{{1,7}}\](?=[ \t]|\Z)"  # glog, absl
    r"|(?:DEBUG|INFO|WARN(?:ING)?|ERROR|stdout|stderr)(?=[ \t:|])[:|]?)"
    r"|(?P<rank>\[(?:[A-Za-z0-9_./\-]{1,80}(?:,[0-9]{1,9}){0,3}|[0-9]{1,9},mpirank:[0-9]{1,9},[\w.\-]{1,60})\]"
    r"(?:<std(?:out|err)>:?|:|(?=[ \t]|\Z)))"
    r"|(?P<worker>\([A-Za-z][\w.:\-]{0,80} pid=\d{1,9}(?:, ip=[\w.:]{1,45})?\)(?=[ \t]|\Z))"
    r"|(?P<service>[A-Za-z0-9][A-Za-z0-9_.\-]{0,80} {1,40}\|(?=[ \t]|\Z))"
    r"|(?P<host>[A-Za-z0-9][A-Za-z0-9_.\-]{0,80}(?:,[0-9]{1,9})?:)(?=[ \t]|\Z)",
    re.ASCII,
)
_PADDING = re.compile(r" {1,8}(?=\d{1,7}:(?: |\Z)|\[[A-Za-z0-9_.,\-]{1,80}\])")
_NO_HOST = frozenset({"Capabilities:"})  # lspci -v without its indentation
_MAX_LABELS = 4
_MIN_LINES = 3
_MOST_SOURCES, _MOST_WITH_COMMON = 16384, 16
_ROW = re.compile(r"\s{0,200}[-+]?\d[\d.eE+-]*(?:\s+[-+]?(?:\d[\d.eE+-]*|nan|inf|N/A)){1,40}\s*", re.ASCII)
_QUOTE = re.compile(r"[ ]{0,3}((?:(?:>|&gt;)[ ]?)+)")
_ESCAPED = re.compile(r"^([ \t]*)\\(?=[#>\[])")

_OF_ALL = ("time", "level")
_Keys = tuple[str, ...]
"""The parts of a label that are equal on all lines: the node or rank itself; only the presence of a time."""

_Labels = list[tuple[_Keys, int]]
"""The first label of a line, the first two, ..., each with the start of the text after them."""


def labels_of(text: str) -> _Labels:
    """The possible labels at the beginning of a line. The name of a node is the last one."""
    if not text or not (text[0].isalnum() or text[0] in " [("):
        return []  # most lines: blank, or indented by a tab
    padding = _PADDING.match(text)
    at = padding.end() if padding else 0
    found: _Labels = []
    keys: _Keys = ()
    while len(found) < _MAX_LABELS:
        match = _LABEL.match(text, at)
        if match is None or match[0] in _NO_HOST:
            break
        kind = match.lastgroup or ""
        keys = (*keys, kind if kind in _OF_ALL else match[0])
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
    return [line for _, lines in _by_label(run, texts) for line in lines]


def _by_label(
    lines: Sequence[tuple[int, _Labels]], texts: Sequence[str], least: int = _MIN_LINES
) -> list[tuple[_Keys, list[tuple[int, int]]]]:
    """The lines of each label that `least` lines have, with the start of their texts; others have the label ()."""
    counts = Counter(keys for _, labels in lines for keys, _ in labels)
    # "[0] Level: 1": behind the label of every line, words that are repeated on a few lines are part of the text.
    deeper = Counter(longest[:-1] for _, labels in lines if counts[longest := labels[-1][0]] >= least)

    def is_label(keys: _Keys) -> bool:
        return counts[keys] >= least and (len(keys) == 1 or 2 * deeper[keys[:-1]] >= counts[keys[:-1]])

    by_keys: dict[_Keys, list[tuple[int, int]]] = {}
    for index, labels in lines:
        keys, at = next((one for one in reversed(labels) if is_label(one[0])), ((), 0))
        by_keys.setdefault(keys, []).append((index, at))
    found = []
    for keys, own in by_keys.items():
        # The space after a label belongs to it only if every line has it: lines of a tree begin with spaces.
        is_spaced = bool(keys) and all(texts[index][at : at + 1] in ("", " ") for index, at in own)
        found.append((keys, [(index, at + is_spaced) for index, at in own]))
    return found


class Unlabelled(Frozen):
    """The lines of one source without what stood before them.

    `numbers` are their numbers in the text as given, from 1; `taken_off` is what was taken off one of them.
    `label` is the name that a launcher gave the source ("": none). Without `is_ended`, the last line has no line break:
    it may have been cut off.
    """

    lines: tuple[str, ...]
    numbers: Sequence[int]
    is_ended: bool
    taken_off: str = ""
    label: str = ""

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines) + "\n" * self.is_ended

    def number_of(self, line: int) -> int:
        """The number, in the text as given, of a line of these (from 1)."""
        return self.numbers[line - 1] if 0 < line <= len(self.numbers) else line

    def taken(self, starts: Sequence[tuple[int, int]], label: str = "") -> Unlabelled:
        """The lines with these indices, each from a character on."""
        off = next((self.lines[index][:at] for index, at in starts if at), "")
        return Unlabelled(
            tuple(self.lines[index][at:] for index, at in starts),
            tuple(self.numbers[index] for index, _ in starts),
            self.is_ended or starts[-1][0] + 1 < len(self.lines),
            self.taken_off + off,
            label or self.label,
        )


def unlabelled(text: str, *, has_bars: bool = False) -> Unlabelled:
    """A text as it is. With `has_bars`, a carriage return ends a line, too, as bars of progress write it; the parts of
    a line have its number."""
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    is_ended = lines[-1] == ""
    if is_ended:
        lines.pop()
    if not has_bars or "\r" not in text:
        return Unlabelled(tuple(lines), range(1, len(lines) + 1), is_ended)
    parts = [(number, part) for number, line in enumerate(lines, start=1) for part in line.split("\r")]
    return Unlabelled(tuple(part for _, part in parts), tuple(number for number, _ in parts), is_ended)


def row_beside(source: Unlabelled, other: Unlabelled) -> str:
    """The first line of a source that is a row of numbers and not a line of another source as well, or ""."""
    common = set(other.numbers)
    rows = (line for number, line in zip(source.numbers, source.lines, strict=True) if number not in common)
    return next(filter(_ROW.fullmatch, rows), "")


def peeled(text: str, *, is_one_log: bool = False) -> Iterator[list[Unlabelled]]:
    """What a text may be without the quotes, labels and indentation of its lines, one layer after another, the
    outermost first: each time the lines of all sources (ranks, nodes, depths of quotes). With `is_one_log`, the lines
    of all ranks as one source come before those of each."""
    layer = [[unlabelled(text, has_bars=is_one_log)]]
    labelled = partial(_labelled, least=1 if is_one_log else _MIN_LINES)
    for _ in range(_MAX_LABELS):
        layer = [found for sources in layer for peel in (_quoted, labelled, _outdented) if (found := peel(sources))]
        if is_one_log:
            yield from ([_in_order(sources)] for sources in layer if len(sources) > 1)
        yield from layer


def _in_order(sources: Sequence[Unlabelled]) -> Unlabelled:
    """The lines of all sources in the order of the text. Those that several have (without a label) are there once."""
    lines: dict[tuple[int, str], None] = {}
    for source in sources:
        lines.update(dict.fromkeys(zip(source.numbers, source.lines, strict=True)))
    order = sorted(lines, key=lambda line: line[0])
    is_ended = all(one.is_ended for one in sources)
    return Unlabelled(tuple(t for _, t in order), tuple(n for n, _ in order), is_ended, sources[0].taken_off)


def _quoted(sources: Sequence[Unlabelled]) -> list[Unlabelled]:
    """The lines at each depth of quotes, such as "> " or ">> " in a mail, if there is one source."""
    if len(sources) > 1:
        return []
    depths: dict[int, list[tuple[int, int]]] = {}
    for index, line in enumerate(sources[0].lines):
        if match := _QUOTE.match(line):
            depths.setdefault(len(match[1].replace("&gt;", ">").replace(" ", "")), []).append((index, match.end()))
    return [sources[0].taken(own) for own in depths.values() if len(own) >= _MIN_LINES]


def _labelled(sources: Sequence[Unlabelled], least: int) -> list[Unlabelled]:
    """The lines of each source that the first labels name, if most lines have one; with those without a label."""
    found: list[Unlabelled] = []
    for one in sources:
        labels = [(index, labels[:1]) for index, line in enumerate(one.lines) if (labels := labels_of(line))]
        groups = [(keys, own) for keys, own in _by_label(labels, one.lines, least) if keys]
        labelled = {index for _, own in groups for index, _ in own}
        plain = [(index, 0) for index, line in enumerate(one.lines) if index not in labelled]
        if 2 * sum(bool(one.lines[index].strip()) for index, _ in plain) > len(labelled) or not groups:
            continue
        common = plain if len(groups) <= _MOST_WITH_COMMON else []
        for keys, own in groups[:_MOST_SOURCES]:
            label = "" if keys[-1] in _OF_ALL else re.sub(r"\]<std(?:out|err)>\Z", "", keys[-1].strip("[]:"))
            found.append(one.taken(sorted([*own, *common]), label))
    return found


def _outdented(sources: Sequence[Unlabelled]) -> list[Unlabelled]:
    """The lines without the indentation of a block of code, and without the backslashes that keep "#" from Markdown;
    none if no line has them."""
    found = []
    for one in sources:
        starts = [(k, 4 * line.startswith("    ") or int(line.startswith("\t"))) for k, line in enumerate(one.lines)]
        taken = one.taken(starts)
        lines = tuple(_ESCAPED.sub(r"\1", line) for line in taken.lines)
        if lines != taken.lines:
            taken = replace(taken, lines=lines, taken_off=taken.taken_off + "\\")
        found.append(taken)
    return found if any(new.lines != old.lines for new, old in zip(found, sources, strict=True)) else []


def unpacked(data: bytes, most_B: int) -> bytes:
    """The text in `data`, of at most `most_B` bytes, as UTF-8: without the compression by gzip or xz, and from UTF-16,
    which Windows shells write. Raises ValueError if it is damaged or larger."""
    opened = gzip.open if data[:2] == b"\x1f\x8b" else lzma.open if data[:6] == b"\xfd7zXZ\x00" else None
    if opened is not None:
        try:
            with opened(io.BytesIO(data)) as packed:
                data = packed.read(most_B + 1)
        except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
            raise ValueError(f"the compressed file is damaged: {error}") from error
    if len(data) > most_B:
        raise ValueError(f"larger than {most_B >> 20} MiB")
    if data[:2] in (b"\xff\xfe", b"\xfe\xff") and 4 * data.count(0) > len(data):
        data = data.decode("utf-16", "replace").encode("utf-8", "replace")
    return data
