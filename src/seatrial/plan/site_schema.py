"""The structure of a site file as pydantic models, and the published JSON schema.

The schema is generated when the package is built (hatch_build.py); `python -m seatrial.plan.site_schema` prints it.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr

from seatrial.model.container import PLACEMENTS, RUNTIMES
from seatrial.model.container_device import ACCEPTED_DEVICE, NVIDIA
from seatrial.model.container_mount import ACCEPTED_MOUNT
from seatrial.model.job_options import BATCH_SYSTEMS
from seatrial.model.mpi import MpiFamily

MOST_HOSTS = 100_000
LAUNCHERS = ("mpirun", "srun")

_FAMILIES = tuple(family.value for family in MpiFamily)
_NAME = "[A-Za-z0-9][A-Za-z0-9_.-]{0,99}"
_VARIABLE = "[A-Z_][A-Z0-9_]{0,127}"
_PATH = "^[~/].*$"
_SSH = "^[A-Za-z0-9_.@:-]*$"
_SCRATCH = "^/[A-Za-z0-9_./+-]*$"

ACCEPTED = {
    "": "a mapping: environments, containers, systems, guests, benchmarks, programs",
    "benchmarks": "a list of folders with declaration files of benchmarks",
    "benchmarks.*": "the path of a folder: begins with / or ~/",
    "programs": "a mapping of commands to the programs that are run for them, such as {namd3: /opt/namd/3.0/namd3}",
    "programs.*": "the path of the program (begins with / or ~/), or what loads it: module load NAME/VERSION",
    "environments": "a mapping of names to environments, such as `production: {mpi: /opt/openmpi/4.1.6}`",
    "environments.*": "a mapping with any of mpi, family, launcher, compiler, flags, variables",
    "environments.*.mpi": "the prefix of an MPI library, or the path of its compiler wrapper: begins with / or ~/",
    "environments.*.family": f"{', '.join(_FAMILIES[:-1])} or {_FAMILIES[-1]}: needed if it is not recognized",
    "environments.*.launcher": "the MPI launcher: a command on PATH, such as srun, or a path that begins with / or ~/",
    "environments.*.compiler": "the command of a compiler, such as g++ or clang++-16",
    "environments.*.flags": "flags in one string, such as '-O2 -march=x86-64-v3'",
    "environments.*.variables": "a mapping of environment variables to values, such as {UCX_TLS: rc,sm,self}",
    "environments.*.variables.*": "text, a number, true or false",
    "guests": "a mapping of names to virtual machines, such as `small: {ssh: root@small}`",
    "guests.*": "a mapping with ssh, or with topology and any of kernel",
    "guests.*.ssh": "the host, as ssh takes it: a name of your ~/.ssh/config, or USER@HOST",
    "guests.*.topology": "the file that `seatrial vm up --topology` takes: begins with / or ~/",
    "guests.*.kernel": "the kernel of the guest: begins with / or ~/ (default: as `seatrial vm up` finds one)",
    "containers": "a mapping of names to containers, such as `app: {image: /images/app.sqfs}`",
    "containers.*": "a mapping with image, and any of runtime, mpi, mounts, devices, variables",
    "containers.*.image": "the path of a folder, of a squashfs or SIF file or of an OCI archive, or the name of an "
    "image that the runtime has stored",
    "containers.*.runtime": f"one of {', '.join(RUNTIMES)}",
    "containers.*.mpi": f"where the launcher of ranks is: one of {', '.join(PLACEMENTS)}",
    "containers.*.mounts": "a list of mounts, such as [/data, '/opt/site:/opt:ro']",
    "containers.*.mounts.*": ACCEPTED_MOUNT,
    "containers.*.devices": f"a list of devices, such as [{NVIDIA}]",
    "containers.*.devices.*": ACCEPTED_DEVICE,
    "containers.*.variables": "a mapping of environment variables to values, which are set inside",
    "containers.*.variables.*": "text, a number, true or false",
    "systems": "a mapping of names to systems, such as `tera: {partitions: {compute: {nodes: 64}}}`",
    "systems.*": "a mapping with partitions, and any of batch, poll",
    "systems.*.batch": f"the batch system that jobs are submitted to: {', '.join(BATCH_SYSTEMS)}",
    "systems.*.poll": "how often the batch system is asked at most, such as 60s (the default)",
    "systems.*.partitions": "a mapping of names to partitions; the first is the default",
    "systems.*.partitions.*": "a mapping with any of environments, launcher, hosts, nodes, queue, "
    "account, qos, constraint, reservation, cpus_per_node, gpus_per_node, exclusive, modules, extra, time_limit, "
    "python, shared, scratch",
    "systems.*.partitions.*.environments": "a list of environments of this file, the preferred one first",
    "systems.*.partitions.*.environments.*": "the name of an environment of this file",
    "systems.*.partitions.*.launcher": f"{' or '.join(LAUNCHERS)}",
    "systems.*.partitions.*.hosts": "a list of host names",
    "systems.*.partitions.*.hosts.*": "the name of a host, such as n001",
    "systems.*.partitions.*.nodes": "the number of nodes, an integer >= 1",
    "systems.*.partitions.*.queue": "the batch system's name of the partition or queue (default: the partition's name)",
    "systems.*.partitions.*.account": "the account that jobs are charged to",
    "systems.*.partitions.*.qos": "the quality of service of jobs",
    "systems.*.partitions.*.constraint": "the features that nodes must have, as the batch system writes them",
    "systems.*.partitions.*.reservation": "the name of a reservation",
    "systems.*.partitions.*.cpus_per_node": "the number of CPUs that jobs request on each node, an integer >= 1",
    "systems.*.partitions.*.gpus_per_node": "the number of GPUs that jobs request on each node, an integer >= 1",
    "systems.*.partitions.*.exclusive": "true (the default): jobs share their nodes with no others; or false",
    "systems.*.partitions.*.modules": "a list of modules that jobs load",
    "systems.*.partitions.*.modules.*": "the name of a module, such as openmpi/5.0",
    "systems.*.partitions.*.extra": "a list of lines that job scripts contain after their first directives",
    "systems.*.partitions.*.extra.*": "a line of a job script, such as '#SBATCH --mail-type=NONE'",
    "systems.*.partitions.*.time_limit": "the longest wall time of a job, such as 2h (default: no limit)",
    "systems.*.partitions.*.shared": "false if the nodes have no file system in common with the login node; needs "
    "python: none",
    "systems.*.partitions.*.scratch": "the folder of a node that jobs work in if nothing is shared (default: /tmp): "
    "begins with /",
    "systems.*.partitions.*.python": "the Python that runs seatrial on the nodes: begins with / or ~/; or none, if "
    "they have no Python: only native programs run there",
}
"""Key of a site file ("*": any name or position) -> what it accepts, for messages and schema descriptions."""

NAMED = frozenset({"containers", "environments", "guests", "partitions", "programs", "systems", "variables"})
"""Mappings whose keys are names that the user chooses."""

_Name = Annotated[StrictStr, Field(min_length=1, max_length=4096)]
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr


def _described(place: str, **more: Any) -> Any:
    return Field(description=ACCEPTED[place], **more)


class _Closed(BaseModel):
    """A mapping whose keys are all known; values are never converted."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class EnvironmentModel(_Closed):
    """What programs are built and run in."""

    mpi: Annotated[_Name | None, _described("environments.*.mpi", json_schema_extra={"pattern": _PATH})] = None
    family: Annotated[MpiFamily | None, _described("environments.*.family", strict=False)] = None
    launcher: Annotated[_Name | None, _described("environments.*.launcher")] = None
    compiler: Annotated[_Name | None, _described("environments.*.compiler")] = None
    flags: Annotated[_Name | None, _described("environments.*.flags")] = None
    variables: Annotated[dict[_Name, _Scalar] | None, _described("environments.*.variables")] = None


class PartitionModel(_Closed):
    """A set of identical nodes."""

    environments: Annotated[list[_Name] | None, _described("systems.*.partitions.*.environments", min_length=1)] = None
    launcher: Annotated[
        _Name | None, _described("systems.*.partitions.*.launcher", json_schema_extra={"enum": [*LAUNCHERS, None]})
    ] = None
    hosts: Annotated[
        list[_Name] | None, _described("systems.*.partitions.*.hosts", min_length=1, max_length=MOST_HOSTS)
    ] = None
    nodes: Annotated[StrictInt | None, _described("systems.*.partitions.*.nodes", ge=1)] = None
    queue: Annotated[_Name | None, _described("systems.*.partitions.*.queue")] = None
    account: Annotated[_Name | None, _described("systems.*.partitions.*.account")] = None
    qos: Annotated[_Name | None, _described("systems.*.partitions.*.qos")] = None
    constraint: Annotated[_Name | None, _described("systems.*.partitions.*.constraint")] = None
    reservation: Annotated[_Name | None, _described("systems.*.partitions.*.reservation")] = None
    cpus_per_node: Annotated[StrictInt | None, _described("systems.*.partitions.*.cpus_per_node", ge=1)] = None
    gpus_per_node: Annotated[StrictInt | None, _described("systems.*.partitions.*.gpus_per_node", ge=1)] = None
    exclusive: Annotated[StrictBool | None, _described("systems.*.partitions.*.exclusive")] = None
    modules: Annotated[list[_Name] | None, _described("systems.*.partitions.*.modules", max_length=100)] = None
    extra: Annotated[list[_Name] | None, _described("systems.*.partitions.*.extra", max_length=100)] = None
    time_limit: Annotated[_Name | None, _described("systems.*.partitions.*.time_limit")] = None
    shared: Annotated[StrictBool | None, _described("systems.*.partitions.*.shared")] = None
    scratch: Annotated[
        _Name | None, _described("systems.*.partitions.*.scratch", json_schema_extra={"pattern": _PATH})
    ] = None
    python: Annotated[
        _Name | None, _described("systems.*.partitions.*.python", json_schema_extra={"pattern": f"{_PATH}|^none$"})
    ] = None


class ContainerModel(_Closed):
    """What programs run in."""

    image: Annotated[_Name, _described("containers.*.image")]
    runtime: Annotated[
        _Name | None, _described("containers.*.runtime", json_schema_extra={"enum": [*RUNTIMES, None]})
    ] = None
    mpi: Annotated[_Name | None, _described("containers.*.mpi", json_schema_extra={"enum": [*PLACEMENTS, None]})] = None
    mounts: Annotated[list[_Name] | None, _described("containers.*.mounts", max_length=100)] = None
    devices: Annotated[list[_Name] | None, _described("containers.*.devices", max_length=100)] = None
    variables: Annotated[dict[_Name, _Scalar] | None, _described("containers.*.variables")] = None


class SystemModel(_Closed):
    """One machine of the site."""

    partitions: Annotated[
        dict[_Name, PartitionModel | None], _described("systems.*.partitions", min_length=1, max_length=1000)
    ]
    batch: Annotated[
        _Name | None, _described("systems.*.batch", json_schema_extra={"enum": [*BATCH_SYSTEMS, None]})
    ] = None
    poll: Annotated[_Name | None, _described("systems.*.poll")] = None


class GuestModel(_Closed):
    """A virtual machine that programs can run in."""

    ssh: Annotated[_Name | None, _described("guests.*.ssh", json_schema_extra={"pattern": _SSH})] = None
    topology: Annotated[_Name | None, _described("guests.*.topology", json_schema_extra={"pattern": _PATH})] = None
    kernel: Annotated[_Name | None, _described("guests.*.kernel", json_schema_extra={"pattern": _PATH})] = None


class SiteModel(_Closed):
    """The environments of a site, its containers, guests and systems, and what it adds to PATH."""

    environments: Annotated[
        dict[_Name, EnvironmentModel | None] | None, _described("environments", max_length=1000)
    ] = None
    containers: Annotated[dict[_Name, ContainerModel] | None, _described("containers", max_length=1000)] = None
    systems: Annotated[dict[_Name, SystemModel] | None, _described("systems", max_length=1000)] = None
    benchmarks: Annotated[list[_Name] | None, _described("benchmarks", max_length=100)] = None
    guests: Annotated[dict[_Name, GuestModel] | None, _described("guests", max_length=1000)] = None
    programs: Annotated[dict[_Name, _Name] | None, _described("programs", max_length=1000)] = None


def site_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of a site file."""
    schema = SiteModel.model_json_schema()
    schema["$defs"].pop("MpiFamily")
    for model in (schema, *schema["$defs"].values()):
        model.pop("title", None)
        for place in model["properties"].values():
            place.pop("title", None)
    environment = schema["$defs"]["EnvironmentModel"]["properties"]
    environment["family"] |= {"anyOf": [{"enum": list(_FAMILIES)}, {"type": "null"}]}
    for names, pattern in (
        (schema["properties"]["environments"], _NAME),
        (schema["properties"]["containers"], _NAME),
        (schema["properties"]["systems"], _NAME),
        (schema["properties"]["guests"], _NAME),
        (schema["$defs"]["SystemModel"]["properties"]["partitions"], _NAME),
        (environment["variables"], _VARIABLE),
        (schema["properties"]["programs"], _NAME),
        (schema["$defs"]["ContainerModel"]["properties"]["variables"], _VARIABLE),
    ):
        mapping = next((kind for kind in names.get("anyOf", ()) if kind.get("type") == "object"), names)
        mapping["propertyNames"] = {"pattern": f"^{pattern}$"}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "seatrial site, version 1"}
    return head | schema


if __name__ == "__main__":
    print(json.dumps(site_schema(), indent=1, ensure_ascii=False))
