"""What a reader finds in the result file of another tool."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from seatrial.model.parameter import Value
from seatrial.model.sample import Sample


@dataclass(frozen=True, slots=True)
class ImportedExperiment:
    """One experiment of the file: all its samples make one repeat.

    `benchmark` is ours where the measure is the same, else `imported.<kind>`. `parameters` are those that the file
    tells and the benchmark declares; the rest get their defaults. `notes` keep what else the file tells (for records).
    """

    benchmark: str
    samples: tuple[Sample, ...]
    parameters: Mapping[str, Value] = field(default_factory=dict)
    notes: Mapping[str, object] = field(default_factory=dict)
    checks: Mapping[str, float] = field(default_factory=dict)
    """Values of the benchmark's own checks, as far as the file tells them."""
    failed: str = ""
    """Why this experiment alone is wrong, as the tool itself says; "" where it is not."""
    is_ours: bool = False
    """Whether a program of ours made it: then every check must be there, and its arguments tell the parameters."""


@dataclass(frozen=True, slots=True)
class ImportedFile:
    """`tool` and `version` as the file tells them ("" where it does not). `failed` is set where the tool itself says
    that its result is wrong (a residual, a verification): the records are then invalid, with this reason."""

    tool: str
    version: str
    experiments: tuple[ImportedExperiment, ...]
    failed: str = ""
    host: str | None = None
    libraries: tuple[str, ...] = ()
    date_s: float | None = None
    """When it ran, in seconds since the epoch, where the file tells it."""
