"""Starts programs through the guard of this process, waits for them, reads what they print, and ends them; and
processes that outlive this one, for which whoever starts one records how it is ended.
"""

from __future__ import annotations

import atexit
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from seatrial.model.frozen import Frozen
from seatrial.processes import guard as guarding
from seatrial.processes import tree
from seatrial.processes.messages import pack, receive
from seatrial.processes.working_folder import NEUTRAL, without_working_folder

_AT_EXIT_S = 20.0
_MAIN = "import sys; sys.path.insert(0, sys.argv.pop(1)); from seatrial.processes.guard import main; main()"


class Ending(Frozen):
    """How a program ended: `returncode` as in subprocess; start and end on the clock of time.perf_counter. `io` are the
    final counters of /proc/PID/io, including its children; None if they cannot be read. `used` is what it used,
    including its children (processes/guard.py). `lost_guard`: the guard was killed, and the program with it."""

    returncode: int
    started_s: float
    ended_s: float
    io: Mapping[str, int] | None = None
    used: Mapping[str, float] | None = None
    lost_guard: bool = False


class _Guard:
    """Our side of the guard process."""

    def __init__(self) -> None:
        guarding.adopt_orphans()  # if the guard is killed, what it had adopted becomes ours
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        root = Path(__file__).parents[2]
        with its:
            self._process = subprocess.Popen(
                # -B: Python 3.11 keeps bytecode of which a full disk took a part, and cannot load that module again.
                [sys.executable, "-B", "-I", "-S", "-c", _MAIN, str(root), str(its.fileno()), str(os.getpid())],
                env=without_working_folder(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,  # an open end of our output would keep its reader waiting
                stderr=subprocess.DEVNULL,
                pass_fds=(its.fileno(),),
                process_group=0,
            )
        self._control = ours
        self.pid = self._process.pid
        self.owner = os.getpid()

    def send(self, channel: socket.socket, descriptors: Sequence[int]) -> None:
        """Hand over a program's channel and descriptors. Raises OSError if the guard has ended."""
        socket.send_fds(self._control, [b"+"], [channel.fileno(), *descriptors])

    def close(self) -> None:
        """Let the guard end what is left, and itself."""
        self._control.close()
        try:
            self._process.wait(_AT_EXIT_S)
        except subprocess.TimeoutExpired:
            self._process.returncode = 0  # no warning: it goes on until it has ended the last process


_lock = threading.Lock()
_guard: _Guard | None = None
_running: set[Running] = set()


def _forget() -> None:
    """In a child of this process made by fork: the guard is not its own."""
    global _guard, _lock
    _guard, _lock = None, threading.Lock()
    _running.clear()


def _close() -> None:
    global _guard
    if _guard is not None and _guard.owner == os.getpid():
        _guard.close()
        _guard = None


os.register_at_fork(after_in_child=_forget)
atexit.register(_close)


def hurry() -> None:
    """Kill all programs that are being ended, without the rest of their time of grace."""
    for one in list(_running):
        if one.is_ended_by_us:
            one.kill()


class Running:
    """A program that was started. It ends with this object's `close`, at the latest with this process."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        descriptors: Sequence[int],
        runs_in: Path | None = None,
        grace_s: float = 0.0,
        in_our_group: bool = False,
        cpus: Sequence[int] | None = None,
    ) -> None:
        """Start a program. `descriptors` become its 0, 1, 2, ...; it runs in a new session unless `in_our_group`.

        `grace_s`: the time that it has after SIGTERM to end its own descendants; 0: they are ended with it, after one
        second. `cpus`: those that it may use; None: those of this process. Raises OSError if it cannot be started.
        """
        request: guarding.Request = (
            [os.fsencode(word) for word in words],
            {os.fsencode(name): os.fsencode(value) for name, value in environment.items()},
            _folder(runs_in),
            tree.umask_here(),
            sorted(os.sched_getaffinity(0) if cpus is None else cpus),
            guarding.limits_here(),
            os.getpgrp() if in_our_group else None,
            grace_s,
        )
        message = pack(request)
        self._children_before = tree.children(os.getpid())
        self._ending: Ending | None = None
        self.is_ended_by_us = False
        self._began = time.perf_counter()
        self._channel = self._handed_over(descriptors)
        try:
            self._channel.sendall(message)
            answer = receive(self._channel)
        except BaseException:
            self._channel.close()  # the guard then ends the program, if it had started it
            raise
        if answer is None:
            self._channel.close()
            raise OSError(0, "the process that starts programs was killed", words[0])
        self.pid, error = answer
        if error:
            self._channel.close()
            raise OSError(error, os.strerror(error), words[0])
        _running.add(self)

    @staticmethod
    def _handed_over(descriptors: Sequence[int]) -> socket.socket:
        """Our end of a new channel, whose other end the guard has; a guard that was killed is replaced."""
        global _guard
        while True:
            ours, its = socket.socketpair()
            with its, _lock:
                if _guard is None:
                    _guard = _Guard()
                sender = _guard
                try:
                    sender.send(its, descriptors)
                    return ours
                except (BrokenPipeError, ConnectionError):
                    _guard = None
                except BaseException:
                    ours.close()
                    raise
            ours.close()
            sender.close()

    def wait(self, timeout_s: float | None = None) -> Ending | None:
        """Its ending, after which nothing that it started is left; None if that takes longer than `timeout_s`."""
        if self._ending is not None:
            return self._ending
        if timeout_s is not None:
            waiting = select.poll()
            waiting.register(self._channel, select.POLLIN)
            if not waiting.poll(max(0.0, timeout_s) * 1e3):
                return None
        answer = receive(self._channel)
        _running.discard(self)
        self._channel.close()
        self._ending = self._lost() if answer is None else Ending(*answer)
        return self._ending

    def end(self) -> None:
        """Ask the guard to end it: SIGTERM, its time of grace, SIGKILL. `wait` returns when that is done."""
        self.is_ended_by_us = True
        self._tell(guarding.END)

    def kill(self) -> None:
        """SIGKILL at once to it and all its descendants."""
        self.is_ended_by_us = True
        self._tell(guarding.KILL)

    def send_signal(self, number: int) -> None:
        """Send a signal to the program itself."""
        if self._ending is None:
            try:
                os.kill(self.pid, number)
            except ProcessLookupError:
                return

    def _tell(self, what: bytes) -> None:
        if self._ending is None:
            try:
                self._channel.send(what)
            except OSError:
                return

    def _lost(self) -> Ending:
        """The guard was killed: the kernel killed the program, and its descendants became our children."""
        deadline = time.monotonic() + 1.0
        while tree.is_alive(self.pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        ours = self._children_before | ({_guard.pid} if _guard is not None else set())
        while orphans := tree.children(os.getpid()) - ours:
            tree.kill([member for orphan in orphans for member in (orphan, *tree.descendants(orphan))])
            for orphan in orphans:
                tree.reap(orphan)
        return Ending(-signal.SIGKILL, self._began, time.perf_counter(), lost_guard=True)


def _folder(runs_in: Path | None) -> bytes | None:
    """The working directory of a program: `runs_in`, relative to ours; None if ours was removed."""
    try:
        return bytes(Path.cwd() / (runs_in or ""))
    except FileNotFoundError:
        return None if runs_in is None else os.fsencode(runs_in)


def start_detached(
    words: Sequence[str],
    environment: Mapping[str, str],
    log: Path,
    before: Callable[[], None] = lambda: None,
    keep: Sequence[int] = (),
) -> int:
    """Start a process in its own session, in the root folder, without standard input; what it prints is appended
    to `log`. `before` runs in it first, in a copy of this process. It also gets the descriptors `keep`. Returns its id.

    Not through the guard, which would end it with this process. Raises OSError, and subprocess.SubprocessError if
    `before` raises.
    """
    # Python ignores what a signal handler raises while it forks, so a signal would be lost.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def first() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        before()

    try:
        with log.open("ab") as printed:
            process = subprocess.Popen(
                list(words),
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                cwd="/",
                start_new_session=True,
                preexec_fn=first,
                pass_fds=keep,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
    process.returncode = 0  # nobody waits for it
    return process.pid


class ProgramOutput(Frozen):
    """What a tool printed, and its return code as in subprocess."""

    returncode: int
    stdout: bytes
    stderr: bytes


class OutOfTimeError(Exception):
    """A tool did not finish in time and was killed."""


def output_of(
    command: Sequence[str],
    environment: Mapping[str, str],
    limit_s: float,
    text: bytes = b"",
    started: Callable[[Running], None] = lambda tool: None,
    runs_in: Path | None = NEUTRAL,
) -> ProgramOutput:
    """Run a tool with `text` as its standard input. It is killed, with its descendants, when the time limit passes and
    when this process is interrupted. Nothing in the working folder affects it (processes/working_folder.py), unless
    `runs_in` is None: then it runs there, with the variables as they are. Raises OSError if it cannot be started,
    OutOfTimeError."""
    if runs_in is not None:
        environment = without_working_folder(environment)
        if "/" in command[0]:
            command = [str(Path(command[0]).absolute()), *command[1:]]
    files = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]  # a pipe would need a reader beside it
    try:
        os.write(files[0], text)
        os.lseek(files[0], 0, os.SEEK_SET)
        tool = Running(command, environment, files, runs_in)
        try:
            started(tool)
            ending = tool.wait(limit_s)
        except BaseException:
            tool.kill()
            tool.wait()
            raise
        if ending is None:
            tool.kill()
            tool.wait()
            raise OutOfTimeError
        return ProgramOutput(ending.returncode, _content(files[1]), _content(files[2]))
    finally:
        for file in files:
            os.close(file)


def _content(file: int) -> bytes:
    return os.pread(file, os.fstat(file).st_size, 0)
