"""A planted cause or a control, and the verdict on what seatrial said about it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any


class Load(StrEnum):
    """QUIET: nothing else is started. LOADED: a spinner on each CPU, for all of the case."""

    QUIET = "quiet"
    LOADED = "loaded"


class Verdict(StrEnum):
    """NAMED: the planted cause comes first. SILENT: no cause, "not known", or only some of the causes that belong
    together. CLEAN: a control without a cause."""

    NAMED = "named"
    SILENT = "silent"
    WRONG = "wrong"
    CLEAN = "clean"
    SKIPPED = "skipped"


BOTH = frozenset(Load)
QUIET_ONLY = frozenset({Load.QUIET})
NO_CAUSE = frozenset({"not-known", "computation", "no-cpu"})
"""What may be said of a planted cause without naming any."""
TRUE_WHEN_LOADED = frozenset({"other-processes", "steal"})
"""Steal: a hypervisor may not run all CPUs of a guest at once that its spinners keep busy."""


class Skip(Exception):
    """The case cannot be run here; the message says what is missing."""


@dataclass(frozen=True)
class Said:
    """The causes that were named, the main one first, each with its share of the time (None: not known), and the words
    that came with them."""

    causes: tuple[tuple[str, float | None], ...]
    text: str


@dataclass(frozen=True)
class Bench:
    """What a case runs with: its own empty folder, the seconds that a program runs, the load, and the CPUs."""

    folder: Path
    seconds: float
    load: Load
    cpus: tuple[int, ...]

    def seatrial(self, *words: str, prefix: Sequence[str] = (), variables: Mapping[str, str] | None = None) -> Any:
        """The JSON document of a command, run in the folder. Ends the script if there is none."""
        command = [*prefix, sys.executable, "-m", "seatrial", *words]
        done = subprocess.run(command, cwd=self.folder, env=variables, capture_output=True, check=False)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise SystemExit(f"{command}: {done.stderr.decode(errors='replace')[-2000:]}") from None


@dataclass(frozen=True)
class Case:
    """One planted cause, or a control.

    `right` are the causes that are right, one of which must be in the first `rows`; none for a control. `together`: all
    of these must be named, in any order. `words` must be in the text. `allowed` are causes that are true besides; they
    are left out before judging. `variant`: the MPI library or another tool that the case is repeated with.
    """

    subject: str
    name: str
    say: Callable[[Bench], Said]
    right: frozenset[str] = frozenset()
    together: frozenset[str] = frozenset()
    words: tuple[str, ...] = ()
    allowed: frozenset[str] = frozenset()
    rows: int = 1
    variant: str = ""
    loads: frozenset[Load] = BOTH
    is_quick: bool = False
    seconds: float | None = None
    needs_cpus: int = 1
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_control(self) -> bool:
        """Whether nothing is planted."""
        return not (self.right or self.together)

    def judge(self, said: Said, load: Load) -> Verdict:
        """The verdict. On a loaded machine, the processes that load it are a true cause of everything measured."""
        causes = [cause for cause, _ in said.causes if cause not in self.allowed]
        main = causes[0] if causes else None
        if load is Load.LOADED and main in TRUE_WHEN_LOADED:
            return Verdict.CLEAN if self.is_control else Verdict.NAMED
        if self.is_control:
            return Verdict.CLEAN if main is None else Verdict.WRONG
        has_words = all(word in said.text for word in self.words)
        is_right = bool(self.right & set(causes[: self.rows])) if self.right else True
        if is_right and self.together <= set(causes) and has_words:
            return Verdict.NAMED
        is_part = bool(self.together) and self.together >= set(causes)
        return Verdict.SILENT if main is None or main in NO_CAUSE or is_part else Verdict.WRONG


def planted(*causes: str) -> frozenset[str]:
    """The causes that are right."""
    return frozenset(causes)
