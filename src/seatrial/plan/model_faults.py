"""Faults that pydantic finds in a YAML file, as one clear message with line, key and accepted values."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from seatrial.errors import UsageError, did_you_mean, nearest_names
from seatrial.model.frozen import Frozen
from seatrial.plan.study_yaml import Document, Path

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


class Accepted(Frozen):
    """What the keys of a kind of file accept: place ("*" for names and positions that the user chooses) -> words.

    `named` are mappings whose keys are names that the user chooses.
    """

    words: Mapping[str, str]
    named: Collection[str]

    def of(self, path: Path) -> str:
        """What the innermost known key on the path accepts."""
        place = self._general(path)
        while ".".join(place) not in self.words:
            place = place[:-1]
        return self.words[".".join(place)]

    def keys(self, path: Path) -> list[str]:
        """The known keys of a mapping."""
        lead = "".join(f"{step}." for step in self._general(path))
        inner = [name.removeprefix(lead) for name in self.words if name and name.startswith(lead)]
        return [name for name in inner if "." not in name and name != "*"]

    def _general(self, path: Path) -> tuple[str, ...]:
        steps: list[str] = []
        for step in path:
            is_chosen = isinstance(step, int) or (bool(steps) and steps[-1] in self.named)
            steps.append("*" if is_chosen else str(step))
        return tuple(steps)


def validated(document: Document, model: type[M], accepted: Accepted) -> M:
    """The document as a model. Raises UsageError for the first place in the file that does not match it."""
    from pydantic import ValidationError

    try:
        return model.model_validate(document.root.plain())
    except ValidationError as error:
        faults = [_fault(document, fault, accepted) for fault in error.errors(include_url=False)]
    raise min(faults, key=lambda found: found[0])[1]


def _fault(document: Document, fault: Any, accepted: Accepted) -> tuple[tuple[int, int], UsageError]:
    """((line, minus depth), the message) of one error that pydantic reported."""
    path: Path = ()
    for step in fault["loc"]:  # other steps are names of union members
        if document.node((*path, step)) is not None:
            path = (*path, step)
    line = document.line(path)
    if fault["type"] == "missing":
        missing = str(fault["loc"][-1])
        seen, todo = f"the key {missing} is missing", f"{missing} takes {accepted.of((*path, missing))}"
        return (line, -len(path)), document.refuse(path, seen, todo, line)
    if fault["type"] == "extra_forbidden":
        parent, last = document.node(path[:-1]), str(path[-1])
        line = parent.key_lines.get(last, line) if parent is not None else line
        keys = accepted.keys(path[:-1])
        nearest = nearest_names(last, keys)
        todo = did_you_mean(nearest) if nearest else f"keys: {', '.join(keys)}"
        return (line, -len(path)), document.refuse(path, "unknown key", todo, line)
    node = document.node(path) or document.root
    is_empty = node.value in (None, "", [], {})
    seen = "it is empty" if is_empty else f"it cannot be {node.shown()}"
    is_unit = path[-1:] == ("unit",)  # "ms" is no misspelt "s": the reader must see that there are only these
    todo = ("" if is_unit else nearest_choice(fault, node.value)) or f"it takes {accepted.of(path)}"
    return (line, -len(path)), document.refuse(path, seen, todo, line)


def nearest_choice(fault: Any, value: object) -> str:
    """The question that suggests the nearest of the words that pydantic expected; "" if it expected none, or none is
    near."""
    choices = re.findall(r"'([^']*)'", str(fault.get("ctx", {}).get("expected", "")))
    near = nearest_names(str(value), choices)
    return did_you_mean(near) if near else ""
