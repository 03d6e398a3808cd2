"""No program: the figures come from the result files of other tools."""

from __future__ import annotations

from seatrial.engine.kinds.kind import Kind
from seatrial.engine.ready import Refused
from seatrial.environments.build import Environment
from seatrial.errors import BuildError
from seatrial.model.benchmark import ImportedOnly
from seatrial.model.outcome import Outcome
from seatrial.plan.points import Point


class ImportedKind(Kind[ImportedOnly]):
    """Every point is refused."""

    @staticmethod
    def missing(program: ImportedOnly, environment: Environment | BuildError, *, has_ranks: bool) -> str | None:
        """The program."""
        return program.why

    def identify(self, point: Point, program: ImportedOnly) -> Refused:
        """The experiment that it would be."""
        return self.refused(point, Outcome.unsupported("program", program.why))
