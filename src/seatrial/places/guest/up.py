"""Brings a guest up from its parts, takes it down, says how it is now, and runs commands in it. Nothing is left of one
that fails. The processes of one for the duration of a run end with this one, whatever ends that; a later run removes
the files that a killed one left.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Literal

from seatrial.errors import StoreError, UsageError
from seatrial.launch.local import FORWARDED, end_of, standard_stream
from seatrial.model.frozen import Frozen
from seatrial.model.machine.guest import GuestPart, GuestTopology
from seatrial.places.guest.home import (
    ALIVE,
    GuestHome,
    GuestState,
    check_guest_home,
    existing_guest_home,
    guest_home_path,
    new_guest_home,
)
from seatrial.places.guest.inside import fetch as fetched
from seatrial.places.guest.inside import pack, unpack
from seatrial.places.guest.kernel import BUSYBOX, KERNEL, Kernel, find_busybox, find_kernel, initramfs, needed_modules
from seatrial.places.guest.qemu import Emulator, GuestError, find_emulator
from seatrial.places.guest.session import PORT, PORTS, Channel, Streams, connected, free_port, port_path, talk
from seatrial.places.guest.words import CONSOLE, INITRAMFS, guest_words
from seatrial.places.owned_folder import write_state
from seatrial.places.rank_helpers import helper
from seatrial.printable import printable
from seatrial.processes.start import OutOfTimeError, Running, output_of, start_detached
from seatrial.processes.tree import is_alive
from seatrial.processes.working_folder import NEUTRAL

LOG = "qemu.printed"
BOOT_LIMIT_S = 300.0
_KVM_LIMIT_S = 30.0
"""With KVM a guest runs commands within a few seconds; where KVM is broken, it can be opened, and guests hang."""
_LIST_LIMIT_S = 20.0
_LOOK_AGAIN_S = 0.05
_LAST_LINES = 6
_MOST_CONSOLE_B = 1 << 16
_MODULES: Mapping[GuestPart, tuple[str, ...]] = {
    GuestPart.NVME: ("nvme",),
    GuestPart.NETWORK: ("virtio_net",),
    GuestPart.CXL_MEMORY: ("cxl_acpi", "cxl_pci", "cxl_port", "cxl_mem", "cxl_pmem"),
}


class Parts(Frozen):
    """What a guest is started from: emulator, kernel, and the agent's file."""

    emulator: Emulator
    kernel: Kernel
    agent: Path


Starter = Callable[[Sequence[str], Mapping[str, str], Path, int], int]
"""Starts QEMU: its command, its environment, the file for what it prints, and the descriptor that it keeps. Returns the
process id."""


def detached(words: Sequence[str], environment: Mapping[str, str], log: Path, mark: int) -> int:
    """QEMU outlives this process."""
    return start_detached(words, environment, log, keep=(mark,))


def bring_guest_up(
    path: Path, topology: GuestTopology, parts: Parts, progress: Callable[[str], None], start: Starter = detached
) -> GuestState:
    """Start a guest in the folder `path`, and return when it runs commands.

    If a guest with KVM does not start, it is started again with emulated processors. Raises UsageError if there
    is a guest already, GuestError if a part is missing or it does not start.
    """
    with new_guest_home(path) as home:
        try:
            (path / ALIVE).touch(mode=0o600)
            _write_initramfs(path, topology, parts)
            why = parts.emulator.why_not_kvm
            if not why:
                progress("starting the guest with KVM")
                try:
                    return _started(home, topology, parts, start, "kvm", "")
                except GuestError as error:
                    last = error.todo.splitlines()[-1:]  # of what the guest and QEMU printed
                    why = f"with KVM {': '.join([error.message.rstrip(':'), *last])}"
                    home.end_members()
            progress(f"starting the guest with emulated processors ({why})")
            return _started(home, topology, parts, start, "tcg", why)
        except BaseException:
            _remove(home)
            raise


def take_guest_down(path: Path) -> bool:
    """End the guest in this folder, whatever state it is in; False if there is none. Raises GuestError if its process
    cannot be ended, StoreError."""
    with existing_guest_home(path) as home:
        if home is None:
            return False
        _remove(home)
        return True


def console_end(path: Path) -> str:
    """The last lines of the guest's console and of QEMU's messages, printable."""
    lines: list[str] = []
    for name in (CONSOLE, LOG):
        with suppress(OSError):
            text = end_of(path / name, _MOST_CONSOLE_B)
            lines += [line.strip() for line in text.splitlines() if line.strip()][-_LAST_LINES:]
    return "\n".join(printable(line)[:200] for line in lines)


def _remove(home: GuestHome) -> None:
    home.end_members()
    home.remove()


def _write_initramfs(path: Path, topology: GuestTopology, parts: Parts) -> None:
    busybox = find_busybox()
    wanted = [name for kind, names in _MODULES.items() if topology.has(kind) for name in names]
    modules = list(needed_modules(parts.kernel, wanted))
    data = initramfs(parts.agent.read_bytes(), busybox.read_bytes(), _applets(busybox), modules)
    if len(data) * 4 > topology.memory_B:
        raise GuestError(
            f"a guest with {topology.memory_B >> 20} MiB has no room for {len(data) >> 20} MiB of files",
            "give its nodes more memory",
        )
    (path / INITRAMFS).write_bytes(data)


def _applets(busybox: Path) -> Iterator[str]:
    try:
        listed = output_of([str(busybox), "--list"], {}, _LIST_LIMIT_S)
    except (OSError, OutOfTimeError) as error:
        raise GuestError(f"{busybox} does not run: {error}") from error
    yield from listed.stdout.decode("ascii", "replace").split()


def _started(
    home: GuestHome, topology: GuestTopology, parts: Parts, starter: Starter, accelerator: str, why_emulated: str
) -> GuestState:
    """The guest when it runs commands. Raises GuestError."""
    path = home.path
    made = guest_words(topology, path, parts.emulator.path, accelerator, parts.kernel)
    for file in made.files:
        with (path / file.name).open("wb") as backing:
            backing.truncate(file.size_B)
    for name in (CONSOLE, LOG):
        (path / name).write_bytes(b"")
    for number in range(PORTS):  # of a guest with KVM that did not start
        port_path(path, number).unlink(missing_ok=True)
    start = time.monotonic()
    mark = os.open(path / ALIVE, os.O_RDONLY)
    try:
        pid = starter(made.words, {"LC_ALL": "C.UTF-8", "PATH": os.defpath}, path / LOG, mark)
    except (OSError, subprocess.SubprocessError) as error:
        raise GuestError(f"{parts.emulator.path} cannot be started: {error}") from error
    finally:
        os.close(mark)
    _wait_for_agent(path, pid, _KVM_LIMIT_S if accelerator == "kvm" else BOOT_LIMIT_S)
    state = GuestState(
        topology, pid, accelerator, why_emulated, parts.kernel.version, round(time.monotonic() - start, 2)
    )
    write_state(path, state)
    return state


def _wait_for_agent(path: Path, pid: int, limit_s: float) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    until = time.monotonic() + limit_s
    try:
        while not port_path(path, 0).exists() and is_alive(pid) and time.monotonic() < until:
            time.sleep(_LOOK_AGAIN_S)
        if not is_alive(pid):
            raise GuestError("QEMU ended")
        with free_port(path) as port:
            streams, alive = Streams(None, nowhere, nowhere), partial(is_alive, pid)
            with connected(port) as stream:
                talk(stream, [f"/{BUSYBOX}", "true"], streams, {}, "/root", answer_within_s=limit_s, is_alive=alive)
    except GuestError as error:
        said = console_end(path)
        raise GuestError(f"the guest did not start: {error.message}{':' if said else ''}", said) from error
    finally:
        os.close(nowhere)


def guest_parts(wanted: GuestTopology, kernel: Path | None = None, *, emulated: bool = False) -> Parts:
    """Its emulator, kernel and agent. `kernel` is the file of its kernel (None: $SEATRIAL_GUEST_KERNEL, else an
    installed one); `emulated` does not try KVM. Raises GuestError if a part is missing, or memory; BuildError if the
    agent cannot be built."""
    _need_memory(wanted.memory_B)
    emulator = find_emulator()
    if emulated:
        emulator = Emulator(emulator.path, "as asked")
    named = kernel or (Path(os.environ[KERNEL]) if os.environ.get(KERNEL) else None)
    return Parts(emulator, find_kernel(named), helper("guest_agent", is_static=True))


def _need_memory(wanted_B: int) -> None:
    """Raises GuestError if this machine has less free memory: the guest would be killed, or others would."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB$", Path("/proc/meminfo").read_text(), re.MULTILINE)
    if found is not None and int(found[1]) * 1024 < wanted_B:
        raise GuestError(
            f"the guest has {wanted_B >> 20} MiB of memory, and {int(found[1]) >> 10} MiB are free here",
            "give its nodes less memory",
        )


Condition = Literal["up", "incomplete", "down"]


class GuestStatus(Frozen):
    """`condition` is up, incomplete (it did not come up, or has ended) or down (there is none). `console`: the last
    lines that an incomplete one printed."""

    folder: Path
    condition: Condition
    state: GuestState | None = None
    console: str = ""


def read_guest_status(path: Path) -> GuestStatus:
    """The guest in this folder. Raises UsageError if others could have written there."""
    home = check_guest_home(path)
    if home is None:
        return GuestStatus(path, "down")
    state = home.read_state()
    if state is not None and state.pid in home.members():
        return GuestStatus(path, "up", state)
    return GuestStatus(path, "incomplete", state, console_end(path))


WORK = "/root"
"""The working folder of commands, and that of files without a path."""


class Transfer(Frozen):
    """A file or folder, and its path on the other side."""

    source: str
    target: str


def running_guest(path: Path) -> GuestState:
    """The state of the guest in the folder `path`. Raises UsageError if none is up, GuestError if it has ended."""
    home = check_guest_home(path)
    state = None if home is None else home.read_state()
    if home is None or state is None:
        begun = ": starting it did not finish" if home is not None else ""
        todo = "seatrial vm down, then up" if home is not None else "seatrial vm up --topology FILE"
        raise UsageError(f"no guest is up{begun}", todo)
    if state.pid not in home.members():
        raise GuestError("the guest has ended", "seatrial vm down, then up")
    return state


def run_command(
    path: Path, command: Sequence[str], bring: Sequence[Transfer] = (), fetch: Sequence[Transfer] = ()
) -> int:
    """Run a command in the guest, and return its exit status as in a shell.

    `bring` are files and folders of this machine that are copied there first, `fetch` those of the guest that are
    copied here afterwards, whatever the exit status. Raises UsageError for a missing file, GuestError.
    """
    running_guest(path)
    packed = [pack(Path(one.source), one.target.lstrip("/")) for one in bring]
    with Channel(PORT, str(path), WORK).opened() as guest:
        for archive in packed:
            with archive:
                unpack(guest, archive, "/")
        with _streams() as streams:
            status = guest.run(command, streams, {}, WORK)
        for one in fetch:
            fetched(guest, one.source if one.source.startswith("/") else f"{WORK}/{one.source}", Path(one.target))
    return status


@contextmanager
def _streams() -> Iterator[Streams]:
    """Our standard streams; signals go to the command while this lasts, except those that this process ignores."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    taken = [number for number in FORWARDED if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _passed_on) for number in taken}
    wakeup = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        with ExitStack() as ours:
            given, printed, errors = (standard_stream(ours, number) for number in (0, 1, 2))
            yield Streams(given, printed, errors, reading)
    finally:
        signal.set_wakeup_fd(wakeup)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (reading, writing):
            os.close(descriptor)


def _passed_on(number: int, frame: FrameType | None) -> None:
    """The number of the signal is written to the pipe (signal.set_wakeup_fd), which is all."""


_SUFFIX = "-run-"


@contextmanager
def guest_for_a_run(
    topology: GuestTopology, parts: Parts, progress: Callable[[str], None]
) -> Iterator[tuple[Path, GuestState]]:
    """The folder and the state of a new guest. Raises GuestError if it does not start, StoreError."""
    usual = guest_home_path(os.environ)
    _remove_leftovers(usual)
    path = usual.with_name(f"{usual.name}{_SUFFIX}{os.getpid()}-{os.urandom(2).hex()}")
    started: list[Running] = []

    def start(words: Sequence[str], environment: Mapping[str, str], log: Path, mark: int) -> int:
        with log.open("ab") as printed, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), printed.fileno(), printed.fileno(), mark)
            running = Running(words, environment, streams, NEUTRAL)  # QEMU looks for firmware where it runs first
        started.append(running)
        return int(running.pid)

    try:
        yield path, bring_guest_up(path, topology, parts, progress, start)
    finally:
        for running in started:
            running.kill()
            running.wait()
        take_guest_down(path)


def _remove_leftovers(usual: Path) -> None:
    """Remove the folders of runs that were killed: their processes are over."""
    try:
        found = [path for path in usual.parent.iterdir() if path.name.startswith(f"{usual.name}{_SUFFIX}")]
    except OSError as error:
        raise StoreError(f"{usual.parent} cannot be read: {error.strerror}") from error
    for path in found:
        pid = path.name.removeprefix(f"{usual.name}{_SUFFIX}").partition("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists() and path.lstat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
