"""The guard: a process that starts the programs of one seatrial process, and ends them all when that process ends.

It runs apart from seatrial in its own process group, so it sees seatrial end by any signal, also by one that is
sent to seatrial's whole group. It adopts every descendant that loses its parent (Linux `PR_SET_CHILD_SUBREAPER`,
prctl(2)), so neither a new session nor a double fork lets a process escape. If the guard itself is killed, the kernel
kills the programs that it started (`PR_SET_PDEATHSIG`), and seatrial adopts and ends the rest (processes/start.py).
While a program runs, the guard sleeps in poll(2).

Protocol: each message on the control socket carries a channel and the descriptors of one program. On the channel
comes the `Request`; the answers are `(pid, error)` and at last the `Ending`, all in the format of `marshal`. Bytes on
the channel ask for the program's end (`END`, `KILL`); closing it does as well.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import resource
import select
import signal
import socket
import sys
import time

from seatrial.processes import tree
from seatrial.processes.messages import pack, receive

TYPE_CHECKING = False  # this process starts with every command that runs programs: it imports little
if TYPE_CHECKING:
    from typing import Any

END, KILL = b"E", b"K"
MOST_DESCRIPTORS = 16
_GRACE_S = 1.0
_LOOK_AGAIN_S = 0.02
_PARENT_LOOK_S = 1.0
_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGUSR1, signal.SIGUSR2)
_LIMITS = tuple(sorted({value for name, value in vars(resource).items() if name.startswith("RLIMIT_")}))

Request = tuple[list[bytes], dict[bytes, bytes], bytes | None, int, list[int], list[tuple[int, int]], int | None, float]
"""Words, environment, folder (None: the guard's), umask, CPUs, limits, process group (None: a new session), grace in
seconds."""
Ending = tuple[int, float, float, dict[str, int] | None, dict[str, float]]
"""Return code as in subprocess, start and end (CLOCK_MONOTONIC), counters of /proc/PID/io, and what it used."""

_libc = ctypes.CDLL(None, use_errno=True)


def adopt_orphans() -> None:
    """Make this process the parent of its descendants that lose theirs."""
    _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def end_with(parent: int) -> None:
    """Have the kernel kill this process when its parent ends."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before
        os._exit(127)


def limits_here() -> list[tuple[int, int]]:
    """The resource limits of this process, in the order that a request has them."""
    return [resource.getrlimit(one) for one in _LIMITS]


class _Program:
    """A program that runs, or that has ended and whose orphans are being ended."""

    def __init__(self, pid: int, channel: socket.socket, grace_s: float, started: float) -> None:
        self.pid = pid
        self.channel = channel
        self.grace_s = grace_s
        self.started = started
        self.ending: Ending | None = None
        self.is_asked = False
        self.is_abandoned = False
        self.kill_at = float("inf")


class Guard:
    """The programs of one seatrial process."""

    def __init__(self, control: socket.socket, owner: int) -> None:
        self._control = control
        self._owner = owner
        self._pid = os.getpid()
        self._programs: dict[int, _Program] = {}
        self._orphans_kill_at: dict[int, float] = {}
        self._owner_is_gone = False
        self._poll = select.poll()
        self._woken, wake = os.pipe()
        for end in (self._woken, wake):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (*_HANDLED, signal.SIGCHLD):
            # A handler instead of SIG_IGN, which the programs would inherit; what seatrial ignores stays ignored.
            if number == signal.SIGCHLD or signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, lambda number, frame: None)
        self._poll.register(self._woken, select.POLLIN)
        self._poll.register(control, select.POLLIN)
        try:
            self._owner_end = os.pidfd_open(owner)
            self._poll.register(self._owner_end, select.POLLIN)
        except OSError:  # Linux before 5.3: the control socket's end, and a look at our parent from time to time
            self._owner_end = -1

    def run(self) -> None:
        """Serve until the owner has ended and nothing that it started is left."""
        while True:
            ready = {descriptor for descriptor, _ in self._poll.poll(self._timeout_ms())}
            if self._woken in ready:
                os.read(self._woken, 4096)
            if self._owner_end in ready or os.getppid() != self._owner:
                self._owner_ended()
            elif self._control.fileno() in ready:
                self._accept()
            for program in [one for one in self._programs.values() if one.channel.fileno() in ready]:
                self._told(program)
            self._collect()
            self._tick()
            if self._owner_is_gone and not self._programs and not tree.children(self._pid):
                return

    def _timeout_ms(self) -> float | None:
        if self._owner_is_gone or self._orphans_kill_at:
            return _LOOK_AGAIN_S * 1e3
        if any(one.is_asked or one.ending is not None for one in self._programs.values()):
            return _LOOK_AGAIN_S * 1e3
        return None if self._owner_end >= 0 else _PARENT_LOOK_S * 1e3

    def _owner_ended(self) -> None:
        if not self._owner_is_gone:
            self._owner_is_gone = True
            for descriptor in (self._control.fileno(), self._owner_end):
                if descriptor >= 0:
                    self._poll.unregister(descriptor)
            self._owner_end = -1
            self._control.close()
            for program in self._programs.values():
                self._ask(program)

    # Starting

    def _accept(self) -> None:
        descriptors = array.array("i")
        flags = socket.MSG_CMSG_CLOEXEC
        try:
            data, ancillary, _, _ = self._control.recvmsg(16, socket.CMSG_SPACE(4 * MOST_DESCRIPTORS), flags)
        except ConnectionError:
            data, ancillary = b"", []
        for _, _, more in ancillary:
            descriptors.frombytes(more[: len(more) - len(more) % descriptors.itemsize])
        if not data or not descriptors:
            self._owner_ended()
            return
        channel = socket.socket(fileno=descriptors[0])
        try:
            request: Request | None = receive(channel)
            if request is not None:
                self._start(channel, request, list(descriptors[1:]))
        finally:
            for descriptor in descriptors[1:]:
                os.close(descriptor)

    def _start(self, channel: socket.socket, request: Request, descriptors: list[int]) -> None:
        result, failed = os.pipe()
        started = time.perf_counter()
        pid = os.fork()
        if pid == 0:
            _become(request, descriptors, failed, self._pid)
        os.close(failed)
        with os.fdopen(result, "rb") as stream:
            error = int.from_bytes(stream.read(), "little")
        if error:
            os.waitpid(pid, 0)
            _send(channel, (0, error))
            channel.close()
            return
        self._programs[pid] = _Program(pid, channel, request[-1], started)
        self._poll.register(channel, select.POLLIN)
        _send(channel, (pid, 0))

    # Ending

    def _told(self, program: _Program) -> None:
        try:
            asked = program.channel.recv(16)
        except OSError:
            asked = b""
        if not asked:
            self._poll.unregister(program.channel)
            program.is_abandoned = True
        self._ask(program)
        if KILL in asked:
            program.kill_at = 0.0

    def _ask(self, program: _Program) -> None:
        """SIGTERM: to the program alone if it has a grace period, in which it ends its own descendants."""
        if program.is_asked or program.ending is not None:
            return
        program.is_asked = True
        members = [program.pid] if program.grace_s else [program.pid, *tree.descendants(program.pid)]
        program.kill_at = time.monotonic() + (program.grace_s or _GRACE_S)
        tree.terminate(members)

    def _tick(self) -> None:
        """Kill what did not end in time; answer for the programs of which nothing is left."""
        now = time.monotonic()
        for program in list(self._programs.values()):
            if program.ending is None and now >= program.kill_at:
                tree.kill([program.pid, *tree.descendants(program.pid)])
        is_idle = all(one.ending is not None for one in self._programs.values())
        if is_idle or any(one.ending is not None for one in self._programs.values()):
            orphans = tree.children(self._pid) - set(self._programs)
            for program in [one for one in self._programs.values() if one.ending is not None]:
                # While other programs run, an orphan belongs to the program whose session it is in; one in its
                # own session is ended when none runs.
                own = orphans if is_idle else {pid for pid in orphans if tree.session(pid) == program.pid}
                if own:
                    self._end_orphans(own, now, 0.0 if program.kill_at == 0.0 else _GRACE_S)
                else:
                    self._answer(program)
            if self._owner_is_gone and is_idle:
                self._end_orphans(tree.children(self._pid) - set(self._programs), now, _GRACE_S)
        self._orphans_kill_at = {pid: at for pid, at in self._orphans_kill_at.items() if tree.exists(pid)}

    def _end_orphans(self, orphans: set[int], now: float, grace_s: float) -> None:
        new = orphans - set(self._orphans_kill_at)
        for pid in new:
            self._orphans_kill_at[pid] = now + grace_s
            tree.terminate([pid, *tree.descendants(pid)])
        for pid in orphans:
            if now >= self._orphans_kill_at[pid]:
                tree.kill([pid, *tree.descendants(pid)])

    def _answer(self, program: _Program) -> None:
        del self._programs[program.pid]
        _send(program.channel, program.ending)
        if not program.is_abandoned:
            self._poll.unregister(program.channel)
        program.channel.close()

    def _collect(self) -> None:
        """Wait for everything that has ended: the programs, and the orphans, which became our children."""
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            program = self._programs.get(ended.si_pid)
            if program is None:
                os.waitpid(ended.si_pid, 0)
                continue
            end = time.perf_counter()
            counters = tree.read_counters(program.pid)  # including all children that it waited for
            leader = tree.read_times(program.pid)
            _, status, usage = os.wait4(program.pid, 0)
            used = {**_used(usage), **leader, **tree.calls_of(counters)}
            program.ending = (os.waitstatus_to_exitcode(status), program.started, end, counters, used)


def _used(usage: resource.struct_rusage) -> dict[str, float]:
    """What a program and all children that it waited for used (getrusage(2)). The memory is at least the guard's own,
    which the program had until it was executed."""
    return {
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "minor_faults": usage.ru_minflt,
        "major_faults": usage.ru_majflt,
        "voluntary": usage.ru_nvcsw,
        "involuntary": usage.ru_nivcsw,
        "max_resident_B": usage.ru_maxrss * 1024,
    }


def _send(channel: socket.socket, message: Any) -> None:
    try:
        channel.sendall(pack(message))
    except OSError:  # seatrial has ended, or no longer waits for this program
        return


def _become(request: Request, descriptors: list[int], failed: int, guard: int) -> None:
    """In the new process: take the caller's circumstances and run the program. Does not return."""
    words, environment, folder, umask, cpus, limits, group, _ = request
    try:
        end_with(guard)
        signal.set_wakeup_fd(-1)
        if group is None:
            os.setsid()
        else:
            _join(group)
        # Out of the way of 0, 1, 2, ...; not further, since a limit (ulimit -n) may be low.
        failed = fcntl.fcntl(failed, fcntl.F_DUPFD_CLOEXEC, len(descriptors))
        moved = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, len(descriptors)) for one in descriptors]
        for number, descriptor in enumerate(moved):
            os.dup2(descriptor, number)
        if folder is not None:
            os.chdir(folder)
        os.umask(umask)
        if set(cpus) != os.sched_getaffinity(0):
            _narrow(cpus)
        for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores these, and exec would keep that
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        for number_of_limit, values in zip(_LIMITS, limits, strict=False):
            if resource.getrlimit(number_of_limit) != tuple(values):
                _limit(number_of_limit, (values[0], values[1]))
        os.execvpe(words[0], words, environment)  # noqa: S606  a list of words from seatrial, without a shell
    except OSError as error:
        os.write(failed, (error.errno or 1).to_bytes(4, "little"))
    except BaseException:
        os.write(failed, (1).to_bytes(4, "little"))
    finally:
        os._exit(127)


def _join(group: int) -> None:
    """Join a process group, to have its terminal; not possible if seatrial has moved to another session."""
    try:
        os.setpgid(0, group)
    except OSError:
        os.setsid()


def _narrow(cpus: list[int]) -> None:
    try:
        os.sched_setaffinity(0, cpus)
    except OSError:  # the cpuset has changed: the kernel's choice holds, and programs record where they ran
        return


def _limit(number: int, values: tuple[int, int]) -> None:
    try:
        resource.setrlimit(number, values)
    except (OSError, ValueError):  # a limit that seatrial raised as root and this process may not
        return


def main() -> None:
    """The guard of process `argv[2]`, which holds the other end of the socket `argv[1]`."""
    adopt_orphans()
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    Guard(control, int(sys.argv[2])).run()
    os._exit(0)  # nothing to flush or to tear down
