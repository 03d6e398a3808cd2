"""Energy and power beside the tables of a profile: what sensors of this node showed of the whole command."""

from __future__ import annotations

import logging
from pathlib import Path

import msgspec

from seatrial.model.frozen import Frozen
from seatrial.model.results.energy import PowerOverTime

FILE = "power.json"
_MOST_B = 64 << 20
_log = logging.getLogger(__name__)


class _Kept(Frozen):
    """`started_s`: the start of the command, in seconds since the epoch."""

    started_s: float
    power: PowerOverTime


def write_power(folder: Path, power: PowerOverTime, started_s: float) -> None:
    """Keep what was measured beside the tables. Raises OSError."""
    (folder / FILE).write_bytes(msgspec.json.encode(_Kept(started_s, power)))


def read_power(folder: Path, first_rank_s: float | None) -> PowerOverTime | None:
    """The same, with times since the first rank was started (seconds since the epoch; None: since the command was);
    None if there is none. A file that cannot be read is logged."""
    path = folder / FILE
    try:
        if path.is_symlink() or not path.is_file():
            return None
        if path.stat().st_size > _MOST_B:
            raise msgspec.DecodeError(f"it has more than {_MOST_B} bytes")
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
    except (OSError, msgspec.MsgspecError) as error:
        _log.warning("not accepted: %s: %s", path, error)
        return None
    shift_s = 0.0 if first_rank_s is None else kept.started_s - first_rank_s
    curves = {name: tuple((at + shift_s, watts) for at, watts in points) for name, points in kept.power.curves.items()}
    return PowerOverTime(kept.power.energies, curves)
