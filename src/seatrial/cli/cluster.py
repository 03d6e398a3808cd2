"""`seatrial cluster`: a cluster on this machine."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from seatrial.cli.command import command
from seatrial.cli.output import Output, message
from seatrial.errors import UsageError
from seatrial.places.cluster.namespaces import find_tools, has_planted, need_root
from seatrial.places.cluster.shape import CLUSTER, home_path, read_wanted, shape_of
from seatrial.places.cluster.status import read_status, run_on_node
from seatrial.places.cluster.up import bring_up, take_down


@command("cluster up")
def _up(
    link: Annotated[
        str, typer.Option("--link", metavar="RATE[,DELAY]", help="of every node's link: 10gbit or 500mbit; 1gbit,50us")
    ],
    nodes: Annotated[
        int | None, typer.Option("--nodes", metavar="N", help="number of nodes; a tree states its own", min=1)
    ] = None,
    tree: Annotated[
        str | None,
        typer.Option(
            "--tree",
            metavar="LxN,RATIO",
            help="L leaf switches of N nodes, below one more; 4:1: an uplink has a quarter of its nodes' rates",
        ),
    ] = None,
    cpus: Annotated[
        int | None,
        typer.Option("--cpus", metavar="N", help="CPUs of each node (default: an equal part of this machine's)", min=1),
    ] = None,
    node: Annotated[
        list[str] | None,
        typer.Option(
            "--node",
            metavar="K:NAME=VALUE,...",
            help="make node K different: link=5gbit, delay=50us, quota=80%, memory=4GiB, cpus=1, loss=1%, loss-out=1%, "
            "clock=+3s, drift=1%, files=20ms",
        ),
    ] = None,
    switch: Annotated[
        list[str] | None, typer.Option("--switch", metavar="K:uplink=RATE", help="give leaf switch K another uplink")
    ] = None,
    *,
    out: Output,
) -> None:
    """Bring a cluster up, and measure its links."""
    shape = shape_of(read_wanted(nodes, link, tree, cpus, node or (), switch or ()), sorted(os.sched_getaffinity(0)))
    need_root("seatrial cluster up")
    tools, path = find_tools(), home_path(os.environ)
    if path.exists():  # said before anything is built; `bring_up` decides
        raise CLUSTER.already_there(path)
    from seatrial.places.rank_helpers import helper, node_faults  # late: `exec` should start fast, and builds nothing

    memory_B = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    faults = node_faults() if any(map(has_planted, shape.nodes)) else None
    bring_up(path, shape, tools, helper("link_probe"), message, memory_B, faults)
    _status(out)
    message("run on it: seatrial cluster exec -- srun -N 2 hostname; end it: seatrial cluster down")


@command("cluster exec", context_settings={"allow_interspersed_args": False})
def _exec(
    words: Annotated[list[str] | None, typer.Argument(metavar="-- COMMAND", help="such as srun -N 2 hostname")] = None,
    node: Annotated[str, typer.Option("--node", metavar="N", help="the node that it runs on")] = "1",
) -> int:
    """Run a command on a node, with Slurm's commands."""
    if not words:
        raise UsageError("no command given", "for example: seatrial cluster exec -- srun -N 2 hostname")
    need_root("seatrial cluster exec")
    return run_on_node(home_path(os.environ), node, words, find_tools(), os.environ)


@command("cluster status")
def _status(out: Output) -> None:
    """Show nodes, links and processes."""
    from seatrial.report.documents.places import cluster_document
    from seatrial.report.text.places import cluster_text

    document = cluster_document(read_status(home_path(os.environ)))
    out.show(lambda: document, lambda style: cluster_text(document, style))


@command("cluster down")
def _down() -> None:
    """End it; nothing of it is left."""
    path = home_path(os.environ)
    is_up = path.exists()
    if is_up:
        need_root("seatrial cluster down")
        is_up = take_down(path)
    message("the cluster is down" if is_up else "no cluster was up")
