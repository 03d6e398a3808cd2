"""The command that starts the ranks of an MPI program with the launcher of its library, and the helpers of ranks.

Open MPI's mpirun: version 4 (ORTE) and version 5 (PRRTE) take the same options. The ranks bind themselves: its CPU
lists use hwloc's logical order, count cores unless hardware threads are requested, and are sorted (4.1.4: `--cpu-list
1,0 --bind-to cpu-list:ordered` puts rank 0 on CPU 0), so they cannot express "this rank on these CPUs of the kernel".
Hydra is the launcher of MPICH, MVAPICH and Intel MPI; its CPU lists use the kernel's numbers, rank by rank. srun is of
Slurm, inside an allocation, and the mpiexec of Cray is that of PALS.

The helpers are small native programs (native/launch/): `place` binds a rank and records where it runs, `share` starts
the ranks of a node in one container, and `keep` leaves no process of a launcher running. This module makes their
command lines and reads their files.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path, PurePath

from seatrial.errors import UsageError
from seatrial.model.benchmark.program import Layout, ProgramRecord, parse_record
from seatrial.model.environment.mpi import Mpi, MpiFamily
from seatrial.model.frozen import Frozen
from seatrial.processes.working_folder import on_path


class RankCommand(Frozen):
    """`argv` comes before the program and its arguments; `variables` are set (None: unset) where it runs.

    A rank reads its number from the first of `rank_from` (environment variables) that is set. `binds`: the launcher
    binds each rank exactly as in the layout; otherwise the ranks bind themselves (launch/mpi.py).
    """

    argv: Sequence[str]
    rank_from: Sequence[str]
    binds: bool
    variables: Mapping[str, str | None] = {}


_LAUNCHERS = frozenset({"mpirun", "mpiexec", "orterun", "prterun", "oshrun"})
_SUFFIXES = (".openmpi",)


def is_launcher(word: str) -> bool:
    """Whether a command's first word is the name of an Open MPI launcher (other libraries use the same names)."""
    name = PurePath(word).name
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name in _LAUNCHERS


def forwarded(command: Sequence[str], names: Iterable[str]) -> list[str]:
    """The command of an Open MPI launcher with options that export these variables to all ranks (mpirun(1), `-x`).
    Hydra, srun and PALS export all variables without an option."""
    return [command[0], *(word for name in names for word in ("-x", name)), *command[1:]]


_OF_JOBS = ("SLURM_JOB_ID", "SLURM_JOBID", "PBS_ENVIRONMENT", "PBS_JOBID", "LSB_JOBID")
"""Where one of these is set, Open MPI takes its nodes and slots from the batch system."""


def outside_jobs() -> dict[str, str | None]:
    """For ranks on this node only: as if there were no job."""
    return dict.fromkeys(_OF_JOBS)


def in_allocation(layout: Layout) -> dict[str, str | None]:
    """For ranks on the nodes of a Slurm job: as many slots on each as ranks, whatever number of tasks the job or the
    step asked for. The launcher's daemons share the nodes with the step that seatrial runs in, and may use all CPUs of
    the job. Other batch systems and ssh ignore these variables.

    This node is listed even if no rank runs on it: Open MPI 4 takes the first node of a list without it for this one,
    and starts that node's ranks here. The list is in Slurm's order, by which srun numbers the daemons of launchers.
    """
    here = _this_node(os.environ)
    names = layout.hosts if here in layout.hosts else (here, *layout.hosts)
    number = {name: at for at, name in enumerate(_batch_order(os.environ))}
    names = tuple(sorted(names, key=lambda name: number.get(name, -1)))
    return {
        "SLURM_NODELIST": ",".join(names),
        "SLURM_TASKS_PER_NODE": f"{layout.ranks_per_host}(x{len(names)})",
        "SLURM_OVERLAP": "1",
        "SLURM_CPU_BIND": "none",
    }


def _this_node(variables: Mapping[str, str]) -> str:
    return variables.get("SLURMD_NODENAME") or platform.node().partition(".")[0]


def _batch_order(variables: Mapping[str, str]) -> tuple[str, ...]:
    """The nodes as Slurm, PBS or LSF lists them; empty if none of them does."""
    if not any(name in variables for name in _OF_JOBS):
        return ()
    from seatrial.launch.allocation import allocated

    try:
        found = allocated(variables)
    except UsageError:
        return ()
    return () if found is None else found.nodes


def keeps_batch_order(hosts: Sequence[str], variables: Mapping[str, str]) -> bool:
    """Whether the nodes are known to be in the order of the batch system. Slurm numbers the tasks of a step in its own
    order, whatever the order of `--nodelist` (srun(1), `--distribution`), and Open MPI fills nodes in that of the batch
    system, whatever the order of `--host`."""
    number = {name: at for at, name in enumerate(_batch_order(variables))}
    found = [number.get(host, -1) for host in hosts]
    return -1 not in found and found == sorted(found)


def openmpi_command(launcher: Path, layout: Layout, exported: Sequence[str], *, in_order: bool) -> RankCommand:
    """The mpirun command; `exported` are variables that ranks on other nodes need as well.

    A hardware thread is a slot, so one rank per CPU is not oversubscription. mpirun refuses more ranks than that unless
    the layout shares CPUs. Ranks of this node are started without the batch system, which may have given fewer slots,
    or other nodes first. Nodes in another order than that in which mpirun fills
    them (`in_order` is false) need a name for each rank.
    """
    argv = [str(launcher), "-np", str(layout.ranks), "--use-hwthread-cpus", "--bind-to", "none"]
    if layout.hosts:
        each = layout.ranks_per_host
        if in_order:
            argv += ["--host", ",".join(f"{host}:{each}" for host in layout.hosts), "--map-by", "slot"]
        else:
            argv += ["--host", ",".join(host for host in layout.hosts for _ in range(each)), "--map-by", "seq"]
        argv += [word for name in exported for word in ("-x", name)]
    variables: dict[str, str | None] = {**(in_allocation(layout) if layout.hosts else outside_jobs())}
    if os.geteuid() == 0:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if layout.shares_cpus:
        argv.append("--oversubscribe")
        variables |= _yield_while_waiting(MpiFamily.OPENMPI)
    return RankCommand(argv, ("OMPI_COMM_WORLD_RANK", "PMIX_RANK"), binds=False, variables=variables)


_RANK_FROM = ("PMI_RANK", "PMIX_RANK")


def hydra_command(launcher: Path, layout: Layout, family: MpiFamily) -> RankCommand:
    """The mpiexec command of MPICH and MVAPICH.

    On this node it starts the ranks itself (`fork`) and does not take nodes from a batch system, whose first one may be
    another. The CPU list is by local rank, so it only works if all nodes are alike. Exit codes are printed because
    hydra would otherwise not name a rank that exits silently.
    """
    argv = [str(launcher), "-np", str(layout.ranks), "-print-all-exitcodes"]
    argv += _nodes(layout, ["-rmk", "user", "-launcher", "fork"])
    on_host = layout.cpus_of_a_host
    if on_host:
        argv += ["-bind-to", "user:" + ",".join("+".join(map(str, rank)) for rank in on_host)]
    else:
        argv += ["-bind-to", "none"]
    variables: dict[str, str | None] = {**(in_allocation(layout) if layout.hosts else {})}
    if family is MpiFamily.MVAPICH:
        # Otherwise the library binds the ranks again (MVAPICH2 user guide, "Efficient Process Mapping").
        variables |= {"MV2_ENABLE_AFFINITY": "0", "MVP_ENABLE_AFFINITY": "0"}
    if layout.shares_cpus:
        variables |= _yield_while_waiting(family)
    return RankCommand(argv, _RANK_FROM, binds=bool(on_host), variables=variables)


def _nodes(layout: Layout, on_this: list[str]) -> list[str]:
    return on_this if not layout.hosts else ["-hosts", ",".join(layout.hosts), "-ppn", str(layout.ranks_per_host)]


def intel_command(launcher: Path, layout: Layout) -> RankCommand:
    """The mpiexec command of Intel MPI, whose library binds the ranks as set by variables (Intel MPI Library Developer
    Reference, "Process Pinning"): a CPU list if each rank has one CPU, masks if it has several."""
    argv = [str(launcher), "-np", str(layout.ranks)]
    argv += _nodes(layout, ["-bootstrap", "fork", "-hosts", "localhost"])
    on_host = layout.cpus_of_a_host
    variables: dict[str, str | None] = {"I_MPI_PIN": "1" if on_host else "0"}
    if layout.hosts:
        variables |= in_allocation(layout)
    if on_host and layout.threads == 1:
        variables["I_MPI_PIN_PROCESSOR_LIST"] = ",".join(str(cpu) for (cpu,) in on_host)
    elif on_host:
        variables["I_MPI_PIN_DOMAIN"] = "[" + ",".join(mask_of(rank) for rank in on_host) + "]"
    if layout.shares_cpus:
        variables |= _yield_while_waiting(MpiFamily.INTEL)
    return RankCommand(argv, _RANK_FROM, binds=bool(on_host), variables=variables)


def mask_of(cpus: tuple[int, ...]) -> str:
    """CPU numbers of the kernel as a hexadecimal mask: `0x3` for 0 and 1."""
    return hex(sum(1 << cpu for cpu in set(cpus)))


_PMI = {
    MpiFamily.OPENMPI: "pmix",
    MpiFamily.MPICH: "pmi2",
    MpiFamily.MVAPICH: "pmi2",
    MpiFamily.INTEL: "pmi2",
    MpiFamily.CRAY: "cray_shasta",
}


def srun_command(launcher: Path, layout: Layout, family: MpiFamily, this_host: str, *, in_order: bool) -> RankCommand:
    """The srun command. Sites without TaskPlugin=task/affinity ignore masks, so the ranks bind themselves as well.

    `--overlap`: the step may use the CPUs of the job step that seatrial runs in. `--overcommit` is set only if ranks
    share CPUs. Nodes that are not `in_order` (keeps_batch_order) need a name for each rank.
    """
    hosts = layout.hosts or (this_host,)
    argv = [str(launcher), f"--ntasks={layout.ranks}", f"--nodes={len(hosts)}"]
    if in_order or len(hosts) == 1:
        argv += [f"--nodelist={','.join(hosts)}", f"--ntasks-per-node={layout.ranks_per_host}", "--distribution=block"]
    else:
        named = [host for host in hosts for _ in range(layout.ranks_per_host)]
        argv += [f"--nodelist={','.join(named)}", "--distribution=arbitrary"]
    argv += [f"--mpi={_PMI[family]}"]
    argv += [f"--cpus-per-task={layout.threads}", "--overlap", "--kill-on-bad-exit=1", "--input=none"]
    on_host = layout.cpus_of_a_host
    argv.append("--cpu-bind=mask_cpu:" + ",".join(map(mask_of, on_host)) if on_host else "--cpu-bind=none")
    if layout.shares_cpus:
        argv.append("--overcommit")
    variables = _yield_while_waiting(family) if layout.shares_cpus else {}
    if family is MpiFamily.INTEL:
        variables["I_MPI_PIN"] = "0"
    return RankCommand(argv, ("SLURM_PROCID",), binds=False, variables=variables)


def _yield_while_waiting(family: MpiFamily) -> dict[str, str]:
    """The variables that make waiting ranks yield their CPU."""
    if family is MpiFamily.OPENMPI:
        return {"OMPI_MCA_mpi_yield_when_idle": "1"}
    if family is MpiFamily.INTEL:
        return {"I_MPI_WAIT_MODE": "1"}
    return {"MPIR_CVAR_POLLS_BEFORE_YIELD": "1"}


def pals_command(launcher: Path, layout: Layout) -> RankCommand:
    """The mpiexec command of Cray (HPE PALS, mpiexec(1)): a list of the kernel's CPU numbers for each local rank."""
    argv = [str(launcher), "-n", str(layout.ranks), "--ppn", str(layout.ranks_per_host)]
    if layout.hosts:
        argv += ["--hosts", ",".join(layout.hosts)]
    on_host = layout.cpus_of_a_host
    argv.append("--cpu-bind")
    argv.append("list:" + ":".join(",".join(map(str, rank)) for rank in on_host) if on_host else "none")
    variables = _yield_while_waiting(MpiFamily.CRAY) if layout.shares_cpus else {}
    return RankCommand(argv, ("PALS_RANKID", "PMI_RANK"), binds=bool(on_host), variables=variables)


_JOB_VARIABLES = ("SLURM_JOB_ID", "SLURM_JOBID")

_RANK_PREFIXES = (
    *("OMPI_COMM_WORLD_", "OMPI_UNIVERSE_", "PMI_", "PMIX_", "MPI_LOCAL", "HYDI_", "PALS_RANK", "PALS_LOCAL"),
)
_SETTING_PREFIXES = ("PMIX_MCA_",)


class NoLauncherError(ValueError):
    """No launcher for this library was found."""


def rank_command(
    mpi: Mpi, layout: Layout, exported: Sequence[str] = (), variables: Mapping[str, str] | None = None
) -> RankCommand:
    """The command that starts these ranks with this library; `exported` are variables that ranks on other nodes need.

    Without its own launcher, a library uses srun, inside an allocation (`variables`: those of this process). Raises
    NoLauncherError if there is neither, or none that starts ranks on the nodes in their order.
    """
    variables = os.environ if variables is None else variables
    launcher = mpi.launcher or _batch_launcher(mpi, variables)
    in_order = keeps_batch_order(layout.hosts, variables)
    if launcher.name == "srun":
        return srun_command(launcher, layout, mpi.family, _this_node(variables), in_order=in_order)
    is_hydra = mpi.family in (MpiFamily.INTEL, MpiFamily.MPICH, MpiFamily.MVAPICH)
    if is_hydra and not in_order and any(name in variables for name in _JOB_VARIABLES):
        # Its proxies take their number from that of their node in the step.
        raise NoLauncherError(
            f"the launcher of {mpi.title} starts ranks in the order of Slurm's nodes, not on {', '.join(layout.hosts)} "
            "in this order: name the nodes in Slurm's order, set srun as the launcher of this library in the site "
            "file, or use Open MPI"
        )
    match mpi.family:
        case MpiFamily.OPENMPI:
            # It fills the node that it runs on first.
            fills = in_order and _this_node(variables) not in layout.hosts[1:]
            return openmpi_command(launcher, layout, exported, in_order=fills)
        case MpiFamily.INTEL:
            return intel_command(launcher, layout)
        case MpiFamily.CRAY:
            return pals_command(launcher, layout)
        case MpiFamily.MPICH | MpiFamily.MVAPICH:
            return hydra_command(launcher, layout, mpi.family)


def _batch_launcher(mpi: Mpi, variables: Mapping[str, str]) -> Path:
    srun = on_path("srun", variables.get("PATH"))
    if srun is None or not any(name in variables for name in _JOB_VARIABLES):
        raise NoLauncherError(
            f"{mpi.title} has no launcher, and this is not a Slurm allocation with srun: run inside one "
            "(salloc, sbatch), or set a launcher in the site file"
        )
    return Path(srun)


def rank_variables(variables: Mapping[str, str]) -> list[str]:
    """The names of variables that give a process its rank. If seatrial itself runs as a rank, the ranks that it starts
    must not inherit them."""
    return [name for name in variables if name.startswith(_RANK_PREFIXES) and not name.startswith(_SETTING_PREFIXES)]


GRACE_S = 8.0
"""The time that a launcher has to end its ranks and remove its temporary files: Open MPI takes up to two seconds."""

_RANK_FILES = "rank-[0-9][0-9][0-9][0-9][0-9][0-9]*.jsonl"


class Helpers(Frozen):
    """The paths of the programs."""

    keep: Path
    place: Path
    share: Path


def kept(helpers: Helpers, parent: int) -> list[str]:
    """The command prefix of a launcher that ends it, with all its descendants, when process `parent` ends."""
    return [str(helpers.keep), "--parent", str(parent), "--grace", f"{GRACE_S:g}", "--"]


def placed(helpers: Helpers, starter: RankCommand, layout: Layout, record: Path | None) -> list[str]:
    """The command prefix of a rank's program: empty if the launcher binds and the program itself records where it runs.

    `record`: the folder for files with the placement of each rank, for programs that do not record it.
    """
    binds = layout.is_bound and not starter.binds
    if not binds and record is None:
        return []
    prefix = [str(helpers.place), "--rank-from", ",".join(starter.rank_from), "--ranks", str(layout.ranks)]
    if binds:
        lists = layout.cpus_of_a_host or layout.cpus
        prefix += ["--cpus", "/".join(",".join(map(str, rank)) for rank in lists)]
    if record is not None:
        prefix += ["--record", str(record)]
    return [*prefix, "--"]


def shared(helpers: Helpers, name: str, option: str, holder: str, start: Sequence[str]) -> list[str]:
    """The command prefix of a rank's program that starts it in the container `name` of its node. The words `start`
    start a container; with `option` and a process id they enter that of this process. `holder` is the path inside of
    the program that holds it (places/containers/tiny_root.py)."""
    words = [str(helpers.share), "--name", name, "--option", option, "--holder", holder, "--words", str(len(start))]
    return [*words, "--", *start]


def rank_records(folder: Path) -> dict[int, ProgramRecord]:
    """Rank -> the record in its file: where it was placed, or its state when a run died.

    Raises OSError, and ProtocolError for invalid files.
    """
    records: dict[int, ProgramRecord] = {}
    for path in sorted(folder.glob(_RANK_FILES)):
        record = parse_record(path.read_bytes())
        if record.hello is not None:
            records[int(path.stem.removeprefix("rank-"))] = record
    return records


def runs_of(numbers: Sequence[int]) -> str:
    """Numbers as a list of ranges: `0-3,7`."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in runs)
