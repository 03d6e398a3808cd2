"""One section of an article: its title, its template and what fills it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Section:
    """One part of an article. `template` is a file in `templates/study/`."""

    name: str
    title: str
    template: str
    context: Mapping[str, Any]
