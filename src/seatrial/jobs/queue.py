"""Asks a batch system: submits scripts, states what became of jobs, cancels them. One command for all jobs.

Jobs on nodes that have no file system in common with the login node: their script brings along what they need, and
what they made is fetched from their node when they are over.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import os
import re
import shlex
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import ParseError, SeatrialError, StoreError, UsageError
from seatrial.jobs.batch.system import BatchSystem, JobState, JobStatus
from seatrial.jobs.batch.systems import SYSTEMS
from seatrial.jobs.folder import JobFolder
from seatrial.model.environment.site import JobOptions, Partition, Place, Site, System, job_gres, job_memory
from seatrial.model.frozen import Frozen
from seatrial.model.study.study import SYSTEM, Study
from seatrial.places.cluster.shape import FOLDER
from seatrial.places.cluster.up import PARTITION, variables
from seatrial.plan.site_file import site_of
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import is_study_file, only_study, with_declared
from seatrial.processes.start import OutOfTimeError, ProgramOutput, output_of
from seatrial.processes.working_folder import NEUTRAL, on_path
from seatrial.store.files import make_folder, write_once
from seatrial.store.folder import IN_JOB, JOBS

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
        """The partition in the site file; None for our own cluster, which no file describes."""
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


def systems_of(targets: Sequence[str], settings: Mapping[str, Any], site: Path | None) -> tuple[str, ...]:
    """The systems of the study that these targets name, as its file has them; () if it has no such axis, or they name
    no study. Raises UsageError as `only_study` does."""
    if not any(map(is_study_file, targets)):
        return ()
    with at_site(site, None):
        study = only_study(with_declared(targets), settings)
    return () if study is None else study.systems


def places_for(
    site: Path | None, system: str | None, targets: Sequence[str], settings: Mapping[str, Any] | None = None
) -> tuple[Where, ...]:
    """Where a command submits jobs to: one partition with `--system`; those of the axis `system` of a study that has
    it; () if it submits none. Raises UsageError."""
    if system is None and (systems := systems_of(targets, settings or {}, site)):
        return places_of_systems(site, systems)
    where = where_jobs_go(site, system)
    return () if where is None else (where,)


def places_of_systems(site: Path | None, systems: Sequence[str]) -> tuple[Where, ...]:
    """Where the parts of a study with these systems are submitted to; () if nothing is submitted from here. Raises
    UsageError if that is so for some only, for one partition under two names, and as `where_jobs_go` does."""
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
            f"study {study.name} varies {SYSTEM} ({values}), and which of them this is is unknown",
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


_LIMIT_S = 120.0
_MOST_IDS = 200
"""Jobs in one command."""
_LONGEST_SAID = 600
_UNKNOWN = re.compile(
    r"invalid job id|unknown job|jobid \S{1,80} unknown|job [^\n]{0,80} not found|no (?:matching |such )?jobs?\b"
    r"|job has finished|disabled",
    re.IGNORECASE,
)
"""What batch systems say of jobs that they do not know (any more), and of missing accounting."""


OF_JOBS = "job."
"""How settings begin that say what jobs get."""
_KEYS: Mapping[str, Callable[[Sequence[str]], dict[str, Any]]] = {
    "memory": lambda values: {"memory": job_memory(*values)},
    "gres": lambda values: {"gres": tuple(map(job_gres, values))},
}


def with_job_settings(places: Sequence[Where], settings: Mapping[str, Sequence[str]]) -> tuple[Where, ...]:
    """The partitions with what these settings (names without `OF_JOBS`) say that jobs get, in place of what the site
    file says. Raises UsageError."""
    chosen: dict[str, Any] = {}
    for key, values in settings.items():
        if key not in _KEYS:
            raise UsageError(
                f"{OF_JOBS}{key} cannot be set", f"of jobs, {' and '.join(OF_JOBS + one for one in _KEYS)}"
            )
        if not places:
            raise UsageError(f"{OF_JOBS}{key} is for jobs, and this command submits none", "give --system NAME")
        if key == "memory" and len(values) != 1:
            raise UsageError(f"{OF_JOBS}{key} has {len(values)} values", "give one, such as 180GiB")
        chosen |= _KEYS[key](values)
    found = []
    for where in places:
        partition = where.place.partition
        own = replace(partition, job=replace(partition.job, **chosen))
        found.append(replace(where, place=replace(where.place, partition=own)))
    return tuple(found)


class QueueError(SeatrialError):
    """The batch system refused a request, or does not answer."""


class Queue(Frozen):
    """A batch system, asked with these environment variables."""

    system: BatchSystem
    variables: Mapping[str, str]

    def submit(self, script: str) -> str:
        """Submit a script; the id of the job. Raises QueueError with what the batch system said."""
        command = self.system.submits
        done = self._run(command, script, runs_in=None)  # the job inherits the folder and the variables
        found = self.system.submitted(done.stdout.decode("utf-8", "replace"))
        if done.returncode != 0 or found is None:
            raise QueueError(f"{command[0]} did not accept the job: {said(done)}")
        return found

    def statuses(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        """What the batch system says of these jobs; one that it does not know is `UNKNOWN`. Raises QueueError without
        an answer."""
        found: dict[str, JobStatus] = {}
        for first in range(0, len(ids), _MOST_IDS):
            found |= self._statuses(ids[first : first + _MOST_IDS])
        return found

    def _statuses(self, ids: Sequence[str]) -> dict[str, JobStatus]:
        found: dict[str, JobStatus] = {}
        answered = False
        problem = ""
        for command in self.system.queries(ids):
            if all(job in found and found[job].state is not JobState.UNKNOWN for job in ids):
                break
            try:
                done = self._run(command)
                statuses = self.system.statuses(done.stdout.decode("utf-8", "replace"))
            except (QueueError, ParseError) as error:
                problem = problem or error.message
                continue
            if done.returncode == 0 or _UNKNOWN.search(said(done)):
                answered = True
            else:
                problem = problem or f"{command[0]}: {said(done)}"
            for status in statuses:
                if status.id in ids and (status.id not in found or found[status.id].state is JobState.UNKNOWN):
                    found[status.id] = status
        if not answered and not found:
            raise QueueError(f"the batch system does not answer: {problem}")
        return {job: found.get(job) or JobStatus(job, JobState.UNKNOWN) for job in ids}

    def cancel(self, ids: Sequence[str]) -> str:
        """Cancel jobs; what the batch system said, "" if it accepted. Raises QueueError if it cannot be asked."""
        if not ids:
            return ""
        done = self._run([*self.system.cancels, *ids])
        return "" if done.returncode == 0 else said(done)

    def ask(self, command: Sequence[str]) -> str:
        """What a command of the batch system prints. Raises QueueError if it fails."""
        done = self._run(command)
        if done.returncode != 0:
            raise QueueError(f"{command[0]} failed: {said(done)}")
        return done.stdout.decode("utf-8", "replace")

    def _run(self, command: Sequence[str], text: str = "", runs_in: Path | None = NEUTRAL) -> ProgramOutput:
        path = on_path(command[0], self.variables.get("PATH", os.defpath))
        if path is None:
            raise QueueError(
                f"{command[0]} of {self.system.name} is not on PATH", "run this on a login node, or load its module"
            )
        try:
            variables = {**self.variables, **self.system.variables}
            return output_of([path, *command[1:]], variables, _LIMIT_S, text.encode(), runs_in=runs_in)
        except OutOfTimeError:
            raise QueueError(f"{command[0]} did not end within {_LIMIT_S:g} s") from None
        except OSError as error:
            raise QueueError(f"{command[0]} cannot be started: {error.strerror}") from error


def said(done: ProgramOutput) -> str:
    """What a command printed about its failure, in one line."""
    text = (done.stderr.strip() or done.stdout.strip()).decode("utf-8", "replace")
    return " ".join(text.split())[:_LONGEST_SAID] or f"exit status {done.returncode}"


_END = "END_OF_PROGRAMS"
_LINE = 4096
_MOST_B = 1 << 30
_RETURNED = re.compile(
    r"started|ended|output|facts\.tar|variables|repeats/repeats|repeats/\d{1,6}-\d{1,6}/[A-Za-z0-9_][\w.-]{0,99}",
    re.ASCII,
)
"""What a job makes (jobs/folder.py, jobs/node_jobs.py)."""
_FETCH = """cd -- {folder} 2>/dev/null || {{ echo "it has no folder {name}" >&2; exit 1; }}
set --
for name in started ended output facts.tar variables repeats; do
    [ ! -e "$name" ] || set -- "$@" "$name"
done
tar -cf - -- "$@" | gzip | base64"""


def folder_on_node(where: Where, job: str) -> Path:
    """The folder of a job on its node."""
    return where.place.partition.scratch / f"seatrial-{job}"


def bringing(folder: Path, texts: Mapping[str, str], programs: Mapping[str, bytes]) -> tuple[str, ...]:
    """Lines of a batch script that make `folder` on the node, with these texts, and these programs below `programs`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, data, mode in (
            *((name, text.encode(), 0o600) for name, text in texts.items()),
            *((f"programs/{name}", data, 0o700) for name, data in programs.items()),
        ):
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(data), mode
            tar.addfile(member, io.BytesIO(data))
    coded = base64.b64encode(gzip.compress(packed.getvalue(), mtime=0)).decode()
    at = shlex.quote(str(folder))
    return (
        f"mkdir -m 700 -- {at} 2>/dev/null || [ -O {at} ]",
        f"base64 -d <<'{_END}' | gzip -dc | tar -xf - -C {at}",
        *(coded[first : first + _LINE] for first in range(0, len(coded), _LINE)),
        _END,
        f"exec >>{at}/output 2>&1",
    )


class Fetching(Frozen):
    """Fetches from nodes what jobs made there."""

    where: Where
    queue: Queue

    def fetch(self, job: JobFolder, nodes: Sequence[str]) -> None:
        """Bring the files of a job that is over from its first node. Raises QueueError if the node cannot be asked now,
        StoreError if what it sends is damaged or cannot be written."""
        if not nodes:
            raise StoreError("the batch system does not say which node it ran on")
        folder = folder_on_node(self.where, job.id)
        script = _FETCH.format(folder=shlex.quote(str(folder)), name=shlex.quote(str(folder)))
        text = self._ask(nodes[0], script)
        for name, data in sorted(_unpacked(text), key=lambda found: (found[0] == "ended", found[0])):
            *above, last = name.split("/")
            try:
                make_folder(job.results, JOBS, job.id, *above)
                write_once(job.results, JOBS, job.id, *above, last, data=data)
            except OSError as error:
                raise StoreError(f"{job.path / name} cannot be written: {error.strerror or error}") from error

    def remove(self, job: JobFolder, nodes: Sequence[str]) -> None:
        """Remove the folder of a job from its node. Raises QueueError."""
        self._ask(nodes[0], f"rm -rf -- {shlex.quote(str(folder_on_node(self.where, job.id)))}")

    def _ask(self, node: str, script: str) -> str:
        return self.queue.ask(self.where.batch.on_node(node, script, self.where.options))


def _unpacked(text: str) -> Iterator[tuple[str, bytes]]:
    """The files of an archive that a job makes; others, links and folders are left out."""
    try:
        with (
            gzip.open(io.BytesIO(base64.b64decode("".join(text.split()), validate=True))) as packed,
            tarfile.open(fileobj=io.BytesIO(packed.read(_MOST_B)), mode="r:") as tar,
        ):
            for member in tar:
                if member.isreg() and _RETURNED.fullmatch(member.name) and (file := tar.extractfile(member)):
                    yield member.name, file.read()
    except (binascii.Error, tarfile.TarError, OSError, EOFError, zlib.error, ValueError) as error:
        raise StoreError(f"what the node sent is damaged: {error}") from error
