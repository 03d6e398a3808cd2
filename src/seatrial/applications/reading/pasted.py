"""Results as people paste them. What stands before each line is taken off if the text is not understood as it is;
several runs in one text are read one by one; what the text says about the job goes with each of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from msgspec.structs import replace

from seatrial.applications.reading import commands
from seatrial.applications.reading.job import Job, ProgramOptions, device_of, job_of, specified
from seatrial.applications.reading.json_text import INVALID_JSON
from seatrial.applications.reading.runs import Part, Starts, parts_of
from seatrial.applications.reading.text import MAX_BYTES
from seatrial.errors import ParseError
from seatrial.model.frozen import Frozen
from seatrial.model.pasted import Unlabelled, peeled, row_beside, unlabelled, unpacked
from seatrial.model.results.imported import ImportedFile, ImportedRun
from seatrial.printable import without_sequences_of_bytes

_MOST_NAMED = 5


class Form(Frozen):
    """What a reader declares about its texts: `begins`, the lines with which a run begins (runs.py), the options of its
    programs, and `aside`, a line of programs of the same tool that have no figure. With `starts` in place of `begins`,
    all ranks write one log, in which carriage returns end lines, too."""

    kind: str
    parse: Callable[[bytes], ImportedFile]
    begins: tuple[str, ...] = ()
    options: ProgramOptions = ProgramOptions()
    aside: str = ""
    starts: Starts | None = None

    def parts(self, lines: Sequence[str]) -> list[Part]:
        """The runs in these lines."""
        return parts_of(lines, self.begins, self.starts)


def read_pasted(form: Form, data: bytes) -> ImportedFile:
    """The contents of a file, as the reader has them of its plain text, with a remark on what was taken off. Several
    runs are separate in `runs`.

    Raises ParseError: that of the text as it is, or of the text without what stood before its lines; also if several
    ranks printed rows of one table, and if a run that is not the last one is damaged.
    """
    try:
        data = without_sequences_of_bytes(unpacked(data, MAX_BYTES))
    except ValueError as error:
        raise ParseError(form.kind, None, "", str(error)) from error
    text = data.decode("utf-8-sig", "replace")
    is_one_log = form.starts is not None
    given = unlabelled(text, has_bars=is_one_log)
    try:
        return _with_caution(_merged(_runs(form, given, None if is_one_log else data)), data)
    except ParseError as error:
        as_given = error
    first: ParseError | None = None
    for sources in peeled(text, is_one_log=is_one_log):
        found: list[tuple[list[ImportedFile], Unlabelled]] = []
        unread: list[tuple[ParseError, Unlabelled]] = []
        for one in sources:
            try:
                found.append((_runs(form, one), one))
            except ParseError as error:
                first = first or error
                unread.append((error, one))
        if found:
            return _with_caution(_together(form, found, unread), data)
    if first is None or first.line is None or as_given.line is not None or first.why.startswith(INVALID_JSON):
        raise as_given  # the parts of a document are not its layers
    raise first


def _runs(form: Form, source: Unlabelled, data: bytes | None = None) -> list[ImportedFile]:
    """The runs of one source; `data` is its text, if that is given. Raises ParseError unless all are whole; a last one
    that is damaged is left out with a remark: it was stopped, or is not pasted to its end."""
    parts, left_out = _with_figures(form, source, form.parts(source.lines))
    of_text = specified(source.lines)
    found: list[ImportedFile] = []
    known, job = _Known(), Job()
    for number, part in enumerate(parts, start=1):
        is_all = len(parts) == 1 and not left_out
        own = source if is_all else source.taken([(index, 0) for index in range(part.above, part.end)])
        try:
            content = form.parse(data if data is not None and is_all else own.text.encode())
        except ParseError as error:
            given = _in_given(error, own)
            if not 1 < number == len(parts):
                raise given from error
            why = f"the last of {number} runs, from line {source.numbers[part.begin]}, is not read: {given.why}"
            found[-1] = _remarked(found[-1], why)
            break
        if known.has(source.lines[part.begin : part.end], content):
            why = f"the same results again, from line {source.numbers[part.begin]}: they count once"
            found[-1] = _remarked(found[-1], why)
            continue
        own_job = job_of(source.lines, part.above, part.begin, of_text, form.options, is_alone=len(parts) == 1)
        job = job if job.is_repeated and not own_job.command else own_job
        facts = [replace(fact, line=source.number_of(fact.line)) for fact in job.facts]
        if (device := device_of(source.lines[part.begin : part.end])) is not None:
            facts.append(replace(device, line=source.number_of(part.begin + device.line)))
        content = replace(_renumbered(content, own), job=tuple(facts), command=job.command)
        if len(parts) > 1:
            shown = job.command if commands.is_certain(job.command) else ""
            line = source.numbers[min(part.begin, len(source.lines) - 1)]
            content = replace(content, run=ImportedRun(number, len(parts), line, command=shown))
        found.append(content)
    return [_remarked(found[0], left_out), *found[1:]] if left_out else found


def _with_figures(form: Form, source: Unlabelled, parts: Sequence[Part]) -> tuple[Sequence[Part], str]:
    """The runs without those of programs that have no figure, and a remark on them, if there are any. Raises ParseError
    if no other is left."""
    aside = re.compile(form.aside) if form.aside else None
    lines = {
        index: match[1]
        for index, line in enumerate(source.lines if aside else ())
        if aside is not None and (match := aside.fullmatch(line.strip()))
    }
    if not lines:
        return parts, ""
    names = ", ".join(dict.fromkeys(lines.values()))
    own = [part for part in parts if not any(part.begin <= index < part.end for index in lines)]
    if not own:
        index = min(lines)
        raise ParseError(form.kind, source.numbers[index], source.lines[index], f"no figure is read of {names}")
    return own, f"without the output of {names}, of which no figure is read"


_LEAST_DIGITS, _LEAST_SAMPLES = 30, 4
"""Two runs do not print so many equal ones by chance."""


class _Known:
    """The runs that were read."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._results: set[str] = set()

    def has(self, lines: Sequence[str], run: ImportedFile) -> bool:
        """Whether the run was read before: its text was pasted twice, or every rank printed it. It is known then."""
        text = "\n".join(line.strip() for line in lines).strip()
        result = repr([run.version, *((e.benchmark, sorted(e.parameters.items()), e.samples) for e in run.experiments)])
        is_known = result in self._results and (
            sum(len(e.samples) for e in run.experiments) >= _LEAST_SAMPLES
            or any(_is_same(text, other) for other in self._texts)
        )
        self._texts.append(text)
        self._results.add(result)
        return is_known


def _is_same(text: str, other: str) -> bool:
    """Whether two texts of runs are equal but for what follows the shorter one."""
    least = min(len(text), len(other))
    return text[:least] == other[:least] and sum(map(str.isdigit, text[:least])) >= _LEAST_DIGITS


def _merged(runs: Sequence[ImportedFile]) -> ImportedFile:
    """The file with these runs."""
    if len(runs) == 1 and (runs[0].run is None or not runs[0].run.label):
        return replace(runs[0], run=None)
    experiments = tuple(replace(e, failed=e.failed or run.failed) for run in runs for e in run.experiments)
    merged = replace(runs[0], experiments=experiments, failed="", job=(), command="", run=None, runs=tuple(runs))
    unknown = sum(run.run is not None and not run.run.label and not run.run.command for run in runs)
    if not unknown:
        return merged
    which = "none of which has its own command" if unknown == len(runs) else f"{unknown} of them without a command"
    return _remarked(merged, f"{len(runs)} runs in one text, {which}: they are repeats only with --set runs=repeats")


def _together(
    form: Form,
    found: Sequence[tuple[list[ImportedFile], Unlabelled]],
    unread: Sequence[tuple[ParseError, Unlabelled]],
) -> ImportedFile:
    """The contents of all sources. Raises ParseError if lines of several are mixed in one table, or if they are quotes
    in a mail."""
    (content, *_), one = found[0]
    tool = content.tool
    cut = [(error, other) for error, other in unread if _begins(form, other)]
    mixed = next((row for _, other in unread if not _begins(form, other) and (row := row_beside(other, one))), None)
    if mixed is not None:
        why = "several ranks or nodes printed rows of numbers, which are mixed here: put each in its own file"
        raise ParseError(tool, None, mixed, why)
    if len(found) > 1 and not all(other.label for _, other in found):
        why = f"{len(found)} quoted mails have a result: put each in its own file"
        raise ParseError(tool, found[1][1].numbers[0], found[1][1].lines[0], why)
    off = repr(one.taken_off) if one.taken_off.strip() else "the indentation"
    remark = f"read without {off} before its lines"
    known = _Known()
    runs = [_labelled(run, other) for own, other in found for run in own if not known.has(other.lines, run)]
    labels = list(dict.fromkeys(other.label for _, other in found))
    if len(runs) == len(found[0][0]) and not cut:
        again = f"; {len(found)} ranks or nodes printed the same results, which count once" if len(found) > 1 else ""
        return _remarked(_merged(found[0][0]), remark + again)
    remark = f"{len(labels)} copies of the program, distinguished by the labels of their lines ({_few(labels)})"
    if cut:
        more = _few([other.label for _, other in cut])
        remark += f"; those of {more} are not read: {cut[0][0].why}"
    return _remarked(_merged(runs), remark)


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_NAMED]) + ", ..." * (len(names) > _MOST_NAMED)


def _begins(form: Form, source: Unlabelled) -> bool:
    """Whether a run begins somewhere in the lines of a source."""
    return form.parts(source.lines)[0].begin < len(source.lines)


def _labelled(run: ImportedFile, source: Unlabelled) -> ImportedFile:
    known = run.run or ImportedRun(1, 1, source.numbers[0])
    number = "" if known.count == 1 else f", run {known.number} of {known.count}"
    return replace(run, run=replace(known, label=f"{source.label}{number}", command=""))


_STOPPED = re.compile(
    rb"^.*(?:slurmstepd: error: \*\*\* (?:JOB|STEP) .{1,80}CANCELLED|=>> PBS: job killed|TERM_(?:RUNLIMIT|MEMLIMIT)"
    rb"|oom[-_ ]kill(?:er)?(?: event)?\b|srun: error: .{1,80}: (?:Killed|Terminated|Out Of Memory)).*$",
    re.MULTILINE,
)
"""Lines of Slurm, PBS and LSF about a job that was stopped."""


_OBSERVED = re.compile(
    rb"^.*(?:==PROF== |==[0-9]{1,9}== NVPROF is profiling|==[0-9]{1,9}== (?:Memcheck|Callgrind|Cachegrind|Helgrind),"
    rb"|========= COMPUTE-SANITIZER|\[Thread debugging using libthread_db enabled\]|Reading symbols from "
    rb"|Generating '[^'\n]{1,200}\.(?:qdstrm|nsys-rep|qdrep)').*$",
    re.MULTILINE,
)
"""Lines of Nsight Compute and Systems, nvprof, Valgrind, Compute Sanitizer and gdb."""
_CAUTIONS = (
    (_STOPPED, "the job was stopped ({text}): results may be missing or disturbed"),
    (_OBSERVED, "it ran under a profiler or debugger ({text}): that may have made it slower"),
)


def _with_caution(content: ImportedFile, data: bytes) -> ImportedFile:
    """The contents with a remark if the batch system stopped the job that printed them, or if something watched it."""
    for pattern, words in _CAUTIONS:
        found = pattern.search(data)
        if found is not None:
            line = data.count(b"\n", 0, found.start()) + 1
            text = found[0].decode("utf-8", "replace").strip()[:200]
            content = _remarked(content, f"line {line}: {words.format(text=text)}")
    return content


def _remarked(content: ImportedFile, remark: str) -> ImportedFile:
    """The contents with a remark on the file, which its first experiment has."""
    experiments = [replace(e, remarks=(remark, *e.remarks)) if k == 0 else e for k, e in enumerate(content.experiments)]
    runs = tuple(_remarked(run, remark) if k == 0 else run for k, run in enumerate(content.runs))
    return replace(content, experiments=tuple(experiments), runs=runs)


_LINE = re.compile(r"\bline ([0-9]{1,9})\b")


def _renumbered(content: ImportedFile, of: Unlabelled) -> ImportedFile:
    """The contents whose statements name lines of the text as given, where only some of its lines were read."""
    if not of.numbers or of.numbers[-1] == len(of.numbers):
        return content

    def given(text: str) -> str:
        return _LINE.sub(lambda match: f"line {of.number_of(int(match[1]))}", text, count=1)

    experiments = tuple(
        replace(e, failed=given(e.failed), remarks=tuple(map(given, e.remarks))) for e in content.experiments
    )
    return replace(content, experiments=experiments, failed=given(content.failed))


def _in_given(error: ParseError, of: Unlabelled) -> ParseError:
    """The error with the number of the line in the text as given."""
    if error.line is None:
        return error
    return ParseError(error.tool, of.number_of(error.line), error.text, error.why)
