"""How the ranks of a run ended: where they ran, how they died, and what each did when the time limit was reached."""

from __future__ import annotations

import re
import signal
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import Exit, ProtocolError
from seatrial.launch.local import Completed, end_of
from seatrial.launch.mpi import rank_records, runs_of
from seatrial.model.benchmark.copies import copies_of, part_of
from seatrial.model.benchmark.program import BINDING, Hello, Layout, ProgramRecord, layout_of
from seatrial.model.frozen import Frozen
from seatrial.model.results.sample import Outcome, Stage
from seatrial.plan.points import Point

_LONGEST_PHASE = 200


class RankEnd(Frozen):
    """The last known state of a rank: `died` is how it ended ("SIGSEGV", "exit"), `phase` what it was doing, `call`
    the MPI function that it was in ("": none); None if its file does not state it."""

    rank: int
    died: str | None
    phase: str | None
    call: str | None
    has_reported: bool
    has_ended: bool = False
    """Its record is complete: all ranks had finished measuring."""

    @property
    def doing(self) -> str:
        """As text that fits one rank or several."""
        if not self.has_reported:
            return "left no report"
        phase = f'at "{self.phase or "unknown"}"'
        if self.call is None:
            return phase
        return f"{phase}, in {self.call}" if self.call else f"{phase}, outside of MPI"


def rank_ends(directory: Path) -> list[RankEnd]:
    """The ends that ranks wrote into their files, by rank; [] if the files cannot be read."""
    try:
        records = rank_records(directory)
    except (OSError, ProtocolError):
        return []
    return [_end(rank, record) for rank, record in records.items()]


def _end(rank: int, record: ProgramRecord) -> RankEnd:
    notes = record.notes

    def text(key: str) -> str | None:
        value = notes.get(key)
        return value[:_LONGEST_PHASE] if isinstance(value, str) else None

    return RankEnd(rank, text("died"), text("ended_in"), text("in_call"), "ended_in" in notes, record.ended)


def rank_layout(point: Point) -> Layout:
    """The placement of the ranks of a point; of several copies of a job, of the first."""
    binding = dict(point.environment.mpi_settings).get(BINDING)
    cpus = part_of(point.cpus, 0, copies_of(point.parameters))
    return layout_of(point.parameters, cpus, binding, point.hosts, point.benchmark.program.launched)


def ending_of_ranks(completed: Completed, layout: Layout, launcher: str, directory: Path) -> Outcome | None:
    """Why a run of ranks did not complete; None if it did, or if nothing is known beyond its exit status."""
    if completed.timed_out:
        ended = Outcome.timed_out(completed.limit_s, completed.evidence)
        return replace(ended, reason=f"{ended.reason}; {_at_timeout(rank_ends(directory), layout)}")
    if completed.returncode == 0:
        return None
    if completed.returncode == Exit.LAUNCHER:
        return Outcome.failed(Stage.LAUNCH, _helper_message(completed.evidence, launcher), completed.evidence)
    if completed.returncode in (Exit.WRONG_CPU, Exit.RECORD, Exit.PARENT_GONE):
        return None
    ends, output = rank_ends(directory), _output_of(directory)
    if not ends:
        return _not_started(completed, launcher, output)
    return _death(completed, ends, layout, output)


def _helper_message(evidence: str, launcher: str) -> str:
    """The error line of a helper program, with what started it."""
    lines = [line for line in evidence.splitlines() if re.match(r"[\w.-]{1,64}: ", line)]
    return f"{lines[0] if lines else evidence[-200:]} (started by {launcher})"


_REFUSALS = (
    ("run as root", "it refuses to start ranks for root: run seatrial as another user"),
    ("not enough slots", "it has fewer slots than ranks: request more tasks from the batch system, or use fewer ranks"),
    ("not have enough slots", "it has fewer slots than ranks: request more tasks, or use fewer ranks"),
    ("error while loading shared libraries", "libraries of the program are missing where the ranks run"),
)
"""Parts of launchers' messages, and what they mean."""


def _not_started(completed: Completed, launcher: str, output: str) -> Outcome:
    """The outcome if no rank wrote anything."""
    why = next((meaning for refusal, meaning in _REFUSALS if refusal in output), None)
    seen = f"{launcher} {completed.died_of} before any rank started"
    return Outcome.failed(Stage.LAUNCH, f"{seen}: {why}" if why else seen, completed.evidence)


_ON_SIGNAL = re.compile(r"process rank (\d{1,9}) with PID \d{1,9} on node \S{1,200} exited on\s{1,9}signal (\d{1,3})")
_WITH_STATUS = re.compile(r"Process name:\s{1,9}\[[^\n]{1,200},(\d{1,9})\]\s{1,9}Exit code:\s{1,9}(\d{1,3})")
_STATUSES = re.compile(r"^\[mpiexec@[^\]\n]{1,200}\] Exit codes: ([^\n]{1,4000})$", re.MULTILINE)
_OUTPUT_B = 4000


def ends_in_output(output: str) -> list[tuple[int, str]]:
    """(rank, how it ended), as the launcher reports it in its output; [] if it does not.

    Open MPI 4 and 5 name the first rank that died; hydra (-print-all-exitcodes) prints the status of each rank like
    wait(2), and 0 for those that it killed itself.
    """
    found = _ON_SIGNAL.search(output)
    if found:
        return [(int(found[1]), f"killed by {signal_name(int(found[2]))}")]
    found = _WITH_STATUS.search(output)
    if found:
        return [(int(found[1]), f"ended with exit status {found[2]}")]
    found = _STATUSES.search(output)
    statuses = re.findall(r"\d{1,9}", re.sub(r"\[[^\]]{0,200}\]", " ", found[1])) if found else []
    return [(rank, _of_status(int(status))) for rank, status in enumerate(statuses) if int(status)]


def _of_status(status: int) -> str:
    if status & 127:
        return f"killed by {signal_name(status & 127)}"
    return f"ended with exit status {status >> 8 & 255}"


def signal_name(number: int) -> str:
    """SIGKILL for 9; "signal N" if it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _output_of(directory: Path) -> str:
    """The end of what launcher and ranks printed on both streams."""
    texts: list[str] = []
    for name in ("stdout", "stderr"):
        with suppress(OSError):
            texts.append(end_of(directory / name, _OUTPUT_B))
    return "\n".join(texts)


def _death(completed: Completed, ends: Sequence[RankEnd], layout: Layout, output: str) -> Outcome:
    """Which ranks died, of what, and while doing what; else what the launcher reports."""
    dead = [end for end in ends if end.died is not None]
    if dead:
        how = _grouped([(end.rank, f"{_cause(end.died)} {end.doing}") for end in dead])
    else:
        named = ends_in_output(output)
        silent = [end.rank for end in ends if not end.has_reported]
        if named:
            how = f"{_grouped(named)}, according to the launcher"
        elif silent and len(silent) < layout.ranks:
            how = f"{_ranks(silent)} exited without a report"
        else:
            how = f"the launcher {completed.died_of}"
    others = [(end.rank, end.doing) for end in ends if end.died is None and end.has_reported]
    rest = f"; the others: {_grouped(others)}" if others else ""
    return Outcome.failed(Stage.RUN, how + rest, completed.evidence)


def _cause(died: str | None) -> str:
    if died is None or died == "exit":
        return "exited"
    return f"killed by {died}" if died.startswith("SIG") else f"failed ({died})"


def _ranks(numbers: Sequence[int]) -> str:
    return f"rank{'s' if len(numbers) > 1 else ''} {runs_of(numbers)}"


def _grouped(texts: Sequence[tuple[int, str]]) -> str:
    """Ranks with the same text together: "ranks 0-2 ...; rank 3 ..."."""
    by_text: dict[str, list[int]] = defaultdict(list)
    for rank, text in texts:
        by_text[text].append(rank)
    return "; ".join(f"{_ranks(ranks)} {text}" for text, ranks in by_text.items())


def _at_timeout(ends: Sequence[RankEnd], layout: Layout) -> str:
    """What each rank did at the time limit; first those that the others must have waited for."""
    if any(end.has_ended for end in ends):
        return "every rank had finished measuring, but the launcher did not exit"
    if all(not end.has_reported for end in ends) and len(ends) == layout.ranks:
        return "no rank reported its state"
    known = {end.rank for end in ends}
    missing = [rank for rank in range(layout.ranks) if rank not in known]
    parts: list[str] = []
    if missing:
        parts.append(f"{_ranks(missing)} never returned from MPI_Init")
    outside = [end for end in ends if not end.has_reported or not end.call]
    inside = [end for end in ends if end.has_reported and end.call]
    if outside:
        parts.append(_grouped([(end.rank, end.doing) for end in outside]))
    if inside:
        waiting = ", waiting" if outside or missing else ""
        parts.append(_grouped([(end.rank, end.doing + waiting) for end in inside]))
        if not outside and not missing:
            parts.append("all are waiting for each other")
    return "; ".join(parts)


def placed(directory: Path, program: str, build: str, this_host: str) -> tuple[Hello, dict[str, object]]:
    """Where the ranks of an application ran, and when the first started, from the files of the placing helpers.

    Raises ProtocolError if one cannot be read.
    """
    records = rank_records(directory)
    hellos = [record.hello for _, record in sorted(records.items()) if record.hello is not None]
    hello = Hello(
        program,
        build,
        hellos[0].host if hellos else this_host,
        ranks=len(hellos),
        cpus=tuple(mask for hello in hellos for mask in hello.cpus),
        hosts=tuple(hello.host for hello in hellos),
    )
    return hello, dict(records[0].notes) if 0 in records else {}


def misplaced(layout: Layout, hello: Hello, allowed: Sequence[int], this_host: str) -> Outcome | None:
    """The outcome if ranks ran on other CPUs or nodes than planned, or in another number; else None.

    On this node, ranks without binding must be free to use all CPUs of this process (`allowed`).
    """
    if len(hello.cpus) != layout.ranks:
        return Outcome.invalid(
            "ranks", f"{len(hello.cpus)} ranks reported their placement, {layout.ranks} were started"
        )
    if layout.is_bound and tuple(map(frozenset, hello.cpus)) != tuple(map(frozenset, layout.cpus)):
        return Outcome.invalid(
            "affinity", f"ranks were bound to CPUs {masks(hello.cpus)} instead of {masks(layout.cpus)}"
        )
    if not layout.is_bound and not layout.hosts:
        held = [rank for rank, mask in enumerate(hello.cpus) if set(mask) < set(allowed)]
        if held:
            return Outcome.invalid(
                "affinity", f"{_ranks(held)} bound to CPUs {masks([hello.cpus[held[0]]])} instead of running unbound"
            )
    return _on_other_hosts(layout, hello.hosts, this_host)


def _on_other_hosts(layout: Layout, seen: Sequence[str], this_host: str) -> Outcome | None:
    """A node's own name may differ from the one in the host list, so the grouping of ranks is compared, and their order
    where the names are the same."""
    if not seen:
        return None
    if not layout.hosts:
        others = sorted({host for host in seen if host != this_host})
        if others:
            return Outcome.invalid("hosts", f"ranks ran on {', '.join(others)} instead of {this_host}")
        return None
    each = layout.ranks_per_host
    groups = [set(seen[start : start + each]) for start in range(0, layout.ranks, each)]
    if any(len(group) != 1 for group in groups) or len(set().union(*groups)) != len(layout.hosts):
        return Outcome.invalid(
            "hosts", f"ranks ran on {', '.join(seen)} instead of {each} each on {', '.join(layout.hosts)}"
        )
    order = [_short(seen[start]) for start in range(0, layout.ranks, each)]
    wanted = [_short(host) for host in layout.hosts]
    if order != wanted and set(order) == set(wanted):
        return Outcome.invalid("hosts", f"ranks ran on {', '.join(order)} in this order instead of {', '.join(wanted)}")
    return None


def _short(host: str) -> str:
    return host.partition(".")[0]


def masks(cpus: Sequence[Sequence[int]]) -> str:
    """CPUs of several threads or ranks, as text."""
    return "; ".join(",".join(map(str, mask)) for mask in cpus) or "none"
