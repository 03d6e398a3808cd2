"""The environment variables that a program runs with."""

from __future__ import annotations

import os

from seatrial.model.environment_choice import EnvironmentChoice


def variables_of(choice: EnvironmentChoice) -> dict[str, str]:
    """Those of this process, with what a study sets or unsets."""
    variables = dict(os.environ)
    for name, value in choice.variables:
        if value is None:
            variables.pop(name, None)
        else:
            variables[name] = value
    return variables
