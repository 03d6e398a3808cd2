"""Ask the tools of this machine: one short command, its output, a time limit; and remember what does not change from
one command to the next: versions, macros, symbols of libraries.

A value is used while everything that it may depend on is the same: the files (by inode, size and times), the variables,
the CPU, the loader's cache (which installing a library renews), this user, and seatrial. Failures are not remembered.
Values are read from the trusted cache only (docs/adr/0020), and a cache that cannot be used costs time, nothing else.

The devices of a machine as drivers report them: a measuring program lists them, since it loads the drivers anyway.

`lacking_gpu` checks without a program whether there is any driver.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar

from seatrial.errors import BuildError, ParseError, ResourceError, SeatrialError
from seatrial.model.frozen import Frozen
from seatrial.processes.start import OutOfTimeError, Running, output_of
from seatrial.processes.working_folder import NEUTRAL, without_working_folder
from seatrial.store.cache import make_folder, own_cache
from seatrial.version import __version__

T = TypeVar("T")
_ASK_LIMIT_S = 120.0
_LOOK_AGAIN_S = 0.1

Started = Callable[[Running], None]
"""Called with a tool when it has started."""


class Reply(Frozen):
    """What a tool printed."""

    stdout: str
    stderr: str


def ask(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float = _ASK_LIMIT_S,
    started: Started = lambda process: None,
    text: str = "",
    runs_in: Path | None = NEUTRAL,
) -> Reply:
    """The output of a tool with `text` as its standard input; nothing in the working folder affects it, unless
    `runs_in` is None (see `output_of`). Raises BuildError if it fails or exceeds the time limit, its children are
    killed with it; ResourceError.

    The streams are separate: launchers and the loader write unrelated messages to stderr.
    """
    name = Path(command[0]).name
    variables = {**(os.environ if environment is None else environment), "LC_ALL": "C"}
    try:
        done = output_of(command, variables, limit_s, text.encode(), started, runs_in)
    except OSError as error:
        if (limited := ResourceError.of(error)) is not None:
            raise limited from error
        hint = "programs cannot be run from there: set SEATRIAL_CACHE to another folder"
        todo = hint if isinstance(error, PermissionError) else ""
        raise BuildError(f"{command[0]} cannot be started: {error.strerror or error}", todo, tuple(command)) from error
    except OutOfTimeError as error:
        raise BuildError(
            f"{name} did not finish within {limit_s:g} s and was killed",
            "run the same command by hand to see what hangs, or set CXX to another compiler",
            tuple(command),
        ) from error
    stdout, stderr = (text.decode("utf-8", "replace") for text in (done.stdout, done.stderr))
    if done.returncode != 0:
        raise BuildError(
            f"{name} failed: {_summary(stderr + stdout, done.returncode)}", "", tuple(command), stderr + stdout
        )
    return Reply(stdout, stderr)


def last_object(text: str) -> Any:
    """The JSON value that a tool printed, behind the lines that a library printed before it. Raises ValueError."""
    return json.loads(text[text.rfind("\n{") + 1 :])


class _Tools:
    """The tools that parallel jobs run, so that all can be killed together."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._running: list[Running] = []
        self._is_over = False

    def started(self, process: Running) -> None:
        """Add a tool; it is killed at once if `end` was called before."""
        with self._lock:
            self._running.append(process)
            if self._is_over:
                process.kill()

    def end(self) -> None:
        """Kill all tools, and any that starts later."""
        with self._lock:
            self._is_over = True
            for process in self._running:
                process.kill()


def side_by_side(jobs: Iterable[Callable[[Started], object]]) -> None:
    """Run jobs in parallel, as many as this process has CPUs. Each passes its argument to `ask` as `started`, so that
    an interruption kills all their tools. Raises the first error of a job after all have ended."""
    tools = _Tools()
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        try:
            running = [pool.submit(job, tools.started) for job in jobs]
            while wait(running, _LOOK_AGAIN_S).not_done:  # a signal just before an unlimited wait would not end it
                pass
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            tools.end()
            raise
    for job in running:
        job.result()


def _summary(output: str, returncode: int) -> str:
    """The most informative line about a failure."""
    if returncode < 0:
        return f"killed by {signal.Signals(-returncode).name}"
    lines = output.strip().splitlines()
    for mark in ("No space left", "error:"):
        for line in lines:
            if mark in line:
                return line.strip()
    return lines[-1] if lines else f"exit status {returncode}, no output"


_FOLDER = "answers"
_LOADER_CACHE = Path("/etc/ld.so.cache")
_CPUINFO = Path("/proc/cpuinfo")
_CPU = re.compile(r"^(?:vendor_id|cpu|CPU|model|stepping|flags|Features)\b.*?:.*$", re.MULTILINE)
_VARYING = re.compile(r"^cpu MHz.*$", re.MULTILINE)
_FIRST_CPU_B = 1 << 14
_UNRELATED = frozenset(("_", "SHLVL", "PWD", "OLDPWD", "TERM", "COLUMNS", "LINES", "HOSTNAME", "TMPDIR", "LS_COLORS"))
_UNRELATED_PREFIXES = ("SEATRIAL_", "PYTEST_", "SSH_", "SLURM_", "XDG_SESSION", "DBUS_")
"""Variables that differ between commands, but not in what a program says of itself."""


def remembered(
    what: Sequence[str],
    files: Iterable[Path],
    make: Callable[[], Any],
    still_true: Callable[[Any], bool] = lambda value: True,
) -> Any:
    """`make()`, a JSON value, or the one that an earlier command made, if `what` and the `files` are the same and it is
    `still_true`. Raises what `make` raises."""
    surroundings = (__version__, os.geteuid(), _cpu(), state_of(_LOADER_CACHE))
    key = hashlib.sha256(json.dumps([*what, *map(state_of, files), *surroundings]).encode()).hexdigest()
    name = f"{key}.json"
    with suppress(SeatrialError, OSError, ValueError, TypeError, LookupError):  # damaged, or of another shape
        if (known := own_cache().read(_FOLDER, name)) is not None:
            value = json.loads(known)
            if still_true(value):
                return value
    value = make()
    with suppress(SeatrialError, OSError):
        own_cache().names()  # nothing is written into a cache that is not trusted
        folder = own_cache().path / _FOLDER
        make_folder(folder)
        fresh = folder / f".{name}.{secrets.token_hex(4)}"
        fresh.write_text(json.dumps(value), encoding="utf-8")
        fresh.chmod(0o644)
        fresh.replace(folder / name)
    return value


def ask_once(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    limit_s: float = _ASK_LIMIT_S,
    files: Iterable[Path] = (),
    text: str = "",
) -> Reply:
    """As `ask`, for questions to which a program gives the same answer until it, one of `files` or a variable changes.

    Raises BuildError.
    """
    variables = without_working_folder(os.environ if environment is None else environment)

    def asked() -> list[str]:
        answer = ask(command, variables, limit_s, text=text)
        return [answer.stdout, answer.stderr]

    stdout, stderr = remembered([*command, text, *related(variables)], [Path(command[0]), *files], asked, _is_answer)
    return Reply(stdout, stderr)


def _is_answer(value: Any) -> bool:
    return isinstance(value, list) and [type(text) for text in value] == [str, str]


def once_for_each_file(read: Callable[[Path], T]) -> Callable[[Path], T]:
    """What is read of a file, cached in this process until its size or modification time changes. Raises OSError, and
    what `read` raises."""

    @cache
    def known(path: Path, size: int, mtime_ns: int) -> T:
        return read(path)

    def of(path: Path) -> T:
        found = path.stat()
        return known(path, found.st_size, found.st_mtime_ns)

    return of


def related(variables: Mapping[str, str]) -> list[str]:
    """The variables that may change an answer, as NAME=VALUE, sorted."""
    return sorted(
        f"{name}={value}"
        for name, value in variables.items()
        if name not in _UNRELATED and not name.startswith(_UNRELATED_PREFIXES)
    )


def state_of(path: Path) -> list[str | int]:
    """The file behind a path, and what changes with its content; the path alone if there is none."""
    try:
        real = path.resolve()
        found = real.stat()
    except OSError:
        return [str(path)]
    return [str(path), str(real), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns]


@cache
def _cpu() -> str:
    """The first CPU, as the kernel describes it, without its clock."""
    try:
        with _CPUINFO.open("rb") as file:
            text = file.read(_FIRST_CPU_B).decode("utf-8", "replace")
    except OSError:
        return ""
    return "\n".join(_CPU.findall(_VARYING.sub("", text.partition("\n\n")[0])))


AUTO = "auto"
HOW_TO_GET_ONE = (
    "install the driver of the GPU, or PoCL, which runs OpenCL on any CPU (Debian: pocl-opencl-icd ocl-icd-libopencl1)"
)
_ASKING_LIMIT_S = 60.0
_VENDORS = Path("/etc/OpenCL/vendors")
_PCI_DEVICES = Path("/sys/bus/pci/devices")


class NoGpuError(BuildError):
    """There is no such device: `need` is one word for what is missing (driver, device, ...)."""

    def __init__(self, need: str, why: str) -> None:
        super().__init__(why)
        self.need = need


class Gpu(Frozen):
    """One device of one backend; `facts` is everything that its driver reports (native/device/facts.hpp)."""

    backend: str
    index: int
    name: str
    driver: str
    facts: Mapping[str, Any]
    local_cpus: frozenset[int] = frozenset()
    """Its local CPUs by sysfs; empty if unknown."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """The device's part of an experiment's identity."""
        return {"backend": self.backend, "index": self.index, "name": self.name, "driver": self.driver}


class Gpus(Frozen):
    """The devices that a program found, and why a backend has none (backend -> (need, why))."""

    devices: tuple[Gpu, ...]
    absent: Mapping[str, tuple[str, str]]

    def of(self, backend: str) -> tuple[Gpu, ...]:
        """The devices of a backend; for `auto`, those of the first backend that has any, CUDA before OpenCL.

        Raises NoGpuError if there is none.
        """
        wanted = ("cuda", "opencl") if backend == AUTO else (backend,)
        for name in wanted:
            if found := tuple(device for device in self.devices if device.backend == name):
                return found
        reasons = [self.absent[name] for name in wanted if name in self.absent]
        need = reasons[-1][0] if reasons else "device"
        why = "; ".join(f"{name}: {self.absent[name][1]}" for name in wanted if name in self.absent)
        raise NoGpuError(need, why or f"no {backend} device found; {HOW_TO_GET_ONE}")


def find_gpus(program: Path, variables: Mapping[str, str]) -> Gpus:
    """The devices that a measuring program finds. Raises BuildError if it fails."""
    answer = ask([str(program), "--list"], environment=variables, limit_s=_ASKING_LIMIT_S)
    try:
        document = json.loads(answer.stdout)
        return Gpus(
            tuple(
                Gpu(each["backend"], int(each["index"]), each["name"], each["driver"], each, local_cpus(each["pci"]))
                for each in document["devices"]
            ),
            {each["backend"]: (each["need"], each["why"]) for each in document["absent"]},
        )
    except (ValueError, KeyError, TypeError) as error:
        raise BuildError(f"{program} did not list the devices of this machine: {error!r}") from error


def local_cpus(address: str, folder: Path = _PCI_DEVICES) -> frozenset[int]:
    """The CPUs local to the device at a PCI address (Linux, Documentation/ABI/testing/sysfs-bus-pci:
    local_cpulist); empty if unknown."""
    from seatrial.machine.readers.scalars import read_cpu_list
    from seatrial.model.machine.links import pci_address

    known = pci_address(address)
    if known is None:
        return frozenset()
    try:
        return frozenset(read_cpu_list((folder / known / "local_cpulist").read_text("ascii")))
    except (OSError, ValueError, ParseError):
        return frozenset()


def lacking_gpu() -> str | None:
    """Why no device can be measured here, judged by files alone; None if there is a driver."""
    with suppress(OSError):
        if any(_VENDORS.glob("*.icd")):
            return None
    return None if Path("/dev/nvidiactl").exists() else f"no GPU driver and no PoCL found; {HOW_TO_GET_ONE}"
