"""Benchmarks without a program: their figures come from the result files of other tools."""

from __future__ import annotations

from seatrial.engine.kinds.kind import Kind
from seatrial.engine.ready import Refused
from seatrial.environments.build import Environment
from seatrial.errors import BuildError
from seatrial.model.benchmark.benchmark import ImportedOnly
from seatrial.model.results.outcome import Outcome
from seatrial.plan.points import Point


class ImportedKind(Kind[ImportedOnly]):
    """Refuses every point."""

    @staticmethod
    def missing(program: ImportedOnly, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The reason why there is no program."""
        return program.why

    def identify(self, point: Point, program: ImportedOnly) -> Refused:
        """The refused experiment."""
        return self.refused(point, Outcome.unsupported("program", program.why))
