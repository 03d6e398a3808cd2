"""The declaration of an application whose input the user gives, and whose log a reader reads."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.benchmark.benchmark import External
from seatrial.model.frozen import Frozen

OWN = "own"
"""The case that is not a published one: an input of the user."""

CASE, FOLDER, INPUT = "case", "inputs", "input"
"""Parameters: the name of the case, the folder of its files, and the file that the program is started with."""

CLOCKED_S = "clocked_s"

NONE, AUTO = "none", "auto"


class InputCase(Frozen):
    """One input of an application: its name, what it is, and where a user gets it ("" if it is made here).

    `start` is the file that the program is started with ("" if it needs none). `files` must all be in the folder that
    the user gives. `atoms` is the size that the log must state, None if it states none. `sha256`: file -> checksum, of
    the files whose published content is known.
    """

    name: str
    what: str
    source: str
    start: str = ""
    files: tuple[str, ...] = ()
    atoms: int | None = None
    sha256: Mapping[str, str] = {}

    @property
    def is_made_here(self) -> bool:
        """Whether `External.inputs` makes all its files."""
        return not self.source


class GivenInput(External, kw_only=True):
    """An application that runs on a copy of the folder in the parameter `inputs`. Files of that folder that could be
    taken for its output are left out.

    `reader` names the reader of its log; what it states of `stated` (parameter of the reader -> name of the check) is
    in the first sample's `extra`; with `is_clocked`, our own time of the run is there, too (CLOCKED_S). `parse` reads
    only what that reader does not: its record has no samples.
    """

    reader: str
    cases: tuple[InputCase, ...]
    stated: Mapping[str, str]
    is_clocked: bool = False

    def case(self, name: object) -> InputCase | None:
        """The case of that name; None for the user's own."""
        return next((case for case in self.cases if case.name == name), None)
