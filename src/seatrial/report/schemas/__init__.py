"""The published JSON schemas (draft 2020-12) of seatrial's documents, named `<document>-<version>`.

They are generated from the shapes of the documents: when the package is built (hatch_build.py), and by
`python -m seatrial.report.schemas NAME`.
"""

from __future__ import annotations

from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from seatrial.model.environment.image import ImageFacts
from seatrial.model.json_shape import Keywords, declared, fields, is_shape, name_of
from seatrial.model.machine.machine import Machine
from seatrial.report.documents.cache import CacheJson
from seatrial.report.documents.check import CheckJson, FabricJson
from seatrial.report.documents.compare import CompareJson
from seatrial.report.documents.history import FoldersJson, HistoryJson, ScreenJson
from seatrial.report.documents.list import ListJson
from seatrial.report.documents.places import ClusterJson, GuestJson, ImageJson
from seatrial.report.documents.plan import JobsJson, PlanJson
from seatrial.report.documents.power import PowerJson
from seatrial.report.documents.results import ResultsJson
from seatrial.report.profile.document import ProfileJson

_SCALARS = {str: "string", bool: "boolean", int: "integer", float: "number", NoneType: "null"}

DOCUMENTS: dict[str, type] = {
    "cache-1": CacheJson,
    "check-1": CheckJson,
    "cluster-1": ClusterJson,
    "compare-1": CompareJson,
    "fabric-1": FabricJson,
    "folders-1": FoldersJson,
    "history-1": HistoryJson,
    "image-1": ImageJson,
    "image-facts-1": ImageFacts,
    "jobs-1": JobsJson,
    "list-1": ListJson,
    "machine-1": Machine,
    "plan-1": PlanJson,
    "power-1": PowerJson,
    "profile-1": ProfileJson,
    "results-1": ResultsJson,
    "screen-1": ScreenJson,
    "vm-1": GuestJson,
}
"""Name -> the shape of the document."""


def schema(name: str) -> dict[str, Any]:
    """The schema of that name, such as "results-1"."""
    document = DOCUMENTS[name]
    title = f"seatrial.{'/'.join(name.rsplit('-', 1))}"
    parts: dict[type, dict[str, Any]] = {document: {}}
    whole = _object(document, parts)
    named = {name_of(part): made for part, made in parts.items() if part is not document}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **whole, "$defs": named}


def _object(shape: type, parts: dict[type, dict[str, Any]]) -> dict[str, Any]:
    """The schema of one shape; those of the shapes in it are added to `parts`."""
    found = fields(shape)
    described = " ".join((shape.__doc__ or "").partition("\n\n")[0].split())
    return {
        **({"description": described} if described else {}),
        "type": "object",
        "required": [name for name, _, is_required in found if is_required],
        "additionalProperties": False,
        "properties": {name: _schema(hint, parts) for name, hint, _ in found},
        **declared(shape).keywords,
    }


def _schema(hint: Any, parts: dict[type, dict[str, Any]]) -> dict[str, Any]:
    kind, of = get_origin(hint) or hint, get_args(hint)
    if kind is Annotated:
        found = _schema(of[0], parts)
        for note in hint.__metadata__:
            found |= note.keywords if isinstance(note, Keywords) else {}
            found |= {"description": note} if isinstance(note, str) else {}
        return found
    if kind in (Union, UnionType):
        return _either([_schema(part, parts) for part in of])
    if kind is Literal:
        values = [value.value if isinstance(value, Enum) else value for value in of]
        return {"const": values[0]} if len(values) == 1 else {"enum": values}
    if kind in (list, tuple):
        length = {"minItems": len(of), "maxItems": len(of)} if kind is tuple else {}
        return {"type": "array", "items": _schema(of[0], parts), **length}
    if kind is dict:
        return {"type": "object", "additionalProperties": _schema(of[1], parts)}
    if is_shape(kind):
        return _reference(kind, parts)
    if kind is object:
        return {}
    return {"enum": [one.value for one in kind]} if issubclass(kind, Enum) else {"type": _SCALARS[kind]}


def _either(schemas: list[dict[str, Any]]) -> dict[str, Any]:
    """One of several; null is merged into a single schema that has a type or an enumeration."""
    types = [one["type"] for one in schemas if set(one) == {"type"}]
    rest = [one for one in schemas if set(one) != {"type"}]
    if types == ["null"] and len(rest) == 1 and "enum" in rest[0]:
        return {**rest[0], "enum": [*rest[0]["enum"], None]}
    if types == ["null"] and len(rest) == 1 and isinstance(rest[0].get("type"), str):
        return {**rest[0], "type": [rest[0]["type"], "null"]}
    return {"type": types} if not rest else {"anyOf": [*rest, {"type": types}] if types else rest}


def _reference(shape: type, parts: dict[type, dict[str, Any]]) -> dict[str, Any]:
    is_whole = shape is next(iter(parts))
    if shape not in parts:
        parts[shape] = {}  # it may contain itself
        parts[shape] = _object(shape, parts)
    return {"$ref": "#" if is_whole else f"#/$defs/{name_of(shape)}"}
