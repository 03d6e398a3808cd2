"""What a panel is: one section of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.report.view import TrialView


@dataclass(frozen=True, slots=True)
class Panel:
    """One section. `context` gives what its template needs, or None where there is nothing to say.

    The template is `templates/panels/<name>.html.j2`; besides the context it gets `view` and `panel`.
    """

    name: str
    title: str
    context: Callable[[TrialView], Mapping[str, Any] | None]
