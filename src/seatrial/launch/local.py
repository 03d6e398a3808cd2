"""Runs programs on this machine: with a time limit, leaving no process of theirs running; or one in the foreground,
with the terminal, standard input and signals of seatrial, without a time limit.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.processes.start import Ending, Running

EVIDENCE_BYTES = 4000
"""Bytes from the end of a program's output that are kept as evidence."""

_TURN_ENDS = "3-4"
"""The descriptors of a program's ends of the ring, after its standard streams."""
_NO_GUARD = "the seatrial process that starts programs was killed, and this program with it"


class Completed(Frozen):
    """How a program ended: `returncode` (negative for a signal, as in subprocess) and the end of its output. `io` are
    the final counters of /proc/PID/io, including its children; None if they cannot be read. `used`: CPU time, faults,
    switches and memory, including its children, and the times of its main thread (processes/guard.py)."""

    returncode: int
    wall_s: float
    limit_s: float
    timed_out: bool
    evidence: str
    io: Mapping[str, int] | None = None
    used: Mapping[str, float] | None = None
    start_s: float = 0.0
    """When it was started, in seconds after the first of the programs that run together; so is the end, `wall_s`."""
    clock_s: float = 0.0
    """When the first one was started, on CLOCK_MONOTONIC."""

    @property
    def died_of(self) -> str:
        """How it ended, for messages."""
        if self.returncode < 0:
            try:
                name = signal.Signals(-self.returncode).name
            except ValueError:
                name = f"signal {-self.returncode}"
            return f"was killed by {name}"
        return f"ended with exit status {self.returncode}"


class LocalProgram(Frozen):
    """What to start: a command, its environment, the folder for its stdout and stderr, and its working directory (None:
    the current one). `grace_s`: the time that it has after SIGTERM to end its own descendants (launch/mpi.py); 0:
    they are ended with it. `cpus`: those that it may use; None: all that this process may use."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: Path
    runs_in: Path | None = None
    grace_s: float = 0.0
    cpus: tuple[int, ...] | None = None


def run(
    command: Sequence[str], environment: Mapping[str, str], directory: Path, limit_s: float, runs_in: Path | None = None
) -> Completed:
    """Run a command and wait for it; stdout and stderr go to files in `directory`.

    After `limit_s` seconds, and when this process is interrupted, the program is ended with all its descendants.
    Raises OSError if it cannot be started.
    """
    (completed,) = run_together([LocalProgram(command, environment, directory, runs_in)], limit_s)
    return completed


def run_together(programs: Sequence[LocalProgram], limit_s: float, *, in_turns: bool = True) -> list[Completed]:
    """Run programs concurrently and wait for all of them.

    Several programs that run `in_turns` are connected by a ring of pipes, and the first one leads (native/turns.hpp);
    all of them must support that. Each `wall_s` begins with the first one's start. Ended, and raising, as by `run`: all
    together.
    """
    started: list[Running] = []
    try:
        _start(programs, started, in_turns=in_turns)
        endings, expired = _wait(started, time.perf_counter() + limit_s)
    except BaseException:
        _end(started)
        raise
    start = endings[0].started_s
    return [
        Completed(
            ending.returncode,
            ending.ended_s - start,
            limit_s,
            expired,
            _NO_GUARD if ending.lost_guard else evidence_in(program.directory),
            ending.io,
            ending.used,
            ending.started_s - start,
            start,
        )
        for program, ending in zip(programs, endings, strict=True)
    ]


def _wait(started: Sequence[Running], deadline: float) -> tuple[list[Ending], bool]:
    """How the programs ended, in order, and whether they were ended because the deadline had passed."""
    endings: list[Ending] = []
    for one in started:
        ending = one.wait(deadline - time.perf_counter())
        if ending is None:
            return [*endings, *_end(started[len(endings) :])], True
        endings.append(ending)
    return endings, False


def _end(started: Iterable[Running]) -> list[Ending]:
    """End the programs that still run, all at the same time."""
    running = list(started)
    for one in running:
        one.end()
    return [ending for one in running if (ending := one.wait()) is not None]


def _start(programs: Sequence[LocalProgram], started: list[Running], *, in_turns: bool) -> None:
    """Start all; each inherits only its two ends of the ring, so that the next one notices when it exits."""
    with ExitStack() as ours:
        ring = [_pipe(ours) for _ in programs] if in_turns and len(programs) > 1 else []
        stdin = os.open(os.devnull, os.O_RDONLY)
        ours.callback(os.close, stdin)
        for k, program in enumerate(programs):
            stdout, stderr = (
                ours.enter_context(open(program.directory / name, "wb", opener=_private)).fileno()
                for name in ("stdout", "stderr")
            )
            ends = (ring[k - 1][0], ring[k][1]) if ring else ()
            turns = ["--turns", _TURN_ENDS, "--leads", str(int(k == 0))] if ends else []
            started.append(
                Running(
                    [*program.command, *turns],
                    program.environment,
                    (stdin, stdout, stderr, *ends),
                    program.runs_in,
                    program.grace_s,
                    cpus=program.cpus,
                )
            )


def _private(path: str, flags: int) -> int:
    """Opens a file that only its owner may read: programs print what nobody else should see."""
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # it may be left by a killed run of an earlier version
    return descriptor


def _pipe(owner: ExitStack) -> tuple[int, int]:
    """A pipe (read end, write end) that is closed in this process with its owner."""
    ends = os.pipe()
    for descriptor in ends:
        owner.callback(os.close, descriptor)
    return ends


def evidence_in(directory: Path) -> str:
    """The end of stderr, or of stdout if stderr is empty."""
    ends = (end_of(directory / name, EVIDENCE_BYTES).strip() for name in ("stderr", "stdout"))
    return next(filter(None, ends), "")


def end_of(file: Path, most_B: int) -> str:
    """The last bytes of a file, as text. Raises OSError."""
    with file.open("rb") as stream:
        stream.seek(max(0, os.fstat(stream.fileno()).st_size - most_B))
        return stream.read(most_B).decode("utf-8", "replace")


_SIGNALLED = 128
_FROM_TERMINAL = (signal.SIGINT, signal.SIGQUIT)
FORWARDED = (*_FROM_TERMINAL, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
"""Signals that batch systems and users send to the command."""
_SI_KERNEL = 0x80
"""`si_code` of a signal that the terminal sent to its whole foreground group, the command included (sigaction(2))."""
_OVER = signal.SIGRTMIN
"""Ends the thread that forwards signals."""


class Ended(Frozen):
    """How a command ended: its exit status as in a shell (128 + number for a signal). `clock_s` is when it was started,
    on CLOCK_MONOTONIC."""

    exit_status: int
    started_s: float
    wall_s: float
    clock_s: float = 0.0


def run_attached(command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None) -> Ended:
    """Run a command to its end. `stdout` is a file descriptor for its output (default: our own).

    Signals that this process receives are forwarded, and only the command reacts to them; Ctrl-C reaches it directly
    from the terminal. Raises OSError if it cannot be started.
    """
    with ExitStack() as ours, _signals_taken() as forward_to:
        streams = [standard_stream(ours, number) for number in (0, 1 if stdout is None else stdout, 2)]
        started_s = time.time()
        program = Running(command, environment, streams, in_our_group=True)
        try:
            with forward_to(program):
                ending = program.wait()
        finally:
            program.end()
            ending = program.wait()
    status = -signal.SIGKILL if ending is None else ending.returncode
    wall_s = 0.0 if ending is None else ending.ended_s - ending.started_s
    clock_s = 0.0 if ending is None else ending.started_s
    return Ended(status if status >= 0 else _SIGNALLED - status, started_s, wall_s, clock_s)


def standard_stream(ours: ExitStack, number: int) -> int:
    """A standard stream of ours; /dev/null if it is closed."""
    try:
        os.fstat(number)
    except OSError:
        number = os.open(os.devnull, os.O_RDWR)
        ours.callback(os.close, number)
    return number


@contextmanager
def _signals_taken() -> Iterator[Callable[[Running], _Forwarding]]:
    """Context in which signals are kept for `_Forwarding`; what this process ignores stays ignored."""
    taken = {number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*taken, _OVER})
    try:
        yield lambda program: _Forwarding(program, taken)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Forwarding:
    """Context that forwards signals to a program, those that arrived before it had started too."""

    def __init__(self, program: Running, numbers: set[signal.Signals]) -> None:
        self._program = program
        self._numbers = numbers
        self._thread = threading.Thread(target=self._forward, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        if self._thread.ident is not None:
            signal.pthread_kill(self._thread.ident, _OVER)
            self._thread.join()

    def _forward(self) -> None:
        while True:
            seen = signal.sigwaitinfo({*self._numbers, _OVER})
            if seen.si_signo == _OVER:
                return
            if not (seen.si_signo in _FROM_TERMINAL and seen.si_code == _SI_KERNEL):
                self._program.send_signal(seen.si_signo)
