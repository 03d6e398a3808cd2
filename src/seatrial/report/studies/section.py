"""One section of an article: its title, its template and what fills it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from seatrial.model.frozen import Frozen


class Section(Frozen):
    """One part of an article. `template` is a file in `templates/study/`."""

    name: str
    title: str
    template: str
    context: Mapping[str, Any]
