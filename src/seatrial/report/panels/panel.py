"""What a panel is: one section of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from seatrial.report.pages.view import TrialView


@dataclass(frozen=True, slots=True)
class Panel:
    """One section. `context` gives what its template needs, or None where there is nothing to say.

    The template is `templates/panels/<template>.html.j2`, where `template` is the name unless it is said; besides the
    context it gets `view` and `panel`.
    """

    name: str
    title: str
    context: Callable[[TrialView], Mapping[str, Any] | None]
    template: str = ""

    @property
    def file(self) -> str:
        """The template, as seen from the folder of templates."""
        return f"panels/{self.template or self.name}.html.j2"
