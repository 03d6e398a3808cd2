"""The options of `seatrial cluster`; the commands are loaded when they are called."""

from __future__ import annotations

from typing import Annotated

import typer

from seatrial.cli.options import Format, FormatOption

cluster_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode=None,
)


@cluster_app.command()
def up(
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
            help="make node K different: link=5gbit, delay=50us, quota=80%, memory=4GiB, cpus=1",
        ),
    ] = None,
    switch: Annotated[
        list[str] | None,
        typer.Option("--switch", metavar="K:uplink=RATE", help="give leaf switch K another uplink"),
    ] = None,
    output_format: FormatOption = Format.TEXT,
) -> None:
    """Bring a cluster up, and measure its links."""
    from seatrial.cli.cluster import up_command
    from seatrial.places.cluster.wanted import read_wanted

    wanted = read_wanted(nodes, link, tree, cpus, node or (), switch or ())
    up_command(wanted, as_json=output_format is Format.JSON)


@cluster_app.command("exec", context_settings={"allow_interspersed_args": False})
def exec_(
    command: Annotated[
        list[str] | None, typer.Argument(metavar="-- COMMAND", help="such as srun -N 2 hostname")
    ] = None,
    node: Annotated[str, typer.Option("--node", metavar="N", help="the node that it runs on")] = "1",
) -> None:
    """Run a command on a node, with Slurm's commands."""
    from seatrial.interface.cluster import cluster_exec

    raise typer.Exit(cluster_exec(node, command or ()))


@cluster_app.command()
def status(output_format: FormatOption = Format.TEXT) -> None:
    """Show nodes, links and processes."""
    from seatrial.cli.cluster import status_command

    status_command(as_json=output_format is Format.JSON)


@cluster_app.command()
def down() -> None:
    """End it; nothing of it is left."""
    from seatrial.cli.cluster import down_command

    down_command()
