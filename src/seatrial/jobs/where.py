"""Where `--system` runs: on the nodes of a batch system, by jobs, or in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from seatrial.jobs.batch.system import BatchSystem
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.model.environment.site import JobOptions, Partition, Place, Site, System
from seatrial.model.frozen import Frozen
from seatrial.places.cluster.home import FOLDER
from seatrial.places.cluster.up import PARTITION, variables
from seatrial.plan.site_file import site_of
from seatrial.store.job_marks import IN_JOB

CLUSTER = "cluster"
"""The name of our own cluster as a system, inside `seatrial cluster exec`."""
_CLUSTER_POLL_S = 1.0
_IN_ALLOCATION = ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_ENCLOSING_ID")


class Where(Frozen):
    """A partition that jobs are submitted to, and its batch system. `text` names it as `--system` does.

    `node` is the only node that its jobs may run on; None: any.
    """

    place: Place
    batch: BatchSystem
    text: str
    node: str | None = None

    @property
    def options(self) -> JobOptions:
        """What its jobs need; the queue is named like the partition unless the site file names another."""
        its = self.place.partition
        own = replace(its.job, queue=its.job.queue or its.name)
        return own if self.node is None else replace(own, extra=(*own.extra, f"#SBATCH --nodelist={self.node}"))

    @property
    def in_site_file(self) -> str | None:
        """The place in the site file; None for our own cluster, which no file describes."""
        return None if self.place.system.name == CLUSTER else self.text


def where_jobs_go(site: Path | None, system: str | None, environment: Mapping[str, str] | None = None) -> Where | None:
    """Where a command with this site file and `--system` submits jobs to; None if it runs in this process: without a
    system that has a batch system, and inside an allocation or job.

    Inside `seatrial cluster exec` the cluster is the default. Raises UsageError as `site_of` and `Site.place`.
    """
    environment = os.environ if environment is None else environment
    if IN_JOB in environment or any(name in environment for name in _IN_ALLOCATION):
        return None
    if system is None or system.partition(":")[0] == CLUSTER:
        own = _own_cluster(environment)
        if own is not None:
            return own if system is None else _where(Site(systems=(own.place.system,)), system)
        if system is None:
            return None
    return _where(site_of(site), system)


def _where(site: Site, text: str) -> Where | None:
    place = site.place(text)
    if place.system.batch is None:
        return None
    return Where(place, SYSTEMS[place.system.batch], f"{place.system.name}:{place.partition.name}")


def _own_cluster(environment: Mapping[str, str]) -> Where | None:
    """The cluster that this process is on a node of; None if it is on none."""
    folder = environment.get(FOLDER)
    if not folder or any(environment.get(name) != value for name, value in variables(Path(folder)).items()):
        return None
    system = System(CLUSTER, (Partition(PARTITION),), "slurm", _CLUSTER_POLL_S)
    return Where(Place(system, system.partitions[0]), SYSTEMS["slurm"], f"{CLUSTER}:{PARTITION}")
