"""The interface of a kind of program: find what it needs on this machine, and identify its experiments. Benchmarks
without a program have figures from the result files of other tools.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from seatrial.engine.listener import Listener
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Environment
from seatrial.environments.chosen import Environments
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import ImportedOnly
from seatrial.model.benchmark.program import Program
from seatrial.model.environment.mpi import Mpi
from seatrial.model.machine.identity import machine_identity
from seatrial.model.results.record import Experiment
from seatrial.model.results.sample import Outcome, Stage
from seatrial.model.secrets import masked_parameters
from seatrial.places.rank_helpers import make_helpers
from seatrial.plan.points import Point

P = TypeVar("P", bound=Program)


@dataclass(slots=True)
class ProgramKind(ABC, Generic[P]):
    """A kind of program while points are prepared: what they share is built, hashed and looked up once.

    Without `builds`, only programs that must report what identifies their experiments are built; none can be run.
    """

    runs_in_images: ClassVar[bool] = False
    """Whether such programs may be those of a container image."""

    environments: Environments
    machine_key: str
    listener: Listener
    builds: bool

    @staticmethod
    @abstractmethod
    def missing(program: P, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """What is missing on this machine to run such a program, as text; None if it has or can build it."""

    @abstractmethod
    def identify(self, point: Point, program: P) -> Ready | Refused:
        """The experiment of a point, with its program built or found."""

    def installed_programs(self, point: Point, program: P) -> Iterator[Path]:
        """The programs of this machine that it starts unchanged."""
        return iter(())

    def experiment(self, point: Point, environment: str, program: str) -> Experiment:
        """The experiment of a point, by the keys of its environment and its program. Secrets are not part of it."""
        there = self.environments.machine.at(point.environment.vm)
        machine = self.machine_key if there is self.environments.machine else machine_identity(there)[:16]
        return Experiment(point.benchmark.name, masked_parameters(point.parameters), environment, program, machine)

    def refused(
        self,
        point: Point,
        why: Outcome | BuildError,
        environment: tuple[str, Mapping[str, Any] | None] = ("", None),
        program: str = "",
    ) -> Refused:
        """A point that cannot run. Its own refusal takes precedence: what can never run here needs no compiler.

        `environment` is the key and the document, as far as known.
        """
        key, document = environment
        if isinstance(why, BuildError):
            failed = Outcome.failed(Stage.BUILD, str(why), why.output)
            why = Outcome.unsupported(why.need, str(why)) if why.need else failed
        return Refused(point, self.experiment(point, key, program), point.refusal or why, document)

    def make_helpers(self, point: Point, mpi: Mpi | None) -> None:
        """Build the helper programs for ranks, and the MPI profiler if needed. Raises BuildError."""
        if self.builds:
            make_helpers(for_ranks=mpi is not None, with_profiler=point.is_profiled)


class ImportedKind(ProgramKind[ImportedOnly]):
    """Refuses every point."""

    @staticmethod
    def missing(program: ImportedOnly, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The reason why there is no program."""
        return program.why

    def identify(self, point: Point, program: ImportedOnly) -> Refused:
        """The refused experiment."""
        return self.refused(point, Outcome.unsupported("program", program.why))
