"""Benchmark settings as Python values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.model.benchmark.parameter import Value

Setting = Value | Path | None
Settings = Mapping[str, Setting | list[Any]]
"""Parameter -> its value, or a list of values, each of which makes an experiment. Text is parsed as on the command line
("64MiB"); None unsets an environment variable; a tuple of strings is one value (an argument list)."""


def values_of(settings: Settings) -> dict[str, Sequence[Value]]:
    """Parameter -> its values."""
    listed = {name: value if isinstance(value, list) else [value] for name, value in settings.items()}
    return {name: [_value(value) for value in values] for name, values in listed.items()}


def _value(given: Setting) -> Value:
    if given is None:
        return "null"
    return str(given) if isinstance(given, Path) else given
