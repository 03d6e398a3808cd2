"""A panel: one section of the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from seatrial.model.frozen import Frozen
from seatrial.report.pages.view import TrialView


class Panel(Frozen):
    """One section. `context` returns the variables of its template, or None to leave the section out.

    The template is `templates/panels/<template>.html.j2`, with the name as the default; besides the context it gets
    `view` and `panel`.
    """

    name: str
    title: str
    context: Callable[[TrialView], Mapping[str, Any] | None]
    template: str = ""

    @property
    def file(self) -> str:
        """The path of the template in the folder of templates."""
        return f"panels/{self.template or self.name}.html.j2"
