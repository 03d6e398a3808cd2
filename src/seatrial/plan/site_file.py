"""A site file: its keys, and what they become (`model.environment.site.Site`)."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from seatrial.errors import UnknownNameError
from seatrial.model.environment.container import (
    ACCEPTED_DEVICE,
    ACCEPTED_MOUNT,
    NO_CONTAINER,
    NVIDIA,
    PLACEMENTS,
    RUNTIMES,
    devices_of,
    mounts_of,
)
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.environment.site import (
    BATCH_SYSTEMS,
    LOAD,
    POLL_S,
    SCRATCH,
    JobOptions,
    Partition,
    PowerAccess,
    Site,
    SiteContainer,
    SiteEnvironment,
    SiteGuest,
    System,
    job_gres,
    job_memory,
)
from seatrial.model.machine.guest import NO_GUEST, RUNNING
from seatrial.plan.environment_axes import (
    AXES,
    COMPILER,
    CONTAINER,
    CONTAINER_MPI,
    CONTAINER_RUNTIME,
    FLAGS,
    environment_value,
)
from seatrial.plan.file_model import (
    Faults,
    Kind,
    Model,
    Spot,
    listed,
    member,
    model,
    named,
    one_of,
    optional,
    required,
    scalar,
    text,
    whole,
)
from seatrial.plan.file_values import PATH, path_of, seconds
from seatrial.plan.files import MAX_BYTES, FileKind, read_file, read_yaml
from seatrial.plan.site_power import PartitionPowerModel, PowerModel, TariffModel
from seatrial.plan.variables import variables

KIND = FileKind("site file", "give the site's YAML file", needs=None)
MOST_HOSTS = 100_000
NO_PYTHON = "none"
"""The value of `python:` for nodes without Python."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_MODULE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+/-]{0,199}")
_LAUNCHER = re.compile(r"(?:~/|/)?[A-Za-z0-9_.+@-]+(?:/[A-Za-z0-9_.+@-]+)*")
_HOST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,253}")
_SSH = r"(?:[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}@)?[A-Za-z0-9][A-Za-z0-9_.:-]{0,253}"
_IN_NO_SCRIPT = re.compile(r"[\s'\"`\\$]")
_SHORTEST_POLL_S = 1.0
_SHORTEST_JOB_S = 60.0
_FAMILIES = tuple(family.value for family in MpiFamily)
_Read = TypeVar("_Read")


def _python(spot: Spot, value: str) -> Path | str:
    return NO_PYTHON if value == NO_PYTHON else path_of(spot, value)


def _launcher(spot: Spot, value: str) -> str:
    is_path = "/" in value
    if not _LAUNCHER.fullmatch(value) or (is_path and not value.startswith(("/", "~/"))):
        raise spot.cannot_be()
    return str(path_of(spot, value)) if is_path else value


def _is_script_word(value: str) -> bool:
    """Whether a value cannot change the meaning of a script's line."""
    return value.isprintable() and not value.startswith("-") and not _IN_NO_SCRIPT.search(value)


def _program(spot: Spot, value: str) -> Path | tuple[str, ...]:
    """The path of a program, or the modules that it is in."""
    if not value.startswith(f"{LOAD} "):
        return path_of(spot, value)
    names = tuple(value.removeprefix(LOAD).split())
    if not names or not all(map(_MODULE.fullmatch, names)):
        raise spot.cannot_be()
    return names


def _of_axis(axis: str, *words: str) -> Kind[str]:
    """A value that a study axis accepts as well, checked by the same rules."""

    def checked(spot: Spot, _: str) -> str:
        with spot.placed():
            return str(environment_value(axis, spot.node))

    return (text(enum=list(words)) if words else text()).then(checked)


def _each(read: Callable[[Iterable[str]], tuple[_Read, ...]], accepts: str) -> Kind[tuple[_Read, ...]]:
    """A list of texts, of which `read` makes what they state."""

    def alone(value: str) -> str:
        read([value])
        return value

    item = text().parsed(alone).accepting(accepts)
    return listed(item, most=100, unique=True).parsed(read)


def _check_name(spot: Spot, name: str) -> None:
    if not _NAME.fullmatch(name):
        todo = "letters, digits, -, _ and . (at most 100), the first a letter or digit"
        raise spot.refuse(f"{name[:60]!r} is not a valid name", todo, spot.node.key_lines[name])


def _by_name(value: Kind[_Read], least: int = 0) -> Kind[dict[str, _Read]]:
    names: Mapping[str, Any] = {"pattern": f"^{_NAME.pattern}$"}
    return named(value, _check_name, least, 1000, propertyNames=names)


_WORD = text().only(_is_script_word, todo="it is written into job scripts: use a word without spaces and quotes")
_HOST_NAME = text().only(_HOST.fullmatch, "not a valid host name", "write it as n001")
_SCRIPT_LINE = text().only(
    str.isprintable, "an extra line of the job script contains a line break", "make it several lines"
)


class EnvironmentModel(Model):
    """What programs are built and run in."""

    mpi = optional("the prefix of an MPI library, or the path of its compiler wrapper: begins with / or ~/", PATH)
    family = optional(
        f"{', '.join(_FAMILIES[:-1])} or {_FAMILIES[-1]}: needed if it is not recognized", member(MpiFamily)
    )
    launcher = optional(
        "the MPI launcher: a command on PATH, such as srun, or a path that begins with / or ~/", text().then(_launcher)
    )
    compiler = optional(AXES[COMPILER].accepts, _of_axis(COMPILER))
    flags = optional("flags in one string, such as '-O2 -march=x86-64-v3'", _of_axis(FLAGS), "")
    variables = optional(
        "a mapping of environment variables to values, such as {UCX_TLS: rc,sm,self}", variables("site file"), ()
    )

    def named(self, name: str) -> SiteEnvironment:
        """The environment under its name."""
        flags = tuple(self.flags.split())
        return SiteEnvironment(name, self.mpi, self.family, self.launcher, self.compiler, flags, self.variables)


class ContainerModel(Model):
    """What programs run in."""

    image = required(
        "the path of a folder, of a squashfs or SIF file or of an OCI archive, or the name of an image that the "
        "runtime has stored",
        _of_axis(CONTAINER),
    )
    runtime = optional(f"one of {', '.join(RUNTIMES)}", _of_axis(CONTAINER_RUNTIME, *RUNTIMES))
    mpi = optional(
        f"where the launcher of ranks is: one of {', '.join(PLACEMENTS)}", _of_axis(CONTAINER_MPI, *PLACEMENTS)
    )
    mounts = optional("a list of mounts, such as [/data, '/opt/site:/opt:ro']", _each(mounts_of, ACCEPTED_MOUNT), ())
    devices = optional(f"a list of devices, such as [{NVIDIA}]", _each(devices_of, ACCEPTED_DEVICE), ())
    variables = optional(
        "a mapping of environment variables to values, which are set inside", variables("site file"), ()
    )

    def named(self, name: str) -> SiteContainer:
        """The container under its name."""
        if name == NO_CONTAINER:
            raise self.refuse((), f"a container cannot be called {name!r}", "it means no container: rename it")
        if self.image == NO_CONTAINER:
            raise self.at("image").cannot_be()
        return SiteContainer(name, self.image, self.runtime, self.mpi, self.mounts, self.devices, self.variables)


class PartitionModel(Model):
    """A set of identical nodes."""

    environments = optional(
        "a list of environments of this file, the preferred one first",
        listed(text().accepting("the name of an environment of this file"), 1, unique=True),
        (),
    )
    launcher = optional("mpirun or srun", one_of("mpirun", "srun", suggests=False))
    hosts = optional(
        "a list of host names",
        listed(
            text()
            .only(_HOST.fullmatch, "not a valid host name", "write it as n001")
            .accepting("the name of a host, such as n001"),
            1,
            MOST_HOSTS,
            unique=True,
        ),
        (),
    )
    nodes = optional("the number of nodes, an integer >= 1", whole(1))
    queue = optional("the batch system's name of the partition or queue (default: the partition's name)", _WORD)
    account = optional("the account that jobs are charged to", _WORD)
    qos = optional("the quality of service of jobs", _WORD)
    constraint = optional("the features that nodes must have, as the batch system writes them", _WORD)
    reservation = optional("the name of a reservation", _WORD)
    cpus_per_node = optional("the number of CPUs that jobs request on each node, an integer >= 1", whole(1))
    gpus_per_node = optional("the number of GPUs that jobs request on each node, an integer >= 1", whole(1))
    exclusive = optional("true (the default): jobs have their nodes to themselves; or false", scalar(bool), True)
    modules = optional(
        "a list of modules that jobs load",
        listed(_WORD.accepting("the name of a module, such as openmpi/5.0"), most=100),
        (),
    )
    extra = optional(
        "a list of lines that job scripts contain after their first directives",
        listed(_SCRIPT_LINE.accepting("a line of a job script, such as '#SBATCH --mail-type=NONE'"), most=100),
        (),
    )
    memory = optional("the memory that jobs get on each node, such as 180GiB, or all", text(most=40).parsed(job_memory))
    gres = optional(
        "a list of other resources that jobs get on each node",
        listed(text(most=300).parsed(job_gres).accepting("NAME:COUNT or NAME:TYPE:COUNT, such as nvme:1"), most=20),
        (),
    )
    time_limit = optional("the longest wall time of a job, such as 2h (default: no limit)", seconds(_SHORTEST_JOB_S))
    shared = optional(
        "false if the nodes have no file system in common with the login node; needs python: none", scalar(bool), True
    )
    scratch = optional(
        f"the folder of a node that jobs work in if nothing is shared (default: {SCRATCH}): begins with /",
        text(pattern="/[A-Za-z0-9_./+-]*").parsed(Path),
        SCRATCH,
    )
    power = optional(
        "how the power of its nodes is read: a mapping with redfish, ipmi, nodes", model(PartitionPowerModel)
    )
    tariff = optional("what its nodes cost: a mapping with currency, node_hour, kWh", model(TariffModel))
    python = optional(
        "the Python that runs seatrial on the nodes: begins with / or ~/; or none, if they have no Python: only "
        "native programs run there",
        text(pattern=f"(?:[~/].*|{NO_PYTHON})").then(_python),
    )

    def named(self, name: str, known: Iterable[str]) -> Partition:
        """The partition under its name; `known` are the environments of the file."""
        known, faults = tuple(known), Faults()
        for position, environment in enumerate(self.environments):
            if environment not in known:
                unknown = UnknownNameError("environment", environment[:100], known)
                faults.found.append(self.refuse(("environments", position), unknown.message, unknown.todo))
        if self.nodes is not None and self.hosts and self.nodes != len(self.hosts):
            seen = f"{self.nodes} nodes, but {len(self.hosts)} hosts are named"
            faults.found.append(self.refuse(("nodes",), seen, "remove one of the two"))
        has_python = self.python != NO_PYTHON
        if has_python and not self.shared:
            why, todo = (
                "Python on the nodes needs the results folder on a file system that they share",
                "set python: none",
            )
            faults.found.append(self.refuse(("shared",), why, f"{todo}, so that jobs bring their programs with them"))
        faults.raise_all()
        return Partition(
            name,
            self.environments,
            self.launcher,
            self.hosts,
            len(self.hosts) if self.hosts else self.nodes,
            JobOptions(**{key: getattr(self, key) for key in JobOptions.__struct_fields__}),
            self.time_limit,
            self.python if isinstance(self.python, Path) else None,
            self.cpus_per_node,
            has_python,
            self.shared,
            self.scratch,
            PowerAccess() if self.power is None else self.power.access(),
            () if self.power is None else tuple(self.power.of_nodes().items()),
            None if self.tariff is None else self.tariff.tariff(),
        )


class SystemModel(Model):
    """One machine of the site."""

    partitions = required(
        "a mapping of names to partitions; the first is the default", _by_name(model(PartitionModel).or_null(), 1)
    )
    batch = optional(
        f"the batch system that jobs are submitted to: {', '.join(BATCH_SYSTEMS)}",
        one_of(*BATCH_SYSTEMS, suggests=False),
    )
    poll = optional(
        "how often the batch system is asked at most, such as 60s (the default)", seconds(_SHORTEST_POLL_S), POLL_S
    )

    def named(self, name: str, known: Iterable[str]) -> System:
        """The system under its name; `known` are the environments of the file."""
        faults = Faults()
        partitions = faults.each(
            partial(Partition, partition) if inner is None else partial(inner.named, partition, known)
            for partition, inner in self.partitions.items()
        )
        faults.raise_all()
        return System(name, tuple(partitions), self.batch, self.poll)


class GuestModel(Model):
    """A virtual machine that programs can run in."""

    accepts = "a mapping with ssh, or with topology and any of kernel"

    ssh = optional("the host, as ssh takes it: a name of your ~/.ssh/config, or USER@HOST", text(pattern=_SSH))
    topology = optional("the file that `seatrial vm up --topology` takes: begins with / or ~/", PATH)
    kernel = optional("the kernel of the guest: begins with / or ~/ (default: as `seatrial vm up` finds one)", PATH)

    def named(self, name: str) -> SiteGuest:
        """The guest under its name."""
        if bool(self.ssh) == bool(self.topology):
            raise self.refuse((), "it needs ssh or topology, and not both", f"it takes {self.spot.accepts}")
        return SiteGuest(name, self.ssh, self.topology, self.kernel)


class SiteModel(Model):
    """The environments of a site, its containers, guests and systems, and what it adds to PATH."""

    environments = optional(
        "a mapping of names to environments, such as `production: {mpi: /opt/openmpi/4.1.6}`",
        _by_name(model(EnvironmentModel).or_null()),
    )
    containers = optional(
        "a mapping of names to containers, such as `app: {image: /images/app.sqfs}`", _by_name(model(ContainerModel))
    )
    systems = optional(
        "a mapping of names to systems, such as `tera: {partitions: {compute: {nodes: 64}}}`",
        _by_name(model(SystemModel)),
    )
    guests = optional(
        "a mapping of names to virtual machines, such as `small: {ssh: root@small}`", _by_name(model(GuestModel))
    )
    benchmarks = optional(
        "a list of folders with declaration files of benchmarks",
        listed(PATH.accepting("the path of a folder: begins with / or ~/"), most=100),
        (),
    )
    programs = optional(
        "a mapping of commands to the programs that are run for them, such as {namd3: /opt/namd/3.0/namd3}",
        _by_name(
            text()
            .then(_program)
            .accepting("the path of the program (begins with / or ~/), or what loads it: module load NAME/VERSION")
        ),
    )

    power = optional(
        "how the power of a machine without a system is read: a mapping with redfish, ipmi", model(PowerModel)
    )
    tariff = optional("what nodes cost, unless a partition states it: currency, node_hour, kWh", model(TariffModel))

    def site(self, file: str) -> Site:
        """The site of the file of that name."""
        faults = Faults()
        for name in self.guests or ():
            if name in (NO_GUEST, RUNNING):
                seen = f"{name!r} means something else in environment.vm"
                faults.found.append(self.refuse(("guests",), seen, "choose another name"))
        systems = (self.systems or {}).items()
        found = Site(
            tuple(
                SiteEnvironment(name) if environment is None else environment.named(name)
                for name, environment in (self.environments or {}).items()
            ),
            tuple(faults.each(partial(system.named, name, self.environments or ()) for name, system in systems)),
            file,
            self.benchmarks,
            tuple(faults.each(partial(guest.named, name) for name, guest in (self.guests or {}).items())),
            {name: program for name, program in (self.programs or {}).items() if isinstance(program, Path)},
            tuple(container.named(name) for name, container in (self.containers or {}).items()),
            {name: program for name, program in (self.programs or {}).items() if not isinstance(program, Path)},
            PowerAccess() if self.power is None else self.power.access(),
            None if self.tariff is None else self.tariff.tariff(),
        )
        faults.raise_all()
        return found


def site_of(path: Path | None) -> Site:
    """The site of a file; None: `~/.config/seatrial/site.yaml` (or below $XDG_CONFIG_HOME), an empty site if
    there is no such file.

    Raises UsageError if a named file cannot be read, and as `read_site` does.
    """
    if path is None:
        try:
            path = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "seatrial" / "site.yaml"
        except RuntimeError:  # no home directory
            return Site()
        if not path.exists():
            return Site()
    return read_site(read_file(path, MAX_BYTES, "name another with --site FILE", "the site file "), str(path))


def read_site(data: bytes, file: str) -> Site:
    """The site that a file holds; `file` is its name for messages.

    Raises UsageError if the text is not valid YAML 1.2, does not match the published schema, or contains unknown names.
    A file with nothing but comments is an empty site.
    """
    return SiteModel.of(read_yaml(data, file, KIND)).site(file)
