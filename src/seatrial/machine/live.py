"""Discovery of the machine that this process runs on, or of a recorded copy of its /sys and /proc."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from seatrial.errors import ParseError, UsageError
from seatrial.machine.assemble import assemble
from seatrial.machine.files import FileTree
from seatrial.machine.readers.adapters import read_cxi_stat, read_opainfo
from seatrial.machine.readers.nvidia_smi import ECC_QUERY, ROWS_QUERY, read_ecc_modes, read_remapped_rows
from seatrial.machine.survey import FactBook, NamedPart, Survey
from seatrial.machine.sysfs.memory import survey_firmware
from seatrial.machine.sysfs.platform import survey_sysfs
from seatrial.machine.sysfs.software import RPM_QUERY, read_ofed_info, read_rpm, survey_software
from seatrial.model.machine.machine import Machine
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import NEUTRAL, on_path, without_working_folder

TIMEOUT_S = 20.0
"""Without persistence mode, nvidia-smi starts the driver of each GPU, which takes seconds; a lost GPU can block it."""

_DRIVER = Path("/proc/driver/nvidia/gpus")


def survey_nvidia(driver: Path = _DRIVER) -> tuple[Survey, ...]:
    """One survey if this machine has NVIDIA GPUs with their driver, else none. What cannot be read is in `unread`."""
    if not driver.is_dir() or not any(driver.iterdir()):
        return ()
    program = on_path("nvidia-smi")
    if program is None:
        return (Survey("nvidia-smi (absent)", unread=(_unread("nvidia-smi is not on PATH"),)),)
    parts: list[NamedPart] = []
    unread: list[str] = []
    for query, read in ((ECC_QUERY, read_ecc_modes), (ROWS_QUERY, read_remapped_rows)):
        found, problem = _ask(program, query, read)
        parts += found
        if problem is not None:
            unread.append(_unread(problem))
            break
    return (Survey("nvidia-smi", named_parts=tuple(parts), unread=tuple(unread)),)


def _ask(
    program: str, query: str, read: Callable[[str], tuple[NamedPart, ...]]
) -> tuple[tuple[NamedPart, ...], str | None]:
    """The parts in the answer to a query, and why there are none."""
    try:
        done = subprocess.run(
            [program, query, "--format=csv,noheader,nounits"],
            env={**without_working_folder(os.environ), "LC_ALL": "C"}, cwd=NEUTRAL,
            stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False,
        )  # fmt: skip
        text = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0:
            return read(text), None
        said = (text.strip() or done.stderr.decode("utf-8", "replace").strip())[:200]
        return (), f"{program} {query}: exit status {done.returncode}: {said}"
    except subprocess.TimeoutExpired:
        return (), f"{program} {query}: no answer within {TIMEOUT_S:g} s"
    except OSError as error:
        return (), f"{program}: {error.strerror}"
    except ParseError as error:
        return (), f"{program} {query}: {error.message}"


def _unread(why: str) -> str:
    return f"ECC mode and remapped rows of NVIDIA GPUs: {why}"


_TIMEOUT_S = 10.0
_TOOLS: Mapping[str, tuple[tuple[str, ...], Callable[[bytes], Survey]]] = {
    "opainfo": ((), read_opainfo),
    "cxi_stat": ((), read_cxi_stat),
    "ofed_info": (("-s",), read_ofed_info),
    "rpm": (RPM_QUERY, read_rpm),
}
"""Tool -> its arguments, and how its output is read."""


def survey_tools() -> tuple[Survey, ...]:
    """A survey of each tool on PATH. What cannot be read is in `unread`."""
    programs = ((name, on_path(name)) for name in _TOOLS)
    return tuple(_survey(name, program) for name, program in programs if program is not None)


def _survey(name: str, program: str) -> Survey:
    arguments, read = _TOOLS[name]
    try:
        done = output_of([program, *arguments], {**os.environ, "LC_ALL": "C"}, _TIMEOUT_S)
        if done.returncode == 0:
            return read(done.stdout)
        problem = f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:200]}"
    except OutOfTimeError:
        problem = f"no output within {_TIMEOUT_S:g} s"
    except (OSError, UsageError) as error:
        problem = str(error)
    return Survey(f"{name} (failed)", unread=(f"{program} failed ({problem})",))


LSTOPO_TIMEOUT_S = 30.0
"""lstopo takes 20 ms here; with its GPU plug-ins it starts CUDA and OpenCL, which takes seconds."""


def discover_live(root: Path = Path("/"), *, use_hwloc: bool = True) -> Machine:
    """The machine as described by sysfs, procfs, SMBIOS and (if installed, and only for the live root) hwloc.

    `root` is "/" or a folder with a copy of /sys and /proc. What cannot be read is missing in the result and listed
    in its `unread`; missing and damaged files raise no error.
    """
    return assemble(survey_live(root, use_hwloc=use_hwloc))


def survey_live(root: Path = Path("/"), *, use_hwloc: bool = True) -> list[Survey]:
    """The survey of each source on this machine, the most trusted first; see `discover_live`."""
    files = FileTree(root)
    is_live = files.is_live
    surveys = [survey_sysfs(files, os.environ if is_live else {})]
    if is_live:
        surveys.append(_survey_process())
        if use_hwloc:
            surveys.append(_survey_hwloc())
        surveys += survey_tools()
    surveys.append(survey_software(files, os.environ if is_live else {}))
    surveys.append(survey_firmware(files, is_virtual="hypervisor" in surveys[0].facts))
    return surveys


def _survey_process() -> Survey:
    """Facts that the C library and the interpreter of this process provide."""
    book = FactBook()
    book.say("page_size", os.sysconf("SC_PAGE_SIZE"), "sysconf(_SC_PAGE_SIZE)", "B")
    try:
        book.say("libc", os.confstr("CS_GNU_LIBC_VERSION"), "confstr(_CS_GNU_LIBC_VERSION)")
    except (ValueError, OSError):  # another C library
        musl = "musl" if list(Path("/lib").glob("ld-musl-*")) else None
        book.say("libc", " ".join(platform.libc_ver()).strip() or musl, "the interpreter's file")
    book.say("architecture", platform.machine(), "uname")
    allowed = tuple(sorted(os.sched_getaffinity(0)))
    return Survey("this process", name=platform.node() or None, facts=book.facts(), allowed_cpus=allowed)


def _survey_hwloc() -> Survey:
    program = on_path("lstopo-no-graphics") or on_path("lstopo")
    if program is None:
        return Survey("hwloc (absent)", unread=("hwloc: lstopo is not installed; only sysfs was read",))
    from seatrial.machine.readers.hwloc_xml import read_hwloc_xml

    # `--disallowed` also shows what a cpuset hides, as sysfs does; hwloc 1 and 2.0 have no option of that name.
    problem = ""
    for options in (["--disallowed"], ["--whole-system"], []):
        command = [program, *options, "--of", "xml"]
        try:
            done = output_of(command, _hwloc_environment(os.environ), LSTOPO_TIMEOUT_S)
            if done.returncode == 0:
                return read_hwloc_xml(done.stdout)
            problem = f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:200]}"
        except OutOfTimeError:
            problem = f"no output within {LSTOPO_TIMEOUT_S:g} s"
            break
        except (OSError, UsageError) as error:
            problem = str(error)
            break
    return Survey("hwloc (failed)", unread=(f"hwloc: {program} failed ({problem}); only sysfs was read",))


def _hwloc_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Without HWLOC_* (which can substitute the topology of another machine) and without DISPLAY."""
    kept = {key: value for key, value in environment.items() if not key.startswith("HWLOC_") and key != "DISPLAY"}
    return kept | {"LC_ALL": "C"}
