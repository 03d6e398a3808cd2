"""The published schemas as validators: each is made, and itself checked, once."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import jsonschema

from seatrial.report.schemas import schema


@cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """That of one document, such as "results-1"; the schema is sound."""
    jsonschema.Draft202012Validator.check_schema(schema(name))
    return jsonschema.Draft202012Validator(schema(name))


def check(document: Mapping[str, Any], name: str) -> None:
    """Raises jsonschema.ValidationError for a document that is not as the schema says."""
    validator(name).validate(document)
