"""The batch systems by name. To add one: its file in this package, its line here, and a test on what it prints."""

from __future__ import annotations

from collections.abc import Mapping

from seatrial.jobs.batch.flux import Flux
from seatrial.jobs.batch.lsf import Lsf
from seatrial.jobs.batch.pbs import Pbs
from seatrial.jobs.batch.slurm import Slurm
from seatrial.jobs.batch.system import BatchSystem

SYSTEMS: Mapping[str, BatchSystem] = {system.name: system for system in (Slurm(), Pbs(), Lsf(), Flux())}
"""Name -> batch system."""
