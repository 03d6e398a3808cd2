"""The published JSON schemas (draft 2020-12) of what seatrial prints, named `<document>-<version>.json`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any


def schema(name: str) -> dict[str, Any]:
    """The schema of that name, such as "results-1"."""
    text = resources.files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8")
    document: dict[str, Any] = json.loads(text)
    return document
