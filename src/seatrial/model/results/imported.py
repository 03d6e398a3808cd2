"""The contents of a result file of another tool, as parsed by a reader."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.model.benchmark.parameter import Value
from seatrial.model.frozen import Frozen
from seatrial.model.results.figure_result import StatedFigure
from seatrial.model.results.sample import Outcome, Sample


class ImportedExperiment(Frozen):
    """One experiment of the file: all its samples make one repeat.

    `benchmark` is one of seatrial if it measures the same, else `imported.<kind>`. `parameters` are those that the file
    states and the benchmark declares; the others are unknown. `notes` are other values of the file (for
    records).
    """

    benchmark: str
    samples: tuple[Sample, ...]
    parameters: Mapping[str, Value] = {}
    notes: Mapping[str, object] = {}
    checks: Mapping[str, float] = {}
    """Values of the benchmark's checks, if the file states them."""
    failed: str = ""
    """Why the tool reports this experiment as wrong; "" if it does not."""
    skipped: str = ""
    """Why the tool did not run it; "" if it did."""
    remarks: tuple[str, ...] = ()
    """What the file has but no figure shows, and what it may be missing: short statements for the user."""
    is_ours: bool = False
    """Whether a program of seatrial wrote it: then no check may be missing, and its arguments state the parameters."""


class StatedExperiment(Frozen):
    """An experiment of a table: its figures are stated, without samples. `environment` is its key or ""; `number` tells
    experiments apart that are equal otherwise (of several machines), from 0."""

    benchmark: str
    parameters: Mapping[str, Value]
    environment: str
    number: int
    outcome: Outcome
    figures: tuple[StatedFigure, ...] = ()


class JobFact(Frozen):
    """A parameter as something beside the results states it: a command, the specification of the job. `text` is its
    line, and `line` the number of that in the file."""

    name: str
    value: Value
    line: int
    text: str


class ImportedRun(Frozen):
    """Which of several runs in one text this is: its number and their count, from 1, its first line, and the label that
    a launcher put before its lines ("": none). `command` started it ("": unknown)."""

    number: int
    count: int
    line: int
    label: str = ""
    command: str = ""

    @property
    def name(self) -> str:
        """What it is called: "run 2 of 5, from line 31"."""
        if self.label:
            return f"the lines labelled {self.label}"
        return f"run {self.number} of {self.count}, from line {self.line}"


class ImportedFile(Frozen):
    """`tool` and `version` as stated in the file ("" if they are not). `failed` is set if the tool reports its
    result as wrong (a residual, a verification): the records are then invalid, with this reason."""

    tool: str
    version: str
    experiments: tuple[ImportedExperiment, ...]
    failed: str = ""
    host: str | None = None
    libraries: tuple[str, ...] = ()
    date_s: float | None = None
    """When it ran, in seconds since the epoch, if the file states it."""
    stated: tuple[StatedExperiment, ...] = ()
    job: tuple[JobFact, ...] = ()
    """What the text says about the job beside the results."""
    command: str = ""
    """The command that started the program, if the text shows it."""
    run: ImportedRun | None = None
    """Which run it is, if the text has several."""
    runs: tuple[ImportedFile, ...] = ()
    """The runs of a text that has several; `experiments` has those of all."""
