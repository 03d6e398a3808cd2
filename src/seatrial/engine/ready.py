"""Points as experiments: ready to run, with the program that a repeat starts, or refused."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, ClassVar

from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.program import Hello, ProgramRecord
from seatrial.model.environment.mpi import Mpi
from seatrial.model.frozen import Frozen
from seatrial.model.machine.machine import Machine
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome
from seatrial.places.contained import Contained
from seatrial.plan.points import Point


class NotPreparedError(Exception):
    """The input of a program could not be made: what was tried, how it ended, and what the tool printed. `need` is a
    word for what is missing on the machine, `check` the check that failed, if that is why."""

    def __init__(self, message: str, evidence: str, need: str = "", check: str = "") -> None:
        super().__init__(message)
        self.evidence = evidence
        self.need = need
        self.check = check


class Runnable(ABC):
    """A built or installed program of an experiment: what a repeat prepares, starts and reads.

    `directory` is the folder of the repeat.
    """

    __slots__ = ()

    writes_record: ClassVar[bool]
    """Whether it writes our record, and so reports its build, its libraries, where its threads or ranks run and the MPI
    settings in force."""
    runs_in_its_folder: ClassVar[bool] = False
    """Whether it is started in the folder of the repeat instead of the current one."""

    @property
    @abstractmethod
    def path(self) -> Path:
        """The file that is started."""

    @property
    def starts_containers(self) -> bool:
        """Whether it starts the container of its environment itself, from outside."""
        return False

    @property
    def starts_user_programs(self) -> bool:
        """Whether it is, or starts, a program of the user, which keeps the working folder and search paths that lead
        there."""
        return True

    @property
    def is_of_image(self) -> bool:
        """Whether `path` is in the image of its container, not on this machine."""
        return False

    @property
    def build_s(self) -> float:
        """How long it was built just now, in seconds; 0 if it was not."""
        return 0.0

    def prepared(self, ready: Ready, directory: Path, limit_s: float) -> AbstractContextManager[None]:
        """Make its input; files to be exchanged while it runs are exchanged inside this context. Raises
        NotPreparedError, OSError."""
        return nullcontext()

    @abstractmethod
    def arguments(self, ready: Ready, directory: Path) -> list[str]:
        """Its command line arguments."""

    @abstractmethod
    def output(self, directory: Path) -> Path:
        """The file that holds what it measured."""

    @abstractmethod
    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """The content of that file. Raises ProtocolError, OSError."""

    def timed(self, record: ProgramRecord, wall_s: float) -> ProgramRecord:
        """The same record, with the time from the start of the program to its end, if its figures need that."""
        return record

    def mismatch(self, machine: Machine, record: ProgramRecord) -> Outcome | None:
        """Why the wrong program ran; None if it was the right one, or does not report that."""
        return None

    def added_notes(self) -> Mapping[str, str]:
        """What is known of it that it does not note itself."""
        return {}

    def added_libraries(self, hello: Hello) -> list[str]:
        """The names of loaded libraries that it was not built with."""
        return []


class Ready(Frozen):
    """A point as an experiment that can run. `environment` is the document of its environment key.

    `mpi` starts its ranks; None for a single process. `variables` are set (None: unset) for its run. `container` is
    what it runs in; None: directly on the machine. `machine` is the one that it runs on; None: this one.
    `node_settings` are set on this node for its run, and put back. Samples are taken for `least_phase_s` at least, if
    its power is measured.
    """

    point: Point
    experiment: Experiment
    program: Runnable
    environment: Mapping[str, Any] = {}
    mpi: Mpi | None = None
    variables: tuple[tuple[str, str | None], ...] = ()
    container: Contained | None = None
    machine: Machine | None = None
    node_settings: tuple[tuple[str, Value], ...] = ()
    least_phase_s: float = 0.0


class Refused(Frozen):
    """A point that cannot run here, and why. `environment` is None if it was not determined. `is_left_out`: it can run,
    but not within the budget."""

    point: Point
    experiment: Experiment
    outcome: Outcome
    environment: Mapping[str, Any] | None = None
    is_left_out: bool = False
