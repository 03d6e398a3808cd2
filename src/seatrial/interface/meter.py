"""The energy of what has run, by the file of an external power meter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seatrial.analysis.folder import contents_in
from seatrial.errors import UsageError
from seatrial.model.json_check import parse_json
from seatrial.model.results.energy import PhaseEnergy
from seatrial.model.results.sample import State
from seatrial.probes.power.meter import energies, read_meter

_LONGEST_B = 64 << 20


def energy_by_meter(meter: str | Path, of: str | Path) -> list[PhaseEnergy]:
    """The energy of each repeat in a results folder, or of the command in a JSON document of `power -- COMMAND`, by a
    CSV file with the time and power of a meter. The curve is aligned with them by the edges of the load; where none
    is clear, each energy is None with its reason. Raises UsageError."""
    shown = read_meter(Path(meter))
    named = list(_phases(Path(of)))
    found = energies(shown, [(start, end) for _, start, end in named])
    return [PhaseEnergy(name, one) for (name, _, _), one in zip(named, found, strict=True)]


def _phases(of: Path) -> Iterator[tuple[str, float, float]]:
    """(name, start, end) in order of time."""
    if of.is_dir():
        contents = contents_in(of)
        ended = sorted(
            (
                (record.t0, record.t0 + record.wall_s, f"{contents.experiments[key].benchmark} {key} {record.repeat}")
                for key, records in contents.records.items()
                for record in records
                if record.outcome.state is State.OK and record.wall_s > 0
            ),
        )
        if not ended:
            raise UsageError(f"{of}: no repeat that was measured", "give the results folder of a finished run")
        yield from ((name, start, end) for start, end, name in ended)
        return
    try:
        with of.open("rb") as stream:
            document = parse_json(stream.read(_LONGEST_B))
    except OSError as error:
        raise UsageError(f"{of}: {error.strerror}", "give a results folder, or the JSON of power -- COMMAND") from None
    except ValueError:
        document = None
    measured = document.get("measured") if isinstance(document, dict) else None
    elapsed_s = measured.get("elapsed_s") if isinstance(measured, dict) else None
    if not isinstance(elapsed_s, int | float) or isinstance(elapsed_s, bool) or not 0 < elapsed_s < 1e9:
        raise UsageError(f"{of}: not the JSON of power -- COMMAND", "give that, or a results folder")
    yield "command", 0.0, float(elapsed_s)
