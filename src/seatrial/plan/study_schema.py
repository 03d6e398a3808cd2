"""The structure of a study file as pydantic models, and the published JSON schema.

The models define the keys and the type of each value; `study_file` checks what the values mean.
The schema is generated when the package is built (hatch_build.py); `python -m seatrial.plan.study_schema` prints it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from seatrial.benchmarks import benchmark_of, registry
from seatrial.model.benchmark import Benchmark
from seatrial.model.container import PLACEMENTS, RUNTIMES
from seatrial.model.declaration import PREFIX
from seatrial.model.mpi_settings import BINDINGS, TRANSPORTS
from seatrial.model.parameter import Parameter, ParameterKind
from seatrial.model.role import Role
from seatrial.model.study import ENVIRONMENT_PREFIX, LABEL, MOST_REPEATS, SYSTEM
from seatrial.plan.axis_values import ACCEPTED_SYSTEM, can_be_studied
from seatrial.plan.environment_axes import ACCEPTED as ACCEPTED_OF_RANKS
from seatrial.plan.environment_axes import (
    ACCEPTED_COMPILER,
    ACCEPTED_FLAGS,
    ACCEPTED_VARIABLE,
    BINDING,
    COMPILER,
    CONTAINER_MPI,
    CONTAINER_RUNTIME,
    FLAGS,
    OF_CONTAINERS,
    OF_RANKS,
    TRANSPORT,
    VARIABLE,
)
from seatrial.stats.interval import MINIMUM_REPEATS

MOST_PARTIAL_SETS = 1000
MOST_REFERENCES = 100

ACCEPTED = {
    "": "a mapping: study, question, benchmarks, then axes, compare and so on",
    "study": "the study's name, text: letters, digits, - and _ (at most 100)",
    "question": "text: the question that the study answers",
    "benchmarks": "a mapping of benchmarks to their parameters, such as "
    f"`{benchmark_of(Role.MEMORY_BANDWIDTH)}: {{threads: all}}`",
    "benchmarks.*": "a mapping of parameters to values, such as {threads: all}, or {} for the defaults",
    "benchmarks.*.*": "a value, or a list of values (an axis)",
    "axes": "a mapping of parameters, or of parts of the environment, to lists of values",
    "axes.*": "a list of values, such as [1, 2]",
    "axes.*.*": "a value: text, a number, true or false",
    "exclude": f"a list of partial parameter sets, such as {{threads: 4}}; at most {MOST_PARTIAL_SETS}",
    "exclude.*": "a partial parameter set, such as {threads: 4}",
    "exclude.*.*": "a value of that axis",
    "include": f"a list of partial parameter sets, such as {{threads: 4}}; at most {MOST_PARTIAL_SETS}",
    "include.*": "a partial parameter set, such as {threads: 4}",
    "include.*.*": "a value of that parameter",
    "zip": "a list of lists of axes, such as [[threads, array_B]]; the axes of one list advance together",
    "zip.*": "a list of at least two axes",
    "zip.*.*": "the name of an axis",
    "compare": "the name of an axis, or a mapping such as {along: nontemporal, baseline: false, margin: 2%}",
    "compare.along": "the name of an axis",
    "compare.baseline": "a value of that axis (default: its first value)",
    "compare.margin": "a share between 0 and 1, such as 2%",
    "compare.equivalence": "in place of margin, for the verdict `equivalent`: a share between 0 and 1, such as 2%",
    "compare.figures": "a list of figures, such as [triad]; empty: all",
    "compare.figures.*": "the name of a figure",
    "scaling": "a mapping such as {kind: strong, along: threads}",
    "scaling.kind": "strong (fixed work) or weak (work grows with the axis)",
    "scaling.along": "the name of a numeric axis",
    "best_of": "a mapping such as {over: [record_B], figure: read}",
    "best_of.over": "a list of axes",
    "best_of.over.*": "the name of an axis",
    "best_of.figure": "the name of a figure",
    "repeat": "a mapping such as {precision: 1%, budget: 5min, max: 100}",
    "repeat.precision": "a share between 0 and 1, such as 1%: half the width of the interval, relative to the median",
    "repeat.budget": "a time with a unit, such as 5min, for the whole study",
    "repeat.max": f"an integer from {MINIMUM_REPEATS} to {MOST_REPEATS}: the most repeats of one experiment",
    "probes": "a list of probes: mpi, io, power",
    "probes.*": "mpi, io or power",
    "references": f"a list of published values to show beside the results, at most {MOST_REFERENCES}; `seatrial list "
    "--references` has their ids",
    "references.*": "the id of a published value, such as s7.triad",
}
"""Key of a study file ("*": any name or position) -> what it accepts, for messages and schema descriptions."""

_Name = Annotated[StrictStr, Field(min_length=1, max_length=200)]
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr | None
_Value = _Scalar | list[_Scalar]
_Share = StrictFloat | StrictStr
_PartialSets = Annotated[
    list[Annotated[dict[_Name, _Value], Field(min_length=1)]] | None, Field(max_length=MOST_PARTIAL_SETS)
]

_SHARE_SCHEMA = {
    "anyOf": [
        {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
        {"type": "string", "pattern": r"^ *[0-9.]+ *%? *$"},
    ],
}
_BUDGET_SCHEMA = {"pattern": r"^ *[0-9.]+(e[+-]?[0-9]+)? *(ns|us|µs|ms|s|sec|min|h|d) *$", "examples": ["5min", "90s"]}


_DECLARED = f"^{PREFIX.replace('.', '[.]')}"


def _described(place: str) -> Any:
    return Field(description=ACCEPTED[place])


class _Closed(BaseModel):
    """A mapping whose keys are all known; values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class CompareModel(_Closed):
    """Compares the values of an axis with its baseline."""

    along: Annotated[_Name, _described("compare.along")]
    baseline: Annotated[_Value, _described("compare.baseline")] = None
    margin: Annotated[
        _Share, Field(description=ACCEPTED["compare.margin"], json_schema_extra={**_SHARE_SCHEMA, "default": "2%"})
    ] = "2%"
    equivalence: Annotated[
        _Share | None, Field(description=ACCEPTED["compare.equivalence"], json_schema_extra=_SHARE_SCHEMA)
    ] = None
    figures: Annotated[list[_Name], _described("compare.figures")] = []


class ScalingModel(_Closed):
    """How figures change with a numeric axis."""

    kind: Annotated[Literal["strong", "weak"], _described("scaling.kind")]
    along: Annotated[_Name, _described("scaling.along")]


class BestOfModel(_Closed):
    """A sweep for the best value of a figure."""

    over: Annotated[list[_Name], Field(description=ACCEPTED["best_of.over"], min_length=1)]
    figure: Annotated[_Name, _described("best_of.figure")]


class RepeatModel(_Closed):
    """When to stop repeating."""

    precision: Annotated[
        _Share, Field(description=ACCEPTED["repeat.precision"], json_schema_extra={**_SHARE_SCHEMA, "default": "1%"})
    ] = "1%"
    budget: Annotated[StrictStr, Field(description=ACCEPTED["repeat.budget"], json_schema_extra=_BUDGET_SCHEMA)] = (
        "5min"
    )
    max: Annotated[StrictInt, Field(description=ACCEPTED["repeat.max"], ge=MINIMUM_REPEATS, le=MOST_REPEATS)] = 100


class StudyModel(_Closed):
    """A question, the experiments that answer it, and how they are evaluated."""

    study: Annotated[StrictStr, Field(description=ACCEPTED["study"], pattern=r"^[A-Za-z0-9_-]{1,100}$")]
    question: Annotated[StrictStr, Field(description=ACCEPTED["question"], pattern=r"\S", max_length=10_000)]
    benchmarks: Annotated[
        dict[_Name, dict[_Name, _Scalar | list[_Value]] | None],
        Field(description=ACCEPTED["benchmarks"], min_length=1),
    ]
    axes: Annotated[dict[_Name, Annotated[list[_Value], Field(min_length=1)]] | None, _described("axes")] = None
    exclude: Annotated[_PartialSets, _described("exclude")] = None
    include: Annotated[_PartialSets, _described("include")] = None
    zip: Annotated[list[Annotated[list[_Name], Field(min_length=2)]] | None, _described("zip")] = None
    compare: Annotated[_Name | CompareModel | None, _described("compare")] = None
    scaling: Annotated[ScalingModel | None, _described("scaling")] = None
    best_of: Annotated[BestOfModel | None, _described("best_of")] = None
    repeat: Annotated[RepeatModel | None, _described("repeat")] = None
    probes: Annotated[list[Literal["mpi", "io", "power"]] | None, _described("probes")] = None
    references: Annotated[
        Annotated[list[_Name], Field(max_length=MOST_REFERENCES)] | None, _described("references")
    ] = None


def study_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a study file, with all benchmarks and their parameters."""
    schema = StudyModel.model_json_schema()
    for model in (schema, *schema["$defs"].values()):
        model.pop("title", None)
        for entry in model["properties"].values():
            entry.pop("title", None)
    schema["$defs"]["CompareModel"]["properties"]["baseline"].pop("default")  # null is a value: an unset variable
    benchmarks = [b for b in registry().values() if can_be_studied(b) and not b.name.startswith(PREFIX)]
    places = schema["properties"]
    places["benchmarks"] = {
        "description": ACCEPTED["benchmarks"],
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
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "seatrial study, version 1"}
    return head | schema


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


_OF_WORDS: dict[str, dict[str, Any]] = {
    TRANSPORT: {"enum": list(TRANSPORTS)},
    BINDING: {"enum": list(BINDINGS)},
    CONTAINER_RUNTIME: {"enum": list(RUNTIMES)},
    CONTAINER_MPI: {"enum": list(PLACEMENTS)},
}


def _axes(benchmarks: list[Benchmark]) -> dict[str, Any]:
    """All axes: parameters, the label, parts of the environment."""
    parameters: dict[str, list[Parameter]] = {}
    for benchmark in benchmarks:
        for parameter in benchmark.parameters:
            parameters.setdefault(parameter.name, []).append(parameter)
    text = {"type": "string"}
    scalar = {"type": ["string", "number", "boolean"]}
    return {
        "properties": {
            LABEL: _axis("changes nothing: the same program under several names", scalar),
            SYSTEM: _axis(f"where the points are measured: {ACCEPTED_SYSTEM}", text),
            COMPILER: _axis(ACCEPTED_COMPILER, text),
            FLAGS: _axis(ACCEPTED_FLAGS, text),
            **{
                name: _axis(ACCEPTED_OF_RANKS[name], _OF_WORDS.get(name, text))
                for name in dict.fromkeys((*OF_RANKS, *OF_CONTAINERS))
            },
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


def _axis(description: str, *values: dict[str, Any]) -> dict[str, Any]:
    distinct = [value for position, value in enumerate(values) if value not in values[:position]]
    items = distinct[0] if len(distinct) == 1 else {"anyOf": distinct}
    return {"description": description, "type": "array", "minItems": 1, "uniqueItems": True, "items": items}


if __name__ == "__main__":
    print(json.dumps(study_schema(), indent=1, ensure_ascii=False))
