"""What only the tools of Omni-Path and Slingshot report of the local adapters, where they are installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable

from seatrial.errors import UsageError
from seatrial.machine.readers.cxi_stat import read_cxi_stat
from seatrial.machine.readers.opainfo import read_opainfo
from seatrial.machine.survey import Survey
from seatrial.processes.output import OutOfTimeError, output_of

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
