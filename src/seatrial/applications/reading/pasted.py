"""Results as people paste them: what stands before each line is taken off if the text is not understood as it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from seatrial.applications.reading.text import MAX_BYTES
from seatrial.errors import ParseError
from seatrial.model.pasted import Unlabelled, peeled, uncoloured, unpacked
from seatrial.model.results.imported import ImportedFile


def read_pasted(kind: str, parse: Callable[[bytes], ImportedFile], data: bytes) -> ImportedFile:
    """The contents of a file, as `parse` has them of its plain text, with a remark on what was taken off.

    Raises ParseError: that of the text as it is, or of the text without what stood before its lines; also if several
    ranks printed a result, or rows of one.
    """
    try:
        data = uncoloured(unpacked(data, MAX_BYTES))
    except ValueError as error:
        raise ParseError(kind, None, "", str(error)) from error
    try:
        return _with_caution(parse(data), data)
    except ParseError as error:
        as_given = error
    first: ParseError | None = None
    for sources in peeled(data.decode("utf-8-sig", "replace")):
        found: list[tuple[ImportedFile, Unlabelled]] = []
        for one in sources:
            try:
                found.append((parse(one.text.encode()), one))
            except ParseError as error:
                first = first or _in_given(error, one)
        if found:
            return _with_caution(_only(found, as_given.tool), data)
    raise first if first is not None and first.line is not None and as_given.line is None else as_given


def _only(found: Sequence[tuple[ImportedFile, Unlabelled]], tool: str) -> ImportedFile:
    """The contents of the only source that has any. Raises ParseError."""
    content, one = found[0]
    if len(found) > 1:
        why = f"{len(found)} sources (ranks, nodes, quoted mails) have a result: put each in its own file"
        raise ParseError(tool, found[1][1].numbers[0], found[1][1].lines[0], why)
    if one.other_rows:
        why = "several ranks or nodes printed rows of numbers, which are mixed here: put each in its own file"
        raise ParseError(tool, None, one.other_rows[0], why)
    off = repr(one.taken_off) if one.taken_off.strip() else "the indentation"
    return _remarked(content, f"read without {off} before its lines")


_STOPPED = re.compile(
    rb"^.*(?:slurmstepd: error: \*\*\* (?:JOB|STEP) .{1,80}CANCELLED|=>> PBS: job killed|TERM_(?:RUNLIMIT|MEMLIMIT)"
    rb"|oom[-_ ]kill(?:er)?(?: event)?\b|srun: error: .{1,80}: (?:Killed|Terminated|Out Of Memory)).*$",
    re.MULTILINE,
)
"""Lines of Slurm, PBS and LSF about a job that was stopped."""


def _with_caution(content: ImportedFile, data: bytes) -> ImportedFile:
    """The contents with a remark if the batch system stopped the job that printed them."""
    found = _STOPPED.search(data)
    if found is None:
        return content
    line = data.count(b"\n", 0, found.start()) + 1
    text = found[0].decode("utf-8", "replace").strip()[:200]
    return _remarked(content, f"line {line}: the job was stopped ({text}): results may be missing or disturbed")


def _remarked(content: ImportedFile, remark: str) -> ImportedFile:
    """The contents with a remark on the file, which its first experiment has."""
    experiments = [replace(e, remarks=(remark, *e.remarks)) if k == 0 else e for k, e in enumerate(content.experiments)]
    return replace(content, experiments=tuple(experiments))


def _in_given(error: ParseError, of: Unlabelled) -> ParseError:
    """The error with the number of the line in the text as given."""
    if error.line is None or error.line > len(of.numbers):
        return error
    return ParseError(error.tool, of.numbers[error.line - 1], error.text, error.why)
