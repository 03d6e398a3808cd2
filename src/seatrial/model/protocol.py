"""What a measuring program writes: JSON lines, version 1 of the protocol.

`parse_record` is a pure function from bytes to `ProgramRecord`. A record without `end` is valid (the run died); a line
that violates the protocol is a ProtocolError. docs/methodology.md describes every event.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from seatrial.errors import ProtocolError
from seatrial.model.frozen import Frozen
from seatrial.model.outcome import Outcome
from seatrial.model.parameter import Value
from seatrial.model.sample import Sample

PROTOCOL_VERSION = 1

UNREADABLE = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""The exceptions that parsing arbitrary content as a record may raise."""


class Hello(Frozen):
    """The first line: the program, its build, the CPUs of its threads, the libraries that it loaded."""

    program: str
    build: str
    host: str
    rank: int = 0
    ranks: int = 1
    cpus: tuple[tuple[int, ...], ...] = ()
    """The affinity mask of each thread (of an MPI program: each rank), as read back by that thread."""
    libs: Mapping[str, str] = {}
    """SONAME -> build id of every shared library that was loaded."""
    lib_paths: Mapping[str, str] = {}
    hosts: tuple[str, ...] = ()
    """The host of each rank of an MPI program."""
    isa: tuple[str, ...] = ()
    """Instruction-set features that the compiler was allowed to use."""
    clock_step_s: float = 0.0
    """The smallest time that the clock of the samples can show, in seconds; 0: unknown."""
    hypervisor: str = ""
    """The signature of the hypervisor as CPUID has it; "" if there is none or it is unknown."""


class ProgramRecord(Frozen):
    """All that one program run reported. `ended` is False if the run died before its `end` or `skip`. `need` is a
    word for what is missing on the machine, if that is why the program skipped."""

    hello: Hello | None = None
    samples: tuple[Sample, ...] = ()
    checks: Mapping[str, float | None] = {}
    notes: Mapping[str, Any] = {}
    skip: str | None = None
    ended: bool = False
    need: str | None = None

    @property
    def declined(self) -> Outcome | None:
        """The outcome of a program that skipped itself; None if it did not."""
        if self.skip is None:
            return None
        return Outcome.skipped(self.skip) if self.need is None else Outcome.unsupported(self.need, self.skip)


def parse_record(data: bytes) -> ProgramRecord:
    """The record that `data` holds. An incomplete last line (no newline) is ignored: the program died while writing it.

    Raises ProtocolError with the number of the first line that violates the protocol.
    """
    hello: Hello | None = None
    samples: list[Sample] = []
    checks: dict[str, float | None] = {}
    notes: dict[str, Any] = {}
    skip: str | None = None
    need: str | None = None
    ended = False
    lines = data.split(b"\n")[:-1]
    for number, line in enumerate(lines, start=1):
        try:
            event = json.loads(line, parse_constant=_no_constant)
            kind = event["ev"]
            if ended:
                raise ValueError("an event after the end")
            if kind == "hello":
                hello = _hello(event)
            elif hello is None:
                raise ValueError("the first event is not hello")
            elif kind == "sample":
                samples.append(_sample(event))
            elif kind == "check":
                checks[str(event["name"])] = _number_or_none(event["value"])
            elif kind == "note":
                notes[str(event["key"])] = event["value"]
            elif kind == "skip":
                skip, ended = str(event["reason"]), True
                need = str(event["need"]) if "need" in event else None
            elif kind == "end":
                ended = True
            else:
                raise ValueError(f"unknown event {kind!r}")
        except UNREADABLE as error:
            text = line[:200].decode("utf-8", "replace")
            raise ProtocolError(f"line {number} of the program's record: {error!r}: {text!r}") from error
    return ProgramRecord(hello, tuple(samples), checks, notes, skip, ended, need)


def _hello(event: Mapping[str, Any]) -> Hello:
    if event["v"] != PROTOCOL_VERSION:
        raise ValueError(f"protocol version {event['v']!r} instead of {PROTOCOL_VERSION}")
    return Hello(
        program=str(event["program"]),
        build=str(event["build"]),
        host=str(event["host"]),
        rank=int(event.get("rank", 0)),
        ranks=int(event.get("ranks", 1)),
        cpus=tuple(tuple(int(cpu) for cpu in mask) for mask in event["cpus"]),
        libs={str(name): str(build_id) for name, build_id in event.get("libs", {}).items()},
        lib_paths={str(name): str(path) for name, path in event.get("lib_paths", {}).items()},
        hosts=tuple(str(host) for host in event.get("hosts", ())),
        isa=tuple(str(feature) for feature in event.get("isa", ())),
        clock_step_s=_step(event.get("clock_step_s", 0.0)),
        hypervisor=str(event.get("hypervisor", "")),
    )


def _step(value: Any) -> float:
    step_s = float(value)
    if not 0.0 <= step_s < float("inf"):
        raise ValueError(f"a clock step of {value!r} s")
    return step_s


_SAMPLE_KEYS = frozenset({"ev", "series", "rank", "i", "elapsed_s", "work", "point"})


def _sample(event: Mapping[str, Any]) -> Sample:
    elapsed = _number_or_none(event["elapsed_s"])
    return Sample(
        series=str(event["series"]),
        i=int(event["i"]),
        elapsed_s=float("nan") if elapsed is None else elapsed,
        work={str(name): _nan_if_none(amount) for name, amount in event.get("work", {}).items()},
        rank=int(event.get("rank", 0)),
        point={str(name): _point_value(value) for name, value in event.get("point", {}).items()},
        extra={name: value for name, value in event.items() if name not in _SAMPLE_KEYS},
    )


def _no_constant(name: str) -> float:
    """NaN and Infinity are not valid JSON; programs write null."""
    raise ValueError(f"{name} is not valid JSON")


def _point_value(value: Any) -> Value:
    if not isinstance(value, bool | int | float | str):
        raise TypeError(f"invalid coordinate {value!r}")
    return value


def _number_or_none(value: Any) -> float | None:
    """A number, or None for null, which programs write for a value that is not finite."""
    return None if value is None else float(value)


def _nan_if_none(value: Any) -> float:
    return float("nan") if value is None else float(value)
