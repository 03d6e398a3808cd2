"""What every kind of program does for the engine: find what it needs here, and identify its experiments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from seatrial.engine.environments import Environments
from seatrial.engine.events import Listener
from seatrial.engine.rank_helpers import make_helpers
from seatrial.engine.ready import Ready, Refused
from seatrial.environments.build import Environment
from seatrial.errors import BuildError
from seatrial.model.experiment import Experiment
from seatrial.model.mpi import Mpi
from seatrial.model.outcome import Outcome, Stage
from seatrial.model.program import Program
from seatrial.plan.points import Point

Described = tuple[str, Mapping[str, Any] | None]
"""The key of an environment, and its document; ("", None) where none was reached."""
P = TypeVar("P", bound=Program)


@dataclass(frozen=True, slots=True)
class Preparation:
    """What many points are prepared for, and with.

    Without `builds` only those programs are built that tell what identifies their experiments: none can be run.
    """

    environments: Environments
    machine_key: str
    listener: Listener
    builds: bool = True

    def experiment(self, point: Point, environment: str, program: str) -> Experiment:
        """The experiment of a point in an environment, by the keys of environment and program."""
        return Experiment(point.benchmark.name, point.parameters, environment, program, self.machine_key)

    def refused(self, point: Point, environment: Described, program: str, why: Outcome | BuildError) -> Refused:
        """A point that cannot run. Its own refusal comes first: what this machine can never run needs no compiler."""
        key, document = environment
        outcome = point.refusal or (_outcome(why) if isinstance(why, BuildError) else why)
        return Refused(point, self.experiment(point, key, program), outcome, document)

    def make_helpers(self, point: Point, mpi: Mpi | None) -> None:
        """Build what stands around ranks, and what is loaded beside the program. Raises BuildError."""
        if self.builds:
            make_helpers(for_ranks=mpi is not None, with_profiler=point.is_profiled)


def _outcome(problem: BuildError) -> Outcome:
    if problem.need:
        return Outcome.unsupported(problem.need, str(problem))
    return Outcome.failed(Stage.BUILD, str(problem), problem.output)


class Kind(ABC, Generic[P]):
    """A kind of program in one preparation: what its points share is built, hashed and asked once."""

    def __init__(self, preparation: Preparation) -> None:
        self._preparation = preparation

    @staticmethod
    @abstractmethod
    def missing(program: P, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """What this machine lacks to have such a program, for people; None where it has it or can build it."""

    @abstractmethod
    def identify(self, point: Point, program: P) -> Ready | Refused:
        """The experiment of a point, with its program built or found."""
