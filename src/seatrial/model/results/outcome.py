"""How an experiment, or one repeat of it, ended: a closed set."""

from __future__ import annotations

from enum import StrEnum

from seatrial.model.frozen import Frozen

NO_TIME = "it does not fit into the budget"
"""How the reason of a skipped experiment begins that could run here, but was left out for lack of time."""


class State(StrEnum):
    """The closed set of outcomes."""

    OK = "ok"
    SKIPPED = "skipped"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"
    FAILED = "failed"
    TIMED_OUT = "timed_out"


class Stage(StrEnum):
    """Where something failed."""

    BUILD = "build"
    LAUNCH = "launch"
    RUN = "run"
    RECORD = "record"


class Outcome(Frozen):
    """A state with its reason in one sentence.

    `evidence` is the end of what the program printed; `check` names the check that failed (invalid), `stage` where it
    failed (failed). The reason begins with them.
    """

    state: State
    reason: str = ""
    evidence: str = ""
    stage: Stage | None = None
    check: str = ""

    @property
    def is_ok(self) -> bool:
        """Whether figures may be published."""
        return self.state is State.OK

    @classmethod
    def ok(cls) -> Outcome:
        """It ran and every check held."""
        return cls(State.OK)

    @classmethod
    def skipped(cls, reason: str) -> Outcome:
        """It was deliberately not run: this machine is too small for it, or it makes no sense here."""
        return cls(State.SKIPPED, reason)

    @classmethod
    def unsupported(cls, need: str, detail: str) -> Outcome:
        """A requirement is missing; `need` is one word for it, `detail` says how to get it."""
        return cls(State.UNSUPPORTED, f"{need}: {detail}")

    @classmethod
    def invalid(cls, check: str, seen: str) -> Outcome:
        """It ran, but a check failed: raw samples are kept, no figure is published."""
        return cls(State.INVALID, f"{check}: {seen}", check=check)

    @classmethod
    def failed(cls, stage: Stage, seen: str, evidence: str = "") -> Outcome:
        """It could not be built, started or recorded, or it crashed."""
        return cls(State.FAILED, f"{stage}: {seen}", evidence, stage=stage)

    @classmethod
    def timed_out(cls, limit_s: float, evidence: str = "") -> Outcome:
        """It exceeded the time limit and was ended, with its children."""
        return cls(State.TIMED_OUT, f"ended after {limit_s:g} s, with its children", evidence)
