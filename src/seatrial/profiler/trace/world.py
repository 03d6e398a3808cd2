"""The traces of all ranks of a program: the members of its communicators, and whether anything is missing."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from seatrial.errors import UsageError
from seatrial.profiler.trace.trace_file import Communicator, Trace


def trace_worlds(paths: Sequence[Path]) -> list[list[Path]]:
    """The traces of one command, program by program, longest total time of the ranks first.

    Traces contain no job id: a process joins the most recently started world of its size that does not have its rank
    yet. Raises ParseError for a damaged trace; OSError.
    """
    found: list[tuple[int, dict[int, Path], list[float]]] = []
    begun = []
    for path in paths:
        trace = Trace(path)
        begun.append((trace.loaded_at_s, trace.rank, trace.size, trace.length_s, path))
        trace.close()
    for _, rank, size, length_s, path in sorted(begun):
        joined = next((one for one in reversed(found) if one[0] == size and rank not in one[1]), None)
        if joined is None:
            joined = (size, {}, [])
            found.append(joined)
        joined[1][rank] = path
        joined[2].append(length_s)
    return [list(world.values()) for _, world, _ in sorted(found, key=lambda one: -sum(one[2]))]


class TraceWorld:
    """The traces of all ranks of a world, by rank; as a context manager it closes them."""

    def __init__(self, paths: Sequence[Path]) -> None:
        """Raises ParseError for a damaged trace; UsageError unless they are the traces of one world, each rank once."""
        self._open = ExitStack()
        try:
            traces = [self._opened(path) for path in paths]
            self.traces = tuple(sorted(traces, key=lambda trace: trace.rank))
            self._check()
        except BaseException:
            self._open.close()
            raise
        self.size = len(self.traces)
        self.began_s = min(trace.loaded_at_s for trace in self.traces)
        self.communicators: tuple[dict[int, Communicator], ...] = tuple(trace.communicators() for trace in self.traces)
        self._members: dict[int, dict[int, int]] = {}
        self._sizes: dict[int, int] = {}
        for trace, known in zip(self.traces, self.communicators, strict=True):
            for communicator in known.values():
                self._members.setdefault(communicator.id, {})[communicator.rank] = trace.rank
                self._sizes[communicator.id] = communicator.size

    def __enter__(self) -> TraceWorld:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._open.close()

    def members(self, communicator_id: int) -> tuple[int, ...] | None:
        """The communicator's members as ranks of the world, in order; None if a member's trace does not have it."""
        found = self._members.get(communicator_id, {})
        size = self._sizes.get(communicator_id, 0)
        if sorted(found) != list(range(size)):
            return None
        return tuple(found[rank] for rank in range(size))

    @property
    def lost(self) -> int:
        """Records dropped on all ranks because a trace was full."""
        return sum(trace.lost for trace in self.traces)

    @property
    def unfinished(self) -> tuple[int, ...]:
        """Ranks that did not reach MPI_Finalize."""
        return tuple(trace.rank for trace in self.traces if trace.ended is None)

    @property
    def is_whole(self) -> bool:
        """Whether the traces of all ranks are complete: then every received message was also sent."""
        return not self.lost and not self.unfinished and not any(trace.has_open_receives() for trace in self.traces)

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the first rank to the MPI_Finalize of the last, or to the last record of a rank
        that did not reach it."""
        return max(trace.loaded_at_s + trace.length_s for trace in self.traces) - self.began_s

    def _opened(self, path: Path) -> Trace:
        trace = Trace(path)
        self._open.callback(trace.close)
        return trace

    def _check(self) -> None:
        if not self.traces:
            raise UsageError("no trace found", "profile with `--trace`, and give the folder of the tables")
        size = self.traces[0].size
        ranks = [trace.rank for trace in self.traces]
        if any(trace.size != size for trace in self.traces) or len(set(ranks)) != len(ranks):
            raise UsageError(
                f"these are traces of more than one program: ranks {ranks[:8]} of worlds of "
                f"{sorted({trace.size for trace in self.traces})} ranks",
                "export the traces of one program at a time",
            )
        missing = sorted(set(range(size)) - set(ranks))
        if missing:
            raise UsageError(
                f"{len(missing)} of {size} ranks left no trace: {', '.join(map(str, missing[:8]))}",
                "a replay needs the traces of all ranks",
            )
