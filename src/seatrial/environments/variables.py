"""The environment variables that a program runs with."""

from __future__ import annotations

import os
from collections.abc import Iterable


def variables_with(changes: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """Those of this process, with these set or (None) unset; the last one of a name counts."""
    variables = dict(os.environ)
    for name, value in changes:
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables
