"""What a text says about the job that printed it, beside the results: the command above them, and the specification of
the job (Slurm, PBS, LSF, Flux, Kubernetes). Readers do not see it: it completes what the program itself states."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from seatrial.applications.reading import commands
from seatrial.model.benchmark.program import NODES, RANKS, THREADS
from seatrial.model.frozen import Frozen
from seatrial.model.results.imported import JobFact

_EXPORTED = re.compile(r"(?:export |declare -x |setenv )?(OMP_NUM_THREADS)(?:=| )\"?(\d{1,6})\"?")
_SPECIFIED: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (NODES, r"\s*#\s?SBATCH\s+(?:-N\s*|--nodes[= ])(\d{1,7})(?:\s.*)?"),
        (RANKS, r"\s*#\s?SBATCH\s+(?:-n\s*|--ntasks[= ])(\d{1,9})(?:\s.*)?"),
        ("each", r"\s*#\s?SBATCH\s+--(?:n)?tasks-per-node[= ](\d{1,6})(?:\s.*)?"),
        (NODES, r"\s*#\s?PBS\s+-l\s+(?:select|nodes)=(\d{1,7})(?=[:,\s]|\Z).*"),
        ("each", r"\s*#\s?PBS\s+-l\s+\S*?(?:mpiprocs|ppn)=(\d{1,6})(?=[:,\s]|\Z).*"),
        (RANKS, r"\s*#\s?BSUB\s+-n\s+(\d{1,9})(?:\s.*)?"),
        (NODES, r"\s*#\s?BSUB\s+-nnodes\s+(\d{1,7})(?:\s.*)?"),
        ("each", r"\s*#\s?BSUB\s+-R\s+.*span\[ptile=(\d{1,6})\].*"),
        (NODES, r"\s*#\s?(?:flux|FLUX):\s+(?:-N\s*|--nodes[= ])(\d{1,7})(?:\s.*)?"),
        (RANKS, r"\s*#\s?(?:flux|FLUX):\s+(?:-n\s*|--n(?:task)?s[= ])(\d{1,9})(?:\s.*)?"),
        (NODES, r".*\"resources\": ?\[\{\"type\": ?\"node\", ?\"count\": ?(\d{1,7}),.*"),
        ("each", r".*\"type\": ?\"node\".{1,80}\"type\": ?\"slot\", ?\"count\": ?(\d{1,6}),.*\"label\": ?\"task\".*"),
        ("each", r"\s*slotsPerWorker:\s*(\d{1,6})\s*"),
    )
)
"""A line of a specification, and the setting that it gives; `each`: ranks on each node."""
_MARK = re.compile(
    r"#\s?(?:SBATCH|PBS|BSUB|flux:|FLUX:)|\"resources\"|slotsPerWorker|Worker:|replicas:|-\s+[\"']?-np?\b"
)
_WORKERS = re.compile(r"\s*Worker:\s*")
_REPLICAS = re.compile(r"\s*replicas:\s*(\d{1,7})\s*")
_LIST_ITEM = re.compile(r"\s*-\s+[\"']?(\S{1,200}?)[\"']?\s*")
_LONGEST = 20_000


_DEVICES = (
    re.compile(
        r"\s*(?:Process \d{1,6} \(\S{1,256}\): d|D)evice\s+(?P<index>\d{1,4}): "
        r"(?P<name>\S.{0,98}?)(?: \([0-9A-Fa-f:.]+\))?\s*"
    ),
    re.compile(r"\s*Using (?:OpenCL|CUDA|HIP|SYCL|OMP target|HC|Metal) device:? (?!\d+\s*\Z)(?P<name>\S.{0,98}?)\s*"),
    re.compile(
        r"\s*#\s*Rank\s+(?P<index>\d{1,7})\s.{0,300}?\bdevice\s+\d+\s+\[[0-9A-Fa-fx:.]{1,20}\]\s*(?P<name>\S.{0,98}?)\s*"
    ),
)
"""Lines in which a program names its devices: nvbandwidth, BabelStream, nccl-tests."""


def device_of(lines: Sequence[str]) -> JobFact | None:
    """The devices that a program names, or None."""
    found: dict[str, tuple[int, str]] = {}
    for index, line in enumerate(lines):
        if "evice" in line[:400]:
            match = next((match for form in _DEVICES if (match := form.fullmatch(line))), None)
            if match is not None:
                found.setdefault(match.groupdict().get("index") or match["name"], (index, match["name"]))
    if not found:
        return None
    first = min(found.values())[0]
    return JobFact("device", named(name for _, name in found.values()), first + 1, lines[first].strip()[:100])


def named(devices: Iterable[str]) -> str:
    """These devices as one name: "NVIDIA A100", or "8 x NVIDIA A100"; several kinds are joined by "and"."""
    counts = Counter(devices)
    return " and ".join(name if count == 1 else f"{count} x {name}" for name, count in counts.items())[:200]


class Job(Frozen):
    """The command that printed a run ("" if the text does not show it), and what is known about the job from it."""

    command: str = ""
    is_repeated: bool = False
    """Whether the command is a loop, which starts its program several times."""
    facts: tuple[JobFact, ...] = ()


def job_of(
    lines: Sequence[str],
    above: int,
    begin: int,
    of_text: Mapping[str, JobFact],
    program: ProgramOptions,
    *,
    is_alone: bool,
) -> Job:
    """The job of a run whose program printed its first line at index `begin`; the lines from index `above` on are of
    the shell. `of_text` is what `specified` found; without a command it holds only if the text has one run."""
    found = list(commands.commands_in(lines[above:begin]))
    while found and found[-1][1].split()[0].rpartition("/")[2] == "tee":
        del found[-1]
    variables = _variables(lines[:begin])
    index, shown = found[-1] if found else (0, "")
    command = commands.started_by(shown)
    if command is None:
        return Job(facts=tuple(of_text.values()) if is_alone else ())
    started = commands.read_command(command, variables)
    where = (above + index + 1, " ".join(shown.split())[:300])
    values: dict[str, int | str | None] = {NODES: started.nodes, THREADS: started.threads, **program.stated(started)}
    values[RANKS] = program.ranks(started)
    facts = {name: JobFact(name, value, *where) for name, value in values.items() if value is not None}
    if started.has_launcher:
        facts = _with_allocation(facts, of_text, command)
    return Job(" ".join(command.split()), commands.is_loop(shown), tuple(facts.values()))


def _with_allocation(facts: dict[str, JobFact], of_text: Mapping[str, JobFact], command: str) -> dict[str, JobFact]:
    """The facts of a command, with those of the specification that hold for it: all if the command leaves the sizes to
    the job; the nodes if it starts as many ranks as the job has."""
    if not re.search(r"\s-{1,2}(?:n|np|N|ntasks|nodes|nnodes|c|a|r)(?:[ =\d]|$)", command):
        return {**of_text, **facts}
    if RANKS in facts and RANKS in of_text and facts[RANKS].value == of_text[RANKS].value:
        return {**of_text, **facts}
    return facts


def _variables(lines: Sequence[str]) -> dict[str, str]:
    """The variables of the environment that commands above the run set."""
    found: dict[str, str] = {}
    for line in lines:
        if "OMP_NUM_THREADS" in line[:_LONGEST]:
            shown = commands.command_of(line) or line.strip()
            if match := _EXPORTED.fullmatch(shown):
                found[match[1]] = match[2]
    return found


class ProgramOptions(Frozen):
    """The options of a tool's programs that state parameters: option -> parameter. The ranks of each process are the
    product of those in `each_process`."""

    parameters: Mapping[str, str] = {}
    each_process: tuple[tuple[str, ...], ...] = ()

    def stated(self, started: commands.Started) -> dict[str, str]:
        """The parameters in a command."""
        found: dict[str, str] = {}
        for option, parameter in self.parameters.items():
            if (value := started.option(option)) is not None and re.fullmatch(r"[\w.,:+-]{1,60}", value):
                found.setdefault(parameter, value)
        return found

    def ranks(self, started: commands.Started) -> int | None:
        """The ranks that a command starts, or None."""
        ranks = started.ranks if started.has_launcher else 1 if self.each_process else None
        for options in self.each_process:
            text = started.option(*options)
            if text is not None and ranks is not None:
                ranks = ranks * int(text) if re.fullmatch(r"[0-9]{1,6}", text) and int(text) else None
        return ranks


def specified(lines: Sequence[str]) -> dict[str, JobFact]:
    """What the specification of the job in a text states: its nodes and ranks. Values that contradict each other, of
    several jobs, are left out."""
    found: dict[str, list[JobFact]] = {}
    for name, value, index in _specified(lines):
        found.setdefault(name, []).append(JobFact(name, value, index + 1, lines[index].strip()[:100]))
    facts = {name: own[0] for name, own in found.items() if len({one.value for one in own}) == 1}
    each, nodes = facts.pop("each", None), facts.get(NODES)
    if each is not None and nodes is not None and RANKS not in found:
        facts[RANKS] = JobFact(RANKS, int(str(nodes.value)) * int(str(each.value)), each.line, each.text)
    return facts


def _specified(lines: Sequence[str]) -> Iterator[tuple[str, int, int]]:
    is_worker = False
    for index, line in enumerate(lines):
        if len(line) > _LONGEST or _MARK.search(line) is None:
            continue
        for name, pattern in _SPECIFIED:
            if match := pattern.fullmatch(line):
                yield name, int(match[1]), index
        if _WORKERS.fullmatch(line):
            is_worker = True
        elif is_worker and (match := _REPLICAS.fullmatch(line)):
            yield NODES, int(match[1]), index
            is_worker = False
        if (item := _LIST_ITEM.fullmatch(line)) and item[1] in ("-np", "-n") and index + 1 < len(lines):
            following = _LIST_ITEM.fullmatch(lines[index + 1])
            if following and re.fullmatch(r"\d{1,9}", following[1]):
                yield RANKS, int(following[1]), index
