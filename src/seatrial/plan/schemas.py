"""The published JSON schemas of the files that users write.

They are generated when the package is built (hatch_build.py); `python -m seatrial.plan.schemas KIND` prints one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from seatrial.benchmarks import registry
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.declaration import PREFIX
from seatrial.model.benchmark.parameter import Parameter, ParameterKind
from seatrial.model.study.study import ENVIRONMENT_PREFIX, LABEL, SYSTEM
from seatrial.plan.axis_values import ACCEPTED_SYSTEM, can_be_studied
from seatrial.plan.declaration_file import InputFileModel
from seatrial.plan.environment_axes import (
    ACCEPTED_VARIABLE,
    AXES,
    COMPILER,
    CONTAINER_BUILD,
    FLAGS,
    OF_CONTAINERS,
    OF_RANKS,
    VARIABLE,
)
from seatrial.plan.file_model import schema_of
from seatrial.plan.image_file import ImageModel
from seatrial.plan.site_file import SiteModel
from seatrial.plan.study_model import StudyModel
from seatrial.plan.topology_file import TopologyModel

_OF_ENVIRONMENT = dict.fromkeys((COMPILER, FLAGS, *OF_RANKS, *OF_CONTAINERS))
_DECLARED = f"^{PREFIX.replace('.', '[.]')}"


def study_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a study file, with all benchmarks and their parameters."""
    schema = schema_of(StudyModel, "seatrial study, version 1")
    schema["$defs"]["CompareModel"]["properties"]["baseline"].pop("default")  # null is a value: an unset variable
    benchmarks = [b for b in registry().values() if can_be_studied(b) and not b.name.startswith(PREFIX)]
    places = schema["properties"]
    places["benchmarks"] = {
        "description": StudyModel.benchmarks.accepts,
        "type": "object",
        "minProperties": 1,
        "properties": {benchmark.name: _benchmark(benchmark) for benchmark in benchmarks},
        "patternProperties": {
            _DECLARED: {
                "description": "a benchmark that a file declares, with its parameters",
                "type": ["object", "null"],
            }
        },
        "additionalProperties": False,
    }
    axes = places["axes"]["anyOf"][0]
    axes |= _axes(benchmarks)
    axes["additionalProperties"] = _axis(
        "a parameter of a benchmark that a file declares", {"type": ["string", "number", "boolean"]}
    )
    schema["allOf"] = [_only_known_axes(axes)]
    for name in ("probes", "references"):
        places[name]["anyOf"][0]["uniqueItems"] = True
    return schema


def _only_known_axes(axes: dict[str, Any]) -> dict[str, Any]:
    """Axes with other names than these only in studies of declared benchmarks, whose parameters are not known here."""
    known = [{"enum": list(axes["properties"])}, *({"pattern": pattern} for pattern in axes["patternProperties"])]
    return {
        "if": {"properties": {"benchmarks": {"propertyNames": {"not": {"pattern": _DECLARED}}}}},
        "then": {"properties": {"axes": {"propertyNames": {"anyOf": known}}}},
    }


def _benchmark(benchmark: Benchmark) -> dict[str, Any]:
    return {
        "description": benchmark.question,
        "type": ["object", "null"],
        "properties": {
            parameter.name: {
                "description": f"{parameter.help}; accepts {parameter.accepts()}; a list is an axis",
                "anyOf": [_value(parameter), {"type": "array", "minItems": 1, "items": _value(parameter)}],
            }
            for parameter in benchmark.parameters
        },
        "additionalProperties": False,
    }


def _value(parameter: Parameter) -> dict[str, Any]:
    """The schema of one value of a parameter, as far as JSON Schema can express it."""
    words: list[dict[str, Any]] = [{"enum": list(parameter.words)}] if parameter.words else []
    number: dict[str, Any] = {"type": "integer", "minimum": int(parameter.minimum)}
    match parameter.kind:
        case ParameterKind.FLAG:
            kinds: list[dict[str, Any]] = [{"enum": [True, False]}]
        case ParameterKind.INTEGER:
            kinds = [number]
        case ParameterKind.BYTES:
            kinds = [number, {"type": "string", "pattern": r"^ *[0-9.]+ *([kKMGTPE]|[KMGTP]i)?B? *$"}]
        case ParameterKind.CHOICE:
            kinds = []
        case ParameterKind.TEXT:
            kinds = [{"type": ["string", "number", "boolean"]}]
            words = []
        case ParameterKind.WORDS:
            kinds = [{"type": "array", "minItems": 1, "items": {"type": ["string", "number", "boolean"]}}]
    return {"anyOf": words + kinds} if len(words + kinds) > 1 else (words + kinds)[0]


def _axes(benchmarks: list[Benchmark]) -> dict[str, Any]:
    """All axes: parameters, the label, parts of the environment."""
    parameters: dict[str, list[Parameter]] = {}
    for benchmark in benchmarks:
        for parameter in benchmark.parameters:
            parameters.setdefault(parameter.name, []).append(parameter)
    scalar = {"type": ["string", "number", "boolean"]}
    return {
        "properties": {
            LABEL: _axis("changes nothing: the same program under several names", scalar),
            SYSTEM: _axis(f"where the points are measured: {ACCEPTED_SYSTEM}", {"type": "string"}),
            **{name: _axis(AXES[name].accepts, _of_environment(name)) for name in _OF_ENVIRONMENT},
            **{
                name: _axis("; or ".join(dict.fromkeys(p.help for p in alike)), *map(_value, alike))
                for name, alike in sorted(parameters.items())
            },
        },
        "patternProperties": {
            f"^{ENVIRONMENT_PREFIX.replace('.', '[.]')}({VARIABLE})$": _axis(
                f"an environment variable: {ACCEPTED_VARIABLE}", {"type": ["string", "number", "boolean", "null"]}
            )
        },
    }


def _of_environment(name: str) -> dict[str, Any]:
    """The schema of one value of an axis of the environment."""
    words = AXES[name].words if name != CONTAINER_BUILD else ()  # which version 1 of the schema leaves open
    return {"enum": list(words)} if words else {"type": "string"}


def _axis(description: str, *values: dict[str, Any]) -> dict[str, Any]:
    distinct = [value for position, value in enumerate(values) if value not in values[:position]]
    items = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return {"description": description, "type": "array", "minItems": 1, "uniqueItems": True, "items": items}


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "study": study_schema,
    "site": partial(schema_of, SiteModel, "seatrial site, version 1"),
    "benchmark": partial(schema_of, InputFileModel, "seatrial benchmark, version 1"),
    "image": partial(schema_of, ImageModel, "seatrial image, version 1"),
    "topology": partial(schema_of, TopologyModel, "seatrial topology file, version 1"),
}
"""Kind of file -> its schema (draft 2020-12)."""

if __name__ == "__main__":
    print(json.dumps(SCHEMAS[sys.argv[1]](), indent=1, ensure_ascii=False))
