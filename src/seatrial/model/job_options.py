"""What a site needs in every job that is submitted to its batch system."""

from __future__ import annotations

from seatrial.model.frozen import Frozen

BATCH_SYSTEMS = ("slurm", "pbs", "lsf", "flux")
"""The names that a site file accepts; `seatrial.jobs.batch.systems` has their classes."""


class JobOptions(Frozen):
    """What a site needs in every job, from its site file. `extra` are lines of the script as they are."""

    queue: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    gpus_per_node: int | None = None
    exclusive: bool = True
    modules: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
