"""Which cases of a product always run; the others run in `make exhaustive`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest


def usually(cases: Iterable[Any], is_usual: Callable[[Any], bool]) -> list[Any]:
    """The cases, as pytest takes them; those that are not usual are exhaustive."""
    return [case if is_usual(case) else _exhaustive(case) for case in cases]


def usually_first(cases: Iterable[Any]) -> list[Any]:
    """The first case always: for what does not depend on which of them it is."""
    listed = list(cases)
    return [*listed[:1], *map(_exhaustive, listed[1:])]


def _exhaustive(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.exhaustive)
