"""Becomes torchrun on one of several nodes, of which a launcher starts one of these each.

    python start_torchrun.py NODES PROCESSES_OF_A_NODE SCRIPT ARGUMENT... CPUS

CPUS are those of all nodes, one after another, with as many of each.
"""

from __future__ import annotations

import os
import sys

from harness.nodes import launched_number, meeting_point


def main(nodes: str, processes: str, script: str, *words: str) -> None:
    """Start the processes of this node."""
    node = launched_number()
    host, port = meeting_point(node)
    cpus = words[-1].split(",")
    each = len(cpus) // int(nodes)
    own = ",".join(cpus[node * each : (node + 1) * each])
    chosen = ["--nnodes", nodes, "--nproc-per-node", processes, "--node-rank", str(node)]
    chosen += ["--master-addr", host, "--master-port", str(port)]
    os.execv(sys.executable, [sys.executable, "-m", "torch.distributed.run", *chosen, script, *words[:-1], own])  # noqa: S606


if __name__ == "__main__":
    main(*sys.argv[1:])
