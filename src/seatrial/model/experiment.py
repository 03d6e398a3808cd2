"""An experiment: a benchmark with all parameters resolved, identified by the hash of everything that defines it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypedDict

from seatrial.model.frozen import Frozen
from seatrial.model.json_check import check_shape
from seatrial.model.json_shape import Text
from seatrial.model.parameter import Params, Value, ValueJson, value_from_json


def content_key(document: Mapping[str, Any]) -> str:
    """The first 16 hex digits of the SHA-256 of a document in canonical JSON: same content, same key."""
    canonical = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


class ExperimentJson(TypedDict):
    """An experiment as stored."""

    benchmark: Text
    parameters: dict[str, ValueJson]
    environment: str
    program: str
    machine: Text


class Experiment(Frozen):
    """One benchmark with its parameters, in one environment, by one build of its program, on one machine.

    `environment`, `program` and `machine` are content keys; the first two are "" if nothing can be built.
    """

    benchmark: str
    parameters: Params
    environment: str
    program: str
    machine: str

    def document(self) -> dict[str, Any]:
        """Everything that defines it, as stored in `experiments/<id>.json`."""
        return {
            "benchmark": self.benchmark,
            "parameters": dict(self.parameters),
            "environment": self.environment,
            "program": self.program,
            "machine": self.machine,
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> Experiment:
        """The experiment that `document()` described. Raises ValueError if it is invalid."""
        check_shape(ExperimentJson, document)
        parameters: dict[str, Value] = {name: value_from_json(value) for name, value in document["parameters"].items()}
        return cls(document["benchmark"], parameters, document["environment"], document["program"], document["machine"])

    @property
    def id(self) -> str:
        """The content key."""
        return content_key(self.document())
