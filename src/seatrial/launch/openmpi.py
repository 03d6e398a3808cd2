"""Open MPI's mpirun: version 4 (ORTE) and version 5 (PRRTE), which take the same options.

The ranks bind themselves. mpirun's CPU lists use hwloc's logical order, count cores unless hardware threads are
requested, and are sorted (4.1.4: `--cpu-list 1,0 --bind-to cpu-list:ordered` puts rank 0 on CPU 0), so they cannot
express "this rank on these CPUs of the kernel".
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from seatrial.launch.rank_command import RankCommand, in_allocation, outside_jobs
from seatrial.model.benchmark.program import Layout


def openmpi_command(launcher: Path, layout: Layout, exported: Sequence[str]) -> RankCommand:
    """The mpirun command; `exported` are variables that ranks on other nodes need as well.

    A hardware thread is a slot, so one rank per CPU is not oversubscription. mpirun refuses more ranks than that unless
    the layout shares CPUs. Ranks of this node are started without the batch system, which may have given fewer slots,
    or other nodes first.
    """
    argv = [str(launcher), "-np", str(layout.ranks), "--use-hwthread-cpus", "--bind-to", "none"]
    if layout.hosts:
        argv += ["--host", ",".join(f"{host}:{layout.ranks_per_host}" for host in layout.hosts), "--map-by", "slot"]
        argv += [word for name in exported for word in ("-x", name)]
    variables: dict[str, str | None] = {**(in_allocation(layout) if layout.hosts else outside_jobs())}
    if os.geteuid() == 0:
        variables |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if layout.shares_cpus:
        argv.append("--oversubscribe")
        variables["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return RankCommand(argv, ("OMPI_COMM_WORLD_RANK", "PMIX_RANK"), binds=False, variables=variables)
