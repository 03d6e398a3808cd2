"""A job with everything that a site may need, and recorded outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import pytest
from conftest import SHARED_DATA

from seatrial.jobs.batch.system import JobRequest, JobStatus
from seatrial.model.environment.site import JobOptions

SAMPLES = SHARED_DATA / "schedulers"

REQUEST = JobRequest(
    name="sweep",
    argv=("seatrial", "run", "a b", "$HOME; rm -rf x"),
    folder=Path("/scratch"),
    output=Path("/scratch/out.txt"),
    nodes=2,
    time_s=3660.2,
    tasks_per_node=4,
    cpus_per_task=3,
    options=JobOptions(
        queue="batch",
        account="proj1",
        constraint="gpu&a100",
        gpus_per_node=8,
        modules=("openmpi/5.0",),
        extra=("#SBATCH --mail-type=NONE",),
    ),
)


def sample(name: str) -> str:
    """A recorded output; the test is skipped where it is missing."""
    if not (SAMPLES / name).is_file():
        pytest.skip(f"{SAMPLES / name} is not here")
    return (SAMPLES / name).read_text(errors="replace")


def states_of(statuses: Iterable[JobStatus]) -> dict[str, int]:
    """State -> number of jobs."""
    return dict(Counter(status.state.value for status in statuses))
