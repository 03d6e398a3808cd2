"""`seatrial cluster`: up, status, down. (`exec` prints nothing of its own.)"""

from __future__ import annotations

import sys

from seatrial.cli.output import message, print_json, style_of
from seatrial.interface.cluster import cluster_down, cluster_status, cluster_up
from seatrial.places.cluster.shape import Wanted
from seatrial.places.cluster.status import Status
from seatrial.report.documents.cluster import cluster_document
from seatrial.report.text.cluster import cluster_text


def up_command(wanted: Wanted, *, as_json: bool) -> None:
    """Bring a cluster up and print it."""
    _print(cluster_up(wanted, message), as_json=as_json)
    message("run on it: seatrial cluster exec -- srun -N 2 hostname; end it: seatrial cluster down")


def status_command(*, as_json: bool) -> None:
    """Print the cluster as it is now."""
    _print(cluster_status(), as_json=as_json)


def down_command() -> None:
    """End the cluster; without one, say so."""
    message("the cluster is down" if cluster_down() else "no cluster was up")


def _print(found: Status, *, as_json: bool) -> None:
    document = cluster_document(found)
    if as_json:
        print_json(document)
    else:
        print(cluster_text(document, style_of(sys.stdout)))
