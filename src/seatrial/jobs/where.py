"""Where `--system` runs: on the nodes of a batch system, by jobs, or in this process."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.jobs.batch.system import BatchSystem
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.model.environment.site import JobOptions, Partition, Place, Site, System
from seatrial.model.frozen import Frozen
from seatrial.model.study.study import SYSTEM, Study
from seatrial.places.cluster.home import FOLDER
from seatrial.places.cluster.up import PARTITION, variables
from seatrial.plan.site_file import site_of
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import is_study_file, only_study, with_declared
from seatrial.store.folder import IN_JOB

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


def systems_of(targets: Sequence[str], settings: Collection[str], site: Path | None) -> tuple[str, ...]:
    """The systems of the study that these targets name, as its file has them; () if it has no such axis, or they name
    no study. Raises UsageError as `only_study` does."""
    if not any(map(is_study_file, targets)):
        return ()
    with at_site(site, None):
        study = only_study(with_declared(targets), settings)
    return () if study is None else study.systems


def places_for(
    site: Path | None, system: str | None, targets: Sequence[str], settings: Collection[str] = ()
) -> tuple[Where, ...]:
    """Where a command submits jobs to: one place with `--system`; those of the axis `system` of a study that has it; ()
    if it submits none. Raises UsageError."""
    if system is None and (systems := systems_of(targets, settings, site)):
        return places_of_systems(site, systems)
    where = where_jobs_go(site, system)
    return () if where is None else (where,)


def places_of_systems(site: Path | None, systems: Sequence[str]) -> tuple[Where, ...]:
    """Where the parts of a study with these systems are submitted to; () if nothing is submitted from here. Raises
    UsageError if that is so for some only, for one place under two names, and as `where_jobs_go` does."""
    found = [(system, where_jobs_go(site, system)) for system in systems]
    places = tuple(where for _, where in found if where is not None)
    without = [system for system, where in found if where is None]
    if places and without:
        raise UsageError(
            f"{', '.join(without)}: no batch system is known, so the part of the study for it cannot be submitted",
            "add `batch: slurm` (or pbs, lsf, flux) to the system in the site file; or measure each part where its "
            "system is, into one results folder: seatrial run STUDY --system NAME",
        )
    texts = [where.text for where in places]
    if twice := next((text for text in texts if texts.count(text) > 1), None):
        raise UsageError(f"two values of the axis system are {twice}", "name each partition once")
    return places


def part_here(study: Study, site: Path | None, system: str | None) -> Study:
    """What is measured of a study on this system; all of it if it has no axis `system`. Raises UsageError if it has
    that axis, and this system is none of its values."""
    if not study.systems:
        return study
    values = ", ".join(study.systems)
    if system is None:
        raise UsageError(
            f"study {study.name} varies {SYSTEM} ({values}), and which of them this is is not known",
            "name it: --system NAME[:PARTITION]; from a login node, where each system has a batch system in the site "
            "file, the study without --system is submitted to all",
        )
    known = site_of(site)
    here = known.place(system)
    value = next((value for value in study.systems if known.place(value) == here), None)
    if value is None:
        raise UsageError(f"study {study.name} is not for system {system}: it varies {SYSTEM} over {values}",
                         "give one of these, or add it to the axis")  # fmt: skip
    return study.part_at(value)
