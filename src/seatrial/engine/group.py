"""A group: experiments whose repeats are run side by side; a block holds one repeat of each."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from seatrial.engine.ready import Ready
from seatrial.errors import ProtocolError
from seatrial.launch.ranks import rank_layout
from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import RepeatRecord, recorded_readings
from seatrial.model.results.sample import Outcome, point_key
from seatrial.stats.interval import LOOKS
from seatrial.stats.ratio import half_steps, pair_of_block
from seatrial.store.record_heads import RecordHead

FigureKey = tuple[str, tuple[tuple[str, Value], ...]]
"""A figure's name and its sweep coordinates in the program's record."""

Recorded = RepeatRecord | RecordHead
"""A repeat that was made now, or the head of a stored one."""

_MOST_TOGETHER = 4


class Figures(Frozen):
    """What the policies use of the figures of a repeat: the value of each; the values of its samples, if it took turns
    with others; its resolution, as a share of its value."""

    values: Mapping[FigureKey, float] = {}
    turns: Mapping[FigureKey, tuple[float, ...]] = {}
    resolutions: Mapping[FigureKey, float] = {}


class OkRepeat(Struct):
    """An ok repeat whose figures are read when they are needed: of many repeats, the policies use the first ones.
    `block` is None in records older than blocks. Once the figures are known, nothing keeps the record: those of a study
    of thousands of experiments would fill the memory."""

    repeat: int
    wall_s: float
    block: str | None
    read: Callable[[], Figures] | None
    _known: Figures | None = None

    @property
    def figures(self) -> Figures:
        """The figures; none if they cannot be computed. Raises StoreError if the record cannot be read."""
        if self._known is None:
            try:
                self.read_now()
            except ProtocolError:
                self._known, self.read = Figures(), None
        return self._known or Figures()

    def read_now(self) -> None:
        """Read the figures. Raises ProtocolError if they cannot be computed, StoreError if the record cannot be
        read."""
        if self.read is not None:
            self._known, self.read = self.read(), None


def _figures_of(recorded: Recorded, ready: Ready, machine: Machine) -> Figures:
    record = recorded.full() if isinstance(recorded, RecordHead) else recorded
    found = recorded_readings(ready.point.benchmark, machine, ready.point.parameters, record)
    keyed = [((reading.figure.name, point_key(reading.point)), reading) for reading in found]
    return Figures(
        {key: reading.value for key, reading in keyed},
        {key: reading.values for key, reading in keyed} if record.seen.get("together") else {},
        {key: reading.resolution for key, reading in keyed if reading.resolution},
    )


class Latest(Struct):
    """The latest repeat of an experiment: its number, its outcome, and the budget that it was made with, in seconds."""

    repeat: int
    outcome: Outcome
    budget_s: float | None


class Member(Struct):
    """An experiment of a group. The first `left_out` of its ok repeats do not count. `expected_s` is the time of
    a repeat as far as known before the first, in seconds.

    Repeats are claimed one after another, so their numbers give their order, even if a clock is set back."""

    ready: Ready
    machine: Machine
    ok_repeats: list[OkRepeat] = []
    taken: set[int] = set()
    left_out: int = 0
    made: int = 0
    has_failed: bool = False
    latest: Latest | None = None
    expected_s: float | None = None

    def add(self, record: Recorded) -> None:
        """Add a record."""
        self.taken.add(record.repeat)
        if self.latest is None or record.repeat >= self.latest.repeat:
            self.latest = Latest(record.repeat, record.outcome, record.seen.get("budget_s"))
        if record.outcome.is_ok:
            read = partial(_figures_of, record, self.ready, self.machine)
            repeat = OkRepeat(record.repeat, record.wall_s, record.seen.get("block"), read)
            if len(self.ok_repeats) < LOOKS[-1]:
                try:
                    repeat.read_now()
                except ProtocolError as error:
                    if self.latest.repeat == record.repeat:  # it is tried again
                        self.latest = replace(self.latest, outcome=Outcome.invalid("samples", error.message))
                    return
            insort(self.ok_repeats, repeat, key=lambda repeat: repeat.repeat)

    @property
    def counted(self) -> list[OkRepeat]:
        """The ok repeats that count, in order."""
        return self.ok_repeats[self.left_out :]

    def figures(self) -> dict[FigureKey, list[float]]:
        """Figure -> its values in the counted repeats up to the last planned look, in order; without secondary
        figures."""
        counted = self.ok_repeats[self.left_out : self.left_out + LOOKS[-1]]
        keys = [key for key in counted[0].figures.values if not self.is_secondary(key)] if counted else []
        return {key: [values[key] for repeat in counted if key in (values := repeat.figures.values)] for key in keys}

    def is_secondary(self, key: FigureKey) -> bool:
        """Whether a figure only accompanies others."""
        return self.ready.point.benchmark.figure(key[0]).is_secondary

    @property
    def spent_s(self) -> float:
        """The time of the counted repeats, in seconds."""
        return sum(repeat.wall_s for repeat in self.counted)

    @property
    def next_s(self) -> float:
        """The expected time of the next repeat, in seconds: the mean of the last ones."""
        last = self.ok_repeats[-LOOKS[-1] :]
        if not last:
            return self.ready.point.estimate_s or 0.0 if self.expected_s is None else self.expected_s
        return sum(repeat.wall_s for repeat in last) / len(last)


class Group(Struct):
    """Experiments that are repeated side by side; if they are compared, the first is the baseline."""

    members: list[Member]
    is_finished: bool = False
    runs_separately: bool = False
    """Whether its programs run one after another because a concurrent run failed."""

    @property
    def alive(self) -> list[Member]:
        """The members whose last repeat succeeded, or that have none yet."""
        return [member for member in self.members if not member.has_failed]

    @property
    def next_s(self) -> float:
        """The expected time of the next block, in seconds."""
        return sum(member.next_s for member in self.alive)

    @property
    def repeats(self) -> int:
        """The smallest number of counted repeats among the active members."""
        return min((len(member.counted) for member in self.alive), default=0)


def can_take_turns(members: Sequence[Member]) -> bool:
    """Whether the programs of a block can run concurrently and sample in turns: on the same CPUs with the same settings
    of the node, as equally many ranks of this host, and only a few, since all keep their memory allocated. A meter
    cannot distinguish their power."""
    return (
        1 < len(members) <= _MOST_TOGETHER
        and all(member.ready.point.benchmark.program.takes_turns for member in members)
        and not any(member.ready.point.has_power for member in members)
        and len({(member.ready.point.cpus, _ranks_here(member.ready)) for member in members}) == 1
        and len({member.ready.node_settings for member in members}) == 1
        and all(_ranks_here(member.ready) is not None for member in members)
    )


def _ranks_here(ready: Ready) -> int | None:
    """The number of ranks, 0 for a program without MPI; None if it is in a guest, or they
    are elsewhere, or started by Slurm."""
    if ready.machine is not None:
        return None
    if ready.mpi is None:
        return 0
    layout = rank_layout(ready.point)
    launcher = ready.mpi.launcher
    return layout.ranks if not layout.hosts and launcher is not None and launcher.name != "srun" else None


def blocks_of(baseline: Member, candidate: Member) -> list[tuple[OkRepeat, OkRepeat]]:
    """(baseline, candidate) in each block that has both, in order."""
    of_baseline = {repeat.block: repeat for repeat in baseline.counted if repeat.block}
    return [(of_baseline[repeat.block], repeat) for repeat in candidate.counted if repeat.block in of_baseline]


def _with_figure(baseline: Member, candidate: Member, key: FigureKey) -> list[tuple[Figures, Figures]]:
    pairs = [(first.figures, second.figures) for first, second in blocks_of(baseline, candidate)]
    return [(first, second) for first, second in pairs if key in first.values and key in second.values]


def paired(baseline: Member, candidate: Member, key: FigureKey) -> list[tuple[float, float]]:
    """(baseline, candidate) values of one figure in each block that has both, in order."""
    return [
        pair_of_block(first.values[key], second.values[key], first.turns.get(key, ()), second.turns.get(key, ()))
        for first, second in _with_figure(baseline, candidate, key)
    ]


def paired_steps(baseline: Member, candidate: Member, key: FigureKey) -> list[float]:
    """The half steps of one figure in the blocks of `paired`."""
    return [
        half_steps(first.resolutions.get(key, 0.0), second.resolutions.get(key, 0.0))
        for first, second in _with_figure(baseline, candidate, key)
    ]
