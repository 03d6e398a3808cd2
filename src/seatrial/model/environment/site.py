"""The contents of a site file: environments, systems and their partitions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.environment.container import ContainerDevice, ContainerMount
from seatrial.model.environment.mpi import MpiFamily
from seatrial.model.frozen import Frozen
from seatrial.model.units import parse_bytes

BATCH_SYSTEMS = ("slurm", "pbs", "lsf", "flux")
"""The names that a site file accepts; `seatrial.jobs.batch.systems` has their classes."""


class JobOptions(Frozen):
    """What a site needs in every job, from its site file. `extra` are lines of the script as they are. On each node
    jobs get `memory` bytes (`ALL_MEMORY`: all; None: what the batch system gives), and of `gres`, NAME[:TYPE][:COUNT],
    each."""

    queue: str | None = None
    account: str | None = None
    qos: str | None = None
    constraint: str | None = None
    reservation: str | None = None
    gpus_per_node: int | None = None
    exclusive: bool = True
    modules: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    memory: int | None = None
    gres: tuple[str, ...] = ()


ALL_MEMORY = 0
_GRES = re.compile(r"[A-Za-z][\w.-]{0,99}(?::[A-Za-z][\w.-]{0,99})?(?::[1-9]\d{0,5})?", re.ASCII)


def job_memory(text: str) -> int:
    """The memory that a job gets on each node, in bytes. Raises UsageError."""
    if text == "all":
        return ALL_MEMORY
    found = parse_bytes(text)
    if found < 1 << 20:
        raise UsageError(f"{text!r} is less than 1MiB", "write the memory of a node, such as 64GiB, or all")
    return found


def job_gres(text: str) -> str:
    """A generic resource of each node. Raises UsageError."""
    if _GRES.fullmatch(text) is None:
        raise UsageError(f"{text!r} is not a resource", "write NAME:COUNT or NAME:TYPE:COUNT, such as nvme:1")
    return text


SCRATCH = Path("/") / "tmp"
"""Where jobs work on a node that shares no file system."""
LOAD = "module load"
"""How the site file states that a program is in environment modules, whose names follow."""
POLL_S = 60.0
"""How often a batch system is asked at most, in seconds, unless the site file says otherwise."""


class SiteEnvironment(Frozen):
    """What programs are built and run in, under a name that the site chooses; None and () change nothing.

    `mpi` is the prefix of a library or its compiler wrapper, `launcher` a program by name or path. `family` is for
    libraries whose family is not recognized. `flags` follow those of seatrial on the compiler's command line;
    `variables` are set when programs run.
    """

    name: str
    mpi: Path | None = None
    family: MpiFamily | None = None
    launcher: str | None = None
    compiler: str | None = None
    flags: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


class SiteContainer(Frozen):
    """A container that programs run in, under a name that the site chooses: the path or name of an image, the runtime
    that starts it (None: the first one that can), where the launcher of ranks is (None: where ranks can meet), and what
    it gets besides the image. `variables` are set inside."""

    name: str
    image: str
    runtime: str | None = None
    mpi: str | None = None
    mounts: tuple[ContainerMount, ...] = ()
    devices: tuple[ContainerDevice, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()


class RedfishAccess(Frozen):
    """A Redfish service. `password_file` is a file that only its owner can read, `password_command` a program that
    prints the password; without either, it is in SEATRIAL_REDFISH_PASSWORD. `ca_file`: the certificates that are
    trusted besides the system's. `chassis`: the one that is the node, where the service has several. `refresh_s`: how
    often its values change (None: found by looking)."""

    url: str
    user: str = ""
    password_file: Path | None = None
    password_command: tuple[str, ...] = ()
    ca_file: Path | None = None
    chassis: str | None = None
    refresh_s: float | None = None


class PduAccess(RedfishAccess):
    """A power distribution unit with a Redfish service, with its password as `RedfishAccess` (SEATRIAL_PDU_PASSWORD).
    `outlets` feed the node, each by its Id or as PDU/OUTLET; the power of several is added."""

    outlets: tuple[str, ...] = ()


class IpmiAccess(Frozen):
    """A BMC that answers IPMI over the network, with its password as `RedfishAccess` (SEATRIAL_IPMI_PASSWORD)."""

    host: str
    port: int = 623
    user: str = ""
    password_file: Path | None = None
    password_command: tuple[str, ...] = ()
    refresh_s: float | None = None


class PowerAccess(Frozen):
    """How the power of a node is read, besides what the node itself shows."""

    redfish: RedfishAccess | None = None
    ipmi: IpmiAccess | None = None
    pdu: PduAccess | None = None

    def of(self, node: str) -> PowerAccess:
        """That of one node: `{node}` in an address is its name."""
        redfish, ipmi, pdu = self.redfish, self.ipmi, self.pdu
        return PowerAccess(
            None if redfish is None else replace(redfish, url=redfish.url.replace("{node}", node)),
            None if ipmi is None else replace(ipmi, host=ipmi.host.replace("{node}", node)),
            None if pdu is None else replace(pdu, url=pdu.url.replace("{node}", node)),
        )


class Tariff(Frozen):
    """What the site charges, in its currency: for an hour of a node, and for a kWh; None: nothing."""

    currency: str
    node_hour: float | None = None
    kwh: float | None = None


class Partition(Frozen):
    """A set of identical nodes. `environments` are names of environments of the site, the preferred one first; () means
    all.

    `launcher` starts ranks on it ("mpirun" or "srun"; None: the launcher of the MPI library). `hosts` are its nodes by
    name, `nodes` their number; () and None if the file does not state them.

    `job` is what its jobs need, `longest_s` their longest wall time in seconds (None: no limit), `python` the
    interpreter that runs seatrial on its nodes (None: the one that submits); `has_python` is False if there is none
    there, and only native programs run. `cpus_per_node` is what a job requests on
    each of its nodes (None: all, if the batch system can say so). `is_shared` is False if its nodes have no file system
    in common with the login node; jobs then work in `scratch`, a folder of the node.
    """

    name: str
    environments: tuple[str, ...] = ()
    launcher: str | None = None
    hosts: tuple[str, ...] = ()
    nodes: int | None = None
    job: JobOptions = field(default_factory=JobOptions)
    longest_s: float | None = None
    python: Path | None = None
    cpus_per_node: int | None = None
    has_python: bool = True
    is_shared: bool = True
    scratch: Path = SCRATCH
    power: PowerAccess = PowerAccess()
    power_of: tuple[tuple[str, PowerAccess], ...] = ()
    """Of single nodes, in place of `power`."""
    tariff: Tariff | None = None


class System(Frozen):
    """One machine of the site, with at least one partition.

    `batch` is the name of its batch system (None: nothing is submitted to it), which is asked at most every `poll_s`.
    """

    name: str
    partitions: tuple[Partition, ...]
    batch: str | None = None
    poll_s: float = POLL_S


class Place(Frozen):
    """Where to run: a partition of a system."""

    system: System
    partition: Partition


class SiteGuest(Frozen):
    """A virtual machine that programs can run in: reached by ssh as `ssh`, or started here from the file `topology`
    with the kernel in `kernel` (None: as `seatrial vm up` finds one)."""

    name: str
    ssh: str | None = None
    topology: Path | None = None
    kernel: Path | None = None


class Site(Frozen):
    """A site file. `benchmarks` are folders with declaration files; `programs` are the files of applications, by the
    commands that they are looked for as, `modules` the environment modules that have them; `file` is its name for
    messages, "" if there is none."""

    environments: tuple[SiteEnvironment, ...] = ()
    systems: tuple[System, ...] = ()
    file: str = ""
    benchmarks: tuple[Path, ...] = ()
    guests: tuple[SiteGuest, ...] = ()
    programs: Mapping[str, Path] = {}
    containers: tuple[SiteContainer, ...] = ()
    modules: Mapping[str, tuple[str, ...]] = {}
    power: PowerAccess = PowerAccess()
    """Of a machine that is not a node of a system."""
    tariff: Tariff | None = None

    def tariff_at(self, place: Place | None) -> Tariff | None:
        """The tariff of a partition, else that of the site."""
        own = None if place is None else place.partition.tariff
        return self.tariff if own is None else own

    def power_at(self, place: Place | None, node: str) -> PowerAccess:
        """How the power of a node is read, with its name in addresses."""
        if place is None:
            return self.power.of(node)
        return dict(place.partition.power_of).get(node, place.partition.power).of(node)

    def container(self, name: str) -> SiteContainer | None:
        """The container of that name; None if there is none."""
        return next((container for container in self.containers if container.name == name), None)

    def place(self, text: str) -> Place:
        """The partition NAME[:PARTITION]; the first partition if none is given.

        Raises UnknownNameError, and UsageError if the site defines no systems.
        """
        if not self.systems:
            why = f"{self.file} defines no systems" if self.file else "no site file found"
            raise UsageError(
                f"unknown system {text!r}: {why}",
                "define it in a site file, ~/.config/seatrial/site.yaml or --site FILE (see docs/environments.md)",
            )
        name, _, wanted = text.partition(":")
        system = next((system for system in self.systems if system.name == name), None)
        if system is None:
            raise UnknownNameError("system", name, (system.name for system in self.systems))
        if not wanted:
            return Place(system, system.partitions[0])
        partition = next((partition for partition in system.partitions if partition.name == wanted), None)
        if partition is None:
            raise UnknownNameError(f"partition of {name}", wanted, (each.name for each in system.partitions))
        return Place(system, partition)

    def environments_at(self, place: Place | None) -> tuple[SiteEnvironment, ...]:
        """The environments of a partition, the preferred one first; None: all, in the order of the file."""
        if place is None or not place.partition.environments:
            return self.environments
        known = {environment.name: environment for environment in self.environments}
        return tuple(known[name] for name in place.partition.environments)
