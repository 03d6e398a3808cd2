"""Points as experiments: ready to run, with the program that a repeat starts, or refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from seatrial.model.experiment import Experiment
from seatrial.model.machine import Machine
from seatrial.model.mpi import Mpi
from seatrial.model.outcome import Outcome
from seatrial.model.protocol import Hello, ProgramRecord
from seatrial.plan.points import Point


class NotPreparedError(Exception):
    """The input of a program could not be made: what was tried and how it ended, and what the tool printed."""

    def __init__(self, message: str, evidence: str) -> None:
        super().__init__(message)
        self.evidence = evidence


class Runnable(ABC):
    """A program of an experiment as it was built or found: what a repeat prepares, starts and reads.

    `directory` is the folder of the repeat.
    """

    __slots__ = ()

    writes_record: ClassVar[bool]
    """Whether it writes a record of ours, and so reports its build, its libraries, where its threads or ranks are and
    which settings of MPI hold there."""
    runs_in_its_folder: ClassVar[bool] = False
    """Whether it is started in the folder of the repeat; else in the current one."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The file that is started."""

    def prepared(self, ready: Ready, directory: Path, limit_s: float) -> AbstractContextManager[None]:
        """Its input is made; what it wants exchanged while it runs is exchanged as long as this lasts. Raises
        NotPreparedError, OSError."""
        return nullcontext()

    def sampling_for(self, seconds: float) -> Runnable:
        """The same program that samples for this long, where it can be asked to; it takes a few samples in any case."""
        return self

    @abstractmethod
    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """The words after its name."""

    @abstractmethod
    def output(self, directory: Path) -> Path:
        """The file that holds what it measured."""

    @abstractmethod
    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """What that file says. Raises ProtocolError, OSError."""

    def mismatch(self, machine: Machine, record: ProgramRecord) -> Outcome | None:
        """Why what ran is not what was to run; None where it is, or where it does not report that."""
        return None

    def added_libraries(self, hello: Hello) -> list[str]:
        """The names of libraries that were loaded beside those that belong to it."""
        return []


@dataclass(frozen=True, slots=True)
class Ready:
    """A point as an experiment that can run. `environment` describes what its environment key stands for.

    `mpi` starts its ranks; None where it is one process. `variables` are set (None: unset) where it runs.
    """

    point: Point
    experiment: Experiment
    program: Runnable
    environment: Mapping[str, Any] = field(default_factory=dict)
    mpi: Mpi | None = None
    variables: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Refused:
    """A point that cannot run here, and why. `environment` is None where none was reached."""

    point: Point
    experiment: Experiment
    outcome: Outcome
    environment: Mapping[str, Any] | None = None
