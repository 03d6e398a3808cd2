"""The structure of a declaration file as pydantic models, and the published JSON schema.

The models define the keys and the type of each value; `declaration_file` checks what the values mean. The schema is
generated when the package is built (hatch_build.py); `python -m seatrial.plan.declaration_schema` prints it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from seatrial.model.units import UNITS

_FIGURE = "benchmark.figures.*"
_CHECK = "benchmark.checks.*"
_PATTERN = r"a regular expression for one line, with one group that is the number, such as 'rate: +(\S+) GB/s'"
_FILE = "stdout, stderr, or the name of a file that the program writes into its working directory"
_WHICH = "only (several different values are an error; the default), first, last, or each (all are samples)"
ACCEPTED = {
    "": "a mapping with the key `benchmark`",
    "benchmark": "a mapping: name, question, argv, then parameters, figures, checks and so on",
    "benchmark.name": "text: letters, digits, - and _ (at most 100); the benchmark is local.<name>",
    "benchmark.question": "text: the question that it answers",
    "benchmark.argv": "a list: the program and its arguments, such as [./solver, --size, '{size}']; `{parameter}` is "
    "replaced by its value, `{{` is a brace; no shell sees it; a program with a slash is relative to this file",
    "benchmark.argv.*": "a word: text, a number, true or false",
    "benchmark.ranks": "an integer or all: an MPI program, started on that many ranks by default (parameter `ranks`)",
    "benchmark.parameters": "a mapping of names to defaults, such as {size: 100, mode: {default: a, values: [a, b]}}",
    "benchmark.parameters.*": "a default (text, an integer, true or false; another number in quotes), or a mapping "
    "with default, values, help",
    "benchmark.parameters.*.default": "text, an integer, true or false; another number in quotes",
    "benchmark.parameters.*.values": "a list of the accepted texts",
    "benchmark.parameters.*.values.*": "text",
    "benchmark.parameters.*.help": "text: what it sets",
    "benchmark.parameters.*.minimum": "the least accepted integer",
    "benchmark.figures": "a list of figures, such as {name: rate, unit: flop/s, better: higher, pattern: '...'}; "
    "`wall`, the time of the whole program, needs no entry",
    _FIGURE: "a mapping: name, unit, better, and pattern or json",
    f"{_FIGURE}.name": "text: letters, digits, -, _ and . (at most 100)",
    f"{_FIGURE}.unit": f"one of {', '.join(UNITS)} (1: a plain number)",
    f"{_FIGURE}.better": "higher or lower",
    f"{_FIGURE}.pattern": _PATTERN,
    f"{_FIGURE}.json": "the path of a number in a JSON document, such as results[0].rate",
    f"{_FIGURE}.file": _FILE,
    f"{_FIGURE}.scale": "a number above 0: turns the printed number into the unit, such as 1e9 for GB/s",
    f"{_FIGURE}.which": _WHICH,
    "benchmark.checks": "a list of conditions, such as {name: residual, pattern: '...', below: 1e-8}",
    _CHECK: "a mapping: name, and must_match, must_not_match, or pattern or json with below, above or equals",
    f"{_CHECK}.name": "text: letters, digits, -, _ and . (at most 100)",
    f"{_CHECK}.pattern": _PATTERN,
    f"{_CHECK}.json": "the path of a number in a JSON document, such as results[0].error",
    f"{_CHECK}.file": _FILE,
    f"{_CHECK}.which": _WHICH,
    f"{_CHECK}.below": "a number: the value must be at most this",
    f"{_CHECK}.above": "a number: the value must be at least this",
    f"{_CHECK}.equals": "a number: the value must be this",
    f"{_CHECK}.must_match": "a regular expression that one line must match",
    f"{_CHECK}.must_not_match": "a regular expression that no line may match",
    "benchmark.variables": "a mapping of environment variables to values, such as {OMP_NUM_THREADS: '{threads}'}",
    "benchmark.variables.*": "text, a number, true or false; `{parameter}` is replaced by its value",
    "benchmark.build": "a list of commands, such as [[make, solver]], run once in the folder of this file",
    "benchmark.build.*": "a list: a program and its arguments, such as [make, solver]",
    "benchmark.build.*.*": "a word: text, a number, true or false",
    "benchmark.files": "a list of files or folders beside this file that are copied to where the program runs",
    "benchmark.files.*": "a path relative to this file, such as input.dat",
    "benchmark.exit_status": "the expected exit status, an integer from 0 to 255 (default: 0)",
    "benchmark.expected": "a time with a unit, such as 10s: about how long one run takes (default: 1s)",
}
"""Key of a declaration file ("*": any name or position) -> what it accepts, for messages and schema descriptions."""

NAMED = frozenset({"parameters", "variables"})
"""Mappings whose keys are names that the user chooses."""

_Name = Annotated[StrictStr, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,99}$")]
_Word = StrictStr | StrictBool | StrictInt | StrictFloat
_Words = Annotated[list[_Word], Field(min_length=1, max_length=10_000)]
_Number = StrictFloat | StrictInt
_Text = Annotated[StrictStr, Field(min_length=1, max_length=4096)]
_WhichName = Literal["only", "first", "last", "each"]


def _described(place: str, **more: Any) -> Any:
    return Field(description=ACCEPTED[place], **more)


class _Closed(BaseModel):
    """A mapping whose keys are all known; values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class ParameterModel(_Closed):
    """A parameter of the benchmark."""

    default: Annotated[StrictBool | StrictInt | StrictStr, _described("benchmark.parameters.*.default")]
    values: Annotated[
        list[_Text] | None, _described("benchmark.parameters.*.values", min_length=1, max_length=1000)
    ] = None
    help: Annotated[_Text | None, _described("benchmark.parameters.*.help")] = None
    minimum: Annotated[StrictInt | None, _described("benchmark.parameters.*.minimum")] = None


class FigureModel(_Closed):
    """A figure that is read from an output."""

    name: Annotated[_Name, _described(f"{_FIGURE}.name")]
    unit: Annotated[Literal[UNITS], _described(f"{_FIGURE}.unit")]  # type: ignore[valid-type]  # of a table
    better: Annotated[Literal["higher", "lower"], _described(f"{_FIGURE}.better")]
    pattern: Annotated[_Text | None, _described(f"{_FIGURE}.pattern")] = None
    json_path: Annotated[_Text | None, _described(f"{_FIGURE}.json", alias="json")] = None
    file: Annotated[_Text, _described(f"{_FIGURE}.file")] = "stdout"
    scale: Annotated[_Number, _described(f"{_FIGURE}.scale", gt=0)] = 1
    which: Annotated[_WhichName, _described(f"{_FIGURE}.which")] = "only"


class CheckModel(_Closed):
    """A condition that must hold before a figure is published."""

    name: Annotated[_Name, _described(f"{_CHECK}.name")]
    pattern: Annotated[_Text | None, _described(f"{_CHECK}.pattern")] = None
    json_path: Annotated[_Text | None, _described(f"{_CHECK}.json", alias="json")] = None
    file: Annotated[_Text, _described(f"{_CHECK}.file")] = "stdout"
    which: Annotated[_WhichName, _described(f"{_CHECK}.which")] = "only"
    below: Annotated[_Number | None, _described(f"{_CHECK}.below")] = None
    above: Annotated[_Number | None, _described(f"{_CHECK}.above")] = None
    equals: Annotated[_Number | None, _described(f"{_CHECK}.equals")] = None
    must_match: Annotated[_Text | None, _described(f"{_CHECK}.must_match")] = None
    must_not_match: Annotated[_Text | None, _described(f"{_CHECK}.must_not_match")] = None


class DeclarationModel(_Closed):
    """One benchmark."""

    name: Annotated[StrictStr, _described("benchmark.name", pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,99}$")]
    question: Annotated[StrictStr, _described("benchmark.question", pattern=r"\S", max_length=10_000)]
    argv: Annotated[_Words, _described("benchmark.argv")]
    ranks: Annotated[Annotated[StrictInt, Field(ge=1)] | Literal["all"] | None, _described("benchmark.ranks")] = None
    parameters: Annotated[
        dict[_Name, StrictBool | StrictInt | _Text | ParameterModel] | None,
        _described("benchmark.parameters", max_length=100),
    ] = None
    figures: Annotated[list[FigureModel] | None, _described("benchmark.figures", max_length=100)] = None
    checks: Annotated[list[CheckModel] | None, _described("benchmark.checks", max_length=100)] = None
    variables: Annotated[dict[_Name, _Word] | None, _described("benchmark.variables", max_length=100)] = None
    build: Annotated[list[_Words] | None, _described("benchmark.build", max_length=100)] = None
    files: Annotated[list[_Text] | None, _described("benchmark.files", max_length=1000)] = None
    exit_status: Annotated[StrictInt, _described("benchmark.exit_status", ge=0, le=255)] = 0
    expected: Annotated[StrictStr | None, _described("benchmark.expected")] = None


class FileModel(_Closed):
    """A file that declares one benchmark."""

    benchmark: Annotated[DeclarationModel, _described("benchmark")]


def declaration_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a declaration file."""
    schema = FileModel.model_json_schema(by_alias=True)
    for model in (schema, *schema["$defs"].values()):
        model.pop("title", None)
        for place in model["properties"].values():
            place.pop("title", None)
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "seatrial benchmark, version 1"}
    return head | schema


if __name__ == "__main__":
    print(json.dumps(declaration_schema(), indent=1, ensure_ascii=False))
