"""What every kind of program answers about its declaration, so that no room asks which kind it is.

How programs of a kind are found, prepared, started and read stands in `seatrial.engine.kinds`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from seatrial.model.parameter import Params


class Program:
    """The program of a benchmark. A kind is a frozen dataclass that overrides what differs from these answers."""

    __slots__ = ()

    can_run: ClassVar[bool] = True
    """Whether it can be run at all; else its figures come from files alone."""

    @property
    def source(self) -> Path | None:
        """The file that is compiled in each environment; None where nothing is."""
        return None

    @property
    def uses_devices(self) -> bool:
        """Whether it runs on GPUs, or on processors that OpenCL presents as devices."""
        return False

    @property
    def takes_turns(self) -> bool:
        """Whether it can live beside others and sample in turns with them."""
        return False

    @property
    def may_start_mpi(self) -> bool:
        """Whether it may start processes of MPI that are not the ranks of its benchmark."""
        return False

    def stated_arguments(self, params: Params) -> Sequence[str]:
        """The arguments that a record of its own states where these parameters were measured."""
        return ()

    def is_chosen_by(self, parameter: str) -> bool:
        """Whether a parameter of that name says which programs it starts or which library it loads."""
        return False

    def is_sensitive_to(self, variable: str) -> bool:
        """Whether the value of that environment variable is part of what identifies the program that ran."""
        return False
