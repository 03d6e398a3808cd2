"""What only tools report of this machine: memory of NVIDIA GPUs, adapters of Omni-Path and Slingshot."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from seatrial.errors import ParseError, UsageError
from seatrial.machine.readers.cxi_stat import read_cxi_stat
from seatrial.machine.readers.nvidia_smi_query import ECC_QUERY, ROWS_QUERY, read_ecc_modes, read_remapped_rows
from seatrial.machine.readers.opainfo import read_opainfo
from seatrial.machine.survey import NamedPart, Survey
from seatrial.processes.start import OutOfTimeError, output_of

TIMEOUT_S = 20.0
"""Without persistence mode, nvidia-smi starts the driver of each GPU, which takes seconds; a lost GPU can block it."""

_DRIVER = Path("/proc/driver/nvidia/gpus")


def survey_nvidia(driver: Path = _DRIVER) -> tuple[Survey, ...]:
    """One survey if this machine has NVIDIA GPUs with their driver, else none. What cannot be read is in `unread`."""
    if not driver.is_dir() or not any(driver.iterdir()):
        return ()
    program = shutil.which("nvidia-smi")
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
            [program, query, "--format=csv,noheader,nounits"], env={**os.environ, "LC_ALL": "C"},
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
_TOOLS: dict[str, Callable[[bytes], Survey]] = {"opainfo": read_opainfo, "cxi_stat": read_cxi_stat}


def survey_network_tools() -> tuple[Survey, ...]:
    """A survey of each tool on PATH. What cannot be read is in `unread`."""
    programs = ((name, shutil.which(name)) for name in _TOOLS)
    return tuple(_survey(name, program) for name, program in programs if program is not None)


def _survey(name: str, program: str) -> Survey:
    try:
        done = output_of([program], {**os.environ, "LC_ALL": "C"}, _TIMEOUT_S)
        if done.returncode == 0:
            return _TOOLS[name](done.stdout)
        problem = f"exit status {done.returncode}: {done.stderr.decode('utf-8', 'replace').strip()[:200]}"
    except OutOfTimeError:
        problem = f"no output within {_TIMEOUT_S:g} s"
    except (OSError, UsageError) as error:
        problem = str(error)
    return Survey(f"{name} (failed)", unread=(f"{program} failed ({problem})",))
