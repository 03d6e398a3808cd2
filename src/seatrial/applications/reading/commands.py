"""The command lines in a text that was copied from a terminal or a job's output: after a prompt, in the trace of a
shell (`set -x`), or as a script prints them, and how many ranks, nodes and threads they start.

Options: srun(1), mpirun(1) of Open MPI, mpiexec of MPICH and Intel MPI, aprun(1), jsrun(1), flux-run(1). What a shell
would replace ($NP) is unknown.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from seatrial.model.frozen import Frozen

_LAUNCHERS = frozenset(
    ("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "prun", "srun", "aprun", "jsrun", "ibrun", "flux")
)
_NAMES = "|".join(map(re.escape, sorted(_LAUNCHERS - {"flux"}, key=len, reverse=True)))
_LAUNCH = re.compile(rf"(?:(?:/\S{{0,200}}/)?(?:{_NAMES})|(?:\S{{0,200}}/)?flux (?:run|submit))(?=\s+[-./\w$])")
_PROMPT = re.compile(
    r"\s{0,8}(?:\([\w.+-]{1,60}\)\s?)?"  # an environment of Python
    r"(?:\[[\w.+-]{1,64}@[^\]\s]{1,100}(?: [^\]\s]{1,200})?\]\s?[$#%]"
    r"|[\w.+-]{1,64}@[\w.+-]{1,100}(?:[: ]\s?\S{0,200}?)?\s?[$#%]|\$)"
    r"\s(?=\s{0,8}\S)\s{0,8}(?P<command>\S.*)"
)
_TRACE = re.compile(r"\s{0,8}\+{1,4} (?P<command>\S.*)")
_PRINTED = re.compile(
    r"[#\s]{0,12}(?:Running|Executing|Launching|Launch command|Run command|Command line|Command|cmd|CMD)"
    r"\s{0,3}[:=]\s{0,3}[`'\"]?(?P<command>[^`]{1,2000}?)[`'\"]?\s{0,9}"
)
_ASSIGNED = re.compile(r"([A-Za-z_]\w{0,80})=(\S*)")
_LOOP = re.compile(r"(?:for|while|until)\b.{0,400}?;\s{0,4}do\s{1,4}(?P<body>.{1,1500}?)(?:;\s{0,4}done\b.{0,200})?")
_SHELL_WORDS = (
    "awk bsub cat cd cmake cp conda date df du echo emacs exit export file find free gcc g++ git grep head hostname "
    "hwloc-ls icc icx kubectl less ln ls lscpu lstopo make mkdir ml module more mpicc mpicxx mv nano ninja nohup "
    "numastat nvcc nvidia-smi pip popd printf pushd pwd qsub qstat rm sacct salloc sbatch scancel scp scontrol sed "
    "set sinfo sleep source spack squeue ssh tail tar tee touch ulimit unset vi vim wait wget which yum apt apt-get "
    "."
)
"""Commands that start no program whose results follow."""
_WITH_TWO = frozenset(("-mca", "--mca", "-gmca", "--gmca", "-pmixmca", "--pmixmca", "-genv", "-env"))
_WITH_NONE = (
    "-l -v -vv -q --label --verbose --exclusive --overlap --overcommit -O --quiet --oversubscribe --nooversubscribe "
    "-oversubscribe --allow-run-as-root -allow-run-as-root --report-bindings -report-bindings --tag-output "
    "-tag-output --display-map -display-map --display-allocation --use-hwthread-cpus -prepend-rank --prepend-rank "
    "--unbuffered -u --multi-prog --bynode --bycore --bysocket -bynode --merge-stderr-to-stdout --timestamp-output "
    "-K --kill-on-bad-exit -genvall -envall --pty --exact --mem-bind=local -localhost"
)
_SET_VARIABLE = ("-x", "-genv", "-env", "--env", "--export")
_OPTION = re.compile(r"(--?[A-Za-z][\w-]{0,40}?)(?:=(.*)|(?<=^-[A-Za-z])(\d{1,9}))?")
_RANKS_OF = {
    "srun": ("-n", "--ntasks"),
    "aprun": ("-n", "--pes"),
    "ibrun": ("-n", "-np"),
    "flux": ("-n", "--ntasks"),
    "": ("-np", "--np", "-n", "--n", "-c"),
}
_NODES_OF = {"srun": ("-N", "--nodes"), "flux": ("-N", "--nodes"), "": ("-nnodes", "--nnodes")}
_EACH_OF = {
    "srun": ("--ntasks-per-node",),
    "aprun": ("-N", "--pes-per-node"),
    "flux": ("--tasks-per-node",),
    "": ("-N", "-npernode", "--npernode", "-ppn", "--ppn", "-perhost", "--perhost"),
}
_HOSTS = ("-H", "-host", "--host", "-hosts", "--hosts", "-w", "--nodelist")
_PER_NODE = re.compile(r"ppr:(\d{1,6}):node(?:[:,].*)?")
_MOST = 10**8


class Started(Frozen):
    """What a command starts, as far as it says: processes, nodes and threads of each; `program` is the words from the
    program on. `has_launcher` is whether a launcher starts it."""

    ranks: int | None = None
    nodes: int | None = None
    threads: int | None = None
    program: tuple[str, ...] = ()
    has_launcher: bool = False

    def option(self, *names: str) -> str | None:
        """The value of an option of the program, or None."""
        for word, after in pairwise((*self.program, "")):
            name, equals, value = word.partition("=")
            if name in names:
                return value if equals else after or None
        return None


def command_of(line: str) -> str | None:
    """The command that a line shows, or None."""
    if len(line) > 4000:
        return None
    if (match := _PROMPT.fullmatch(line)) is not None:
        return match["command"].strip()
    if (match := _TRACE.fullmatch(line) or _PRINTED.fullmatch(line)) is not None:
        text = match["command"].strip()
        is_trace = match.re is _TRACE
        return text if _LAUNCH.search(text) or (is_trace and _is_command(text)) else None
    text = line.strip()
    begin = _LAUNCH.match(re.sub(r"\A(?:time |[A-Z_][A-Z0-9_]{0,60}=\S{0,200} )+", "", text))
    return text if begin is not None and re.search(r"\s-|\s\.{0,2}/", text) else None


def _is_command(text: str) -> bool:
    word = text.split()[0]
    return word in _SHELL_WORDS.split() or "/" in word or _ASSIGNED.fullmatch(word) is not None


def started_by(command: str) -> str | None:
    """The command without the loop around it, if results may follow it: not that of `cd` or `cat`."""
    if (loop := _LOOP.fullmatch(command)) is not None:
        command = loop["body"]
    words = [word for word in command.split() if not _ASSIGNED.fullmatch(word)]
    while words and words[0] in ("time", "sudo", "exec", "nohup", "env"):
        del words[0]
    return command if words and words[0].rpartition("/")[2] not in _SHELL_WORDS.split() else None


def is_loop(command: str) -> bool:
    """Whether a command starts its program several times."""
    return _LOOP.fullmatch(command) is not None


def is_certain(command: str) -> bool:
    """Whether nothing in a command is replaced by the shell, so that equal commands do the same."""
    return re.search(r"[$`*?]|\{\w*,", command) is None


def read_command(command: str, variables: Mapping[str, str] | None = None) -> Started:
    """What a command starts. `variables` are those of the environment that were set before."""
    command = command.partition("|")[0].partition(" > ")[0].partition(" 2>")[0]
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    own = dict(variables or {})
    at = 0
    while at < len(words) and ((assigned := _ASSIGNED.fullmatch(words[at])) or words[at] in ("time", "env", "sudo")):
        if assigned:
            own[assigned[1]] = assigned[2]
        at += 1
    launcher = next((k for k, word in enumerate(words) if word.rpartition("/")[2] in _LAUNCHERS), None)
    if launcher is None:
        return Started(threads=_whole(own.get("OMP_NUM_THREADS")), program=tuple(words[at:]))
    name = words[launcher].rpartition("/")[2]
    options, begin = _options(words, launcher + 1 + (name == "flux"))
    for option, value in options:
        if option in ("-x", "-genv", "-env", "--env", "--export") and (
            set_ := re.search(r"OMP_NUM_THREADS[= ](\d+)", value)
        ):
            own["OMP_NUM_THREADS"] = set_[1]
    ranks, nodes = (None, None) if ":" in words[begin:] else _sizes(name, options)
    return Started(ranks, nodes, _whole(own.get("OMP_NUM_THREADS")), tuple(words[begin:]), has_launcher=True)


def _options(words: Sequence[str], at: int) -> tuple[list[tuple[str, str]], int]:
    """The options of a launcher from this word on, and where the program begins."""
    found: list[tuple[str, str]] = []
    while at < len(words) and words[at].startswith("-") and len(words[at]) > 1:
        match = _OPTION.fullmatch(words[at])
        at += 1
        if match is None:
            continue
        name, value, attached = match.groups()
        if value is not None or attached is not None:
            found.append((name, value if value is not None else attached))
        elif name in _WITH_TWO:
            found.append((name, " ".join(words[at : at + 2])))
            at += 2
        elif (
            name in _WITH_NONE.split()
            or at >= len(words)
            or (words[at].startswith("-") and not words[at][1:2].isdigit())
        ):
            found.append((name, ""))
        else:
            found.append((name, words[at]))
            at += 1
    return found, at


def _sizes(launcher: str, options: Sequence[tuple[str, str]]) -> tuple[int | None, int | None]:
    """The ranks and nodes that the options of a launcher give."""
    ranks, nodes, each = (
        next((_whole(value) for name, value in options if name in names.get(launcher, names[""])), None)
        for names in (_RANKS_OF, _NODES_OF, _EACH_OF)
    )
    if launcher == "jsrun":
        ranks = _product(_first(options, ("-n", "--nrs")), _first(options, ("-a", "--tasks_per_rs")))
        nodes = each = None
    for name, value in options:
        if name in ("--map-by", "-map-by", "--npersocket") and (per := _PER_NODE.fullmatch(value)):
            each = int(per[1])
    hosts = next((_hosts(value) for name, value in options if name in _HOSTS), None)
    if nodes is None and hosts is not None and ranks is not None and each is None and ranks >= hosts:
        nodes = hosts if launcher == "srun" or ranks == hosts else None
    if ranks is None and nodes is not None and each is not None:
        ranks = nodes * each
    if nodes is None and ranks is not None and each is not None:
        nodes = -(-ranks // each)
    return ranks, nodes


def _hosts(value: str) -> int | None:
    """The number of different hosts in a list; None if it is not a plain one."""
    names = {re.sub(r":\d+\Z", "", name) for name in value.split(",")}
    return len(names) if all(re.fullmatch(r"[A-Za-z0-9][\w.-]{0,100}", name) for name in names) else None


def _first(options: Sequence[tuple[str, str]], names: Sequence[str]) -> int | None:
    return next((_whole(value) for name, value in options if name in names), None)


def _product(*factors: int | None) -> int | None:
    product = 1
    for factor in factors:
        if factor is None:
            return None
        product *= factor
    return product


def _whole(text: str | None) -> int | None:
    return int(text) if text and re.fullmatch(r"[0-9]{1,9}", text) and 0 < int(text) < _MOST else None


def commands_in(lines: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The commands that lines show, each with the index of its line; those continued on further lines are joined."""
    for index, line in enumerate(lines):
        command = command_of(line)
        if command is None:
            continue
        at = index + 1
        while command.endswith("\\") and at < len(lines):
            command = command[:-1].rstrip() + " " + re.sub(r"\A\s{0,40}>?\s{0,40}", "", lines[at]).rstrip()
            at += 1
        yield index, command
