"""The clocks and power limits of NVIDIA's GPUs, through nvidia-smi: the one tool that every node with such a GPU has.

nvidia-smi(1): `-lgc MIN,MAX` locks the clock until `-rgc`; `-pl W` sets the limit until the driver is unloaded. Both
need root. The driver does not say whether a clock is locked, so one that somebody else has locked before is free
afterwards. Written from the documentation; tried on a made-up tool.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from seatrial.model.frozen import Frozen
from seatrial.processes.start import OutOfTimeError, output_of
from seatrial.processes.working_folder import on_path

_TOOL = "nvidia-smi"
_LIMIT_S = 30.0
_LONGEST_SAID = 200
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_FIELDS = ("uuid", "index", "name", "clocks.max.graphics", "power.min_limit", "power.max_limit")
GPU_SETTING = re.compile(r"nvidia-smi:GPU-[0-9a-f-]{1,64}/(?:clock|power_limit)")
"""What stands for a file where a GPU is set."""
_VALUE = re.compile(r"\d{1,6}(?:\.\d{1,3})?")
_SAMPLED = ("clocks.gr", "utilization.gpu")


class Gpu(Frozen):
    """A GPU, with the highest clock in MHz and the range of its power limit in W; None: not stated."""

    uuid: str
    index: str
    name: str
    most_MHz: float | None
    least_W: float | None
    most_W: float | None

    def setting(self, name: str) -> str:
        """What stands for the file of one of its settings, `clock` or `power_limit`."""
        return f"{_TOOL}:{self.uuid}/{name}"


def gpus_here(variables: Mapping[str, str]) -> list[Gpu] | str:
    """The GPUs that programs with these variables use; or why there are none."""
    try:
        rows = _asked([], _FIELDS)
    except OSError as error:
        return error.strerror or str(error)
    found = [
        Gpu(row[0], row[1], row[2], *map(_number, row[3:]))
        for row in rows
        if GPU_SETTING.match(f"{_TOOL}:{row[0]}/clock")
    ]
    if (visible := variables.get(_VISIBLE)) is not None:
        names = [name.strip() for name in visible.split(",") if name.strip()]
        found = [gpu for gpu in found if any(name == gpu.index or gpu.uuid.startswith(name) for name in names)]
    return found or "nvidia-smi lists none that this process may use"


def read_gpu_setting(path: str) -> str | None:
    """The value of a setting; None: the driver does not say. Raises OSError."""
    uuid, name = _parts(path)
    if name == "clock":
        return None
    value = _number(_asked(["-i", uuid], ("power.limit",))[0][0])
    if value is None:
        raise OSError(0, f"{uuid} has no power limit")
    return f"{value:.2f}"


def write_gpu_setting(path: str, value: str) -> None:
    """Set it; a clock of "" is not locked. Raises OSError."""
    uuid, name = _parts(path)
    if value and not _VALUE.fullmatch(value):
        raise OSError(0, f"{value!r} is not a value of {name}")
    if name == "power_limit":
        _run(["-i", uuid, "-pl", value])
    else:
        _run(["-i", uuid, *(("-lgc", f"{value},{value}") if value else ("-rgc",))])


def busy_clocks_Hz(uuids: list[str], least_percent: float) -> list[float]:
    """The clocks of those of these GPUs that are busy now. Raises OSError."""
    rows = _asked(["-i", ",".join(uuids)], _SAMPLED)
    numbers = [tuple(map(_number, row)) for row in rows]
    return [MHz * 1e6 for MHz, used in numbers if MHz is not None and used is not None and used >= least_percent]


def _parts(path: str) -> tuple[str, str]:
    if not GPU_SETTING.fullmatch(path):
        raise OSError(0, f"{path!r} is not a setting of a GPU")
    uuid, _, name = path.removeprefix(f"{_TOOL}:").partition("/")
    return uuid, name


def _asked(words: list[str], fields: tuple[str, ...]) -> list[list[str]]:
    """The rows of a query: a GPU each. Raises OSError."""
    text = _run([*words, f"--query-gpu={','.join(fields)}", "--format=csv,noheader,nounits"])
    rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    if not rows or any(len(row) != len(fields) for row in rows):
        raise OSError(0, f"{_TOOL} answers {text.strip()[:_LONGEST_SAID]!r}")
    return rows


def _run(words: list[str]) -> str:
    """What the tool prints. Raises OSError with what it says where it fails."""
    tool = on_path(_TOOL)
    if tool is None:
        raise OSError(0, f"{_TOOL} is not on PATH")
    try:
        done = output_of([tool, *words], dict(os.environ), _LIMIT_S)
    except OutOfTimeError:
        raise OSError(0, f"{_TOOL} did not end within {_LIMIT_S:g} s") from None
    printed = done.stdout.decode("utf-8", "replace")
    if done.returncode != 0:
        said = " ".join((printed + done.stderr.decode("utf-8", "replace")).split())[:_LONGEST_SAID]
        raise OSError(0, f"{_TOOL} {' '.join(words)}: {said or f'exit status {done.returncode}'}")
    return printed


def _number(text: str) -> float | None:
    return float(text) if _VALUE.fullmatch(text) else None
