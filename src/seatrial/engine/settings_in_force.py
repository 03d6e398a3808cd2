"""Whether the MPI settings of an experiment were in force in its ranks, as their library reported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.engine.ready import Ready
from seatrial.model.mpi import MpiFamily
from seatrial.model.outcome import Outcome
from seatrial.model.protocol import ProgramRecord

CHECK = "setting"
_PREFIXES = {
    MpiFamily.OPENMPI: "OMPI_MCA_",
    MpiFamily.MPICH: "MPIR_CVAR_",
    MpiFamily.CRAY: "MPIR_CVAR_",
    MpiFamily.MVAPICH: "MPIR_CVAR_",
}
"""The prefix of variables that a library reports; Intel's are not among its control variables."""
_OF_THE_RANKS = ("coll", "pml", "btl", "mtl", "osc", "mpi", "opal", "topo", "io", "op_", "vprotocol")
"""Open MPI's frameworks in the ranks; those of the launcher cannot be checked in a rank."""
_UNITS = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_WORDS = {"true": "1", "yes": "1", "enabled": "1", "t": "1", "false": "0", "no": "0", "disabled": "0", "f": "0"}


def setting_not_in_force(ready: Ready, record: ProgramRecord) -> Outcome | None:
    """`invalid(setting)` if a variable that this experiment sets is unknown to the library, or has another value in its
    ranks. None if all are in force, or if that is unknown: only our own programs report it."""
    if ready.mpi is None or not ready.program.writes_record or ready.mpi.family not in _PREFIXES:
        return None
    prefix = _PREFIXES[ready.mpi.family]
    wanted = {name: value for name, value in ready.variables if name.startswith(prefix) and value is not None}
    if ready.mpi.family is MpiFamily.OPENMPI:
        wanted = {name.removeprefix(prefix): value for name, value in wanted.items()}
        wanted = {name: value for name, value in wanted.items() if name.startswith(_OF_THE_RANKS)}
    held = _held(record.notes.get("control_variables"))
    for name, value in wanted.items():
        if name not in held:
            return Outcome.invalid(CHECK, f"{name}={value} did not reach the ranks: the launcher did not pass it on")
        seen = held[name]
        if seen is None:
            return Outcome.invalid(CHECK, f"{ready.mpi.title} has no variable {name}: it was ignored")
        if not is_same(value, seen):
            return Outcome.invalid(CHECK, f"{name} is {seen} in the ranks instead of {value}")
    if wanted and (others := record.notes.get("ranks_with_other_settings")):
        return Outcome.invalid(
            CHECK, f"{others} ranks have other settings than rank 0: the launcher did not pass them on"
        )
    return None


def _held(note: object) -> Mapping[str, str | None]:
    """Name -> value in the library, None for an unknown name; from lines "NAME=value" and "NAME"."""
    found: dict[str, str | None] = {}
    for line in note if isinstance(note, Sequence) and not isinstance(note, str) else ():
        name, equals, value = str(line).partition("=")
        found[name] = value if equals else None
    return found


def is_same(wanted: str, held: str) -> bool:
    """Whether a setting equals the value in the library. The library may hold a number for a word ("4 (ring)"). If it
    does not name the word, the word was valid: libraries refuse others at startup."""
    if held == "?" or wanted.strip().lower() == held.strip().lower():
        return True
    number, _, item = held.partition(" (")
    word = wanted.strip().lower()
    if item:
        return word in (number, item.removesuffix(")").lower())
    word = _WORDS.get(word, word)
    if _number(held) is None:
        return False
    value = _number(word)
    return value is None or value == _number(held)


def _number(text: str) -> float | None:
    """A number, possibly with a unit of bytes; None if the text is not a number."""
    text = text.strip().lower().removesuffix("b")
    unit = text[-1:] if text[-1:] in ("k", "m", "g") else ""
    try:
        return float(int(text.removesuffix(unit), 0)) * _UNITS[unit]
    except ValueError:
        pass
    try:
        return float(text.removesuffix(unit)) * _UNITS[unit]
    except ValueError:
        return None
