"""The interface of all kinds of programs, so that other packages need not distinguish them.

`seatrial.engine.kinds` defines how programs of each kind are found, prepared, started and read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from seatrial.model.frozen import Frozen
from seatrial.model.parameter import Params


class Program(Frozen):
    """The program of a benchmark. A kind overrides some of these defaults."""

    can_run: ClassVar[bool] = True
    """Whether it can be run; otherwise its figures come only from files."""

    @property
    def source(self) -> Path | None:
        """The file that is compiled in each environment; None if nothing is."""
        return None

    @property
    def library(self) -> str | None:
        """The kind of library that it loads at run time, found on the host; None if there is none."""
        return None

    @property
    def uses_devices(self) -> bool:
        """Whether it runs on GPUs, or on processors that OpenCL presents as devices."""
        return False

    @property
    def takes_turns(self) -> bool:
        """Whether it can run concurrently with others and take turns sampling."""
        return False

    @property
    def may_start_mpi(self) -> bool:
        """Whether it may start MPI processes that are not the ranks of its benchmark."""
        return False

    def stated_arguments(self, params: Params) -> Sequence[str]:
        """The arguments that its record states for these parameters."""
        return ()

    def is_chosen_by(self, parameter: str) -> bool:
        """Whether a parameter of that name selects the programs that it starts or the library that it loads."""
        return False

    def is_sensitive_to(self, variable: str) -> bool:
        """Whether the value of that environment variable is part of the program's identity."""
        return False
