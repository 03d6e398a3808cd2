"""An experiment and its identity, and the record of one finished repeat."""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.errors import ProtocolError
from seatrial.model.benchmark.parameter import Params
from seatrial.model.frozen import Frozen
from seatrial.model.json_check import parse_line
from seatrial.model.json_object import plain, record_of
from seatrial.model.json_shape import Json, Text
from seatrial.model.results.outcome import Outcome, Stage, State
from seatrial.model.results.record_shape import RECORD_VERSION, check_record
from seatrial.model.results.sample import Sample, pack, unpack


def content_key(document: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of a document in canonical JSON: same content, same key."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class Experiment(Frozen):
    """One benchmark with its parameters, in one environment, by one build of its program, on one machine.

    `environment`, `program` and `machine` are content keys; the first two are "" if nothing can be built.
    """

    benchmark: Text
    parameters: Params
    environment: str
    program: str
    machine: Text

    def document(self) -> Json:
        """Everything that defines it, as stored in `experiments/<id>.json`."""
        return plain(self)

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Experiment:
        """The experiment that `document()` described. Raises ValueError if it is invalid."""
        return record_of(cls, document)

    @property
    def id(self) -> str:
        """The content key."""
        return content_key(self.document())


class RepeatRecord(Frozen):
    """One process (or job) of an experiment, as kept on disk.

    `repeat` counts from 0 within the experiment; `order` counts the repeats of the run that made it, which shows
    drift; `t0` is the start in seconds since the epoch; `wall_s` is its total time; `seen` is what was observed
    around it (affinity, load, steal, libraries, command, ...). The `samples` of a stored record stay in its file until
    they are used.
    """

    experiment: str
    repeat: int
    order: int
    t0: float
    wall_s: float
    outcome: Outcome
    samples: Sequence[Sample] = ()
    checks: Mapping[str, float | None] = {}
    seen: Mapping[str, Any] = {}


def encode(record: RepeatRecord) -> bytes:
    """One line of JSON that ends with the CRC-32 of everything before it. NaN and infinities become null."""
    document = {
        "v": RECORD_VERSION,
        "experiment": record.experiment,
        "repeat": record.repeat,
        "order": record.order,
        "t0": record.t0,
        "wall_s": record.wall_s,
        "outcome": record.outcome.state.value,
        "reason": record.outcome.reason,
        "evidence": record.outcome.evidence,
        "stage": record.outcome.stage,
        "check": record.outcome.check,
        "seen": dict(record.seen),
        "samples": pack(record.samples),
        "checks": dict(record.checks),
    }
    try:
        text = json.dumps(document, separators=(",", ":"), allow_nan=False)
    except ValueError:
        text = json.dumps(_finite(document), separators=(",", ":"), allow_nan=False)
    body = text.encode()[:-1]
    return body + crc_tail(body) + b"\n"


def crc_tail(body: bytes | memoryview) -> bytes:
    """The end of a line: the checksum of everything before it."""
    return b',"crc":"%08x"}' % zlib.crc32(body)


_CRC_TAIL = len(crc_tail(b""))


def decode(line: bytes) -> RepeatRecord:
    """The record in one line, without its newline. Raises ProtocolError if the checksum or the form is wrong."""
    body, tail = line[:-_CRC_TAIL], line[-_CRC_TAIL:]
    if tail != crc_tail(body):
        raise ProtocolError("the checksum of a record is wrong")
    try:
        document = parse_line(body + b"}")
        version = document.get("v") if isinstance(document, dict) else None
        if version != RECORD_VERSION:
            raise ProtocolError(f"a record has version {version!r:.40}; this seatrial reads version {RECORD_VERSION}")
        check_record(document)
        return RepeatRecord(
            experiment=document["experiment"],
            repeat=document["repeat"],
            order=document["order"],
            t0=document["t0"],
            wall_s=document["wall_s"],
            outcome=Outcome(
                State(document["outcome"]),
                document["reason"],
                document["evidence"],
                Stage(document["stage"]) if document["stage"] else None,
                document["check"],
            ),
            samples=tuple(unpack(document["samples"])),
            checks=document["checks"],
            seen=document["seen"],
        )
    except ValueError as error:
        raise ProtocolError(f"a record does not have the form of version {RECORD_VERSION}: {error}") from error


def _finite(value: Any) -> Any:
    """The same value with None in place of numbers that JSON cannot represent."""
    if isinstance(value, float):
        return value if value - value == 0.0 else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return value
