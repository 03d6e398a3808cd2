"""The folder of the one cluster of a machine: the journal in it, and what is known of a running cluster, a JSON file.

The journal is written and synced before anything is made, and names everything outside the folder that will be made:
the control groups. Namespaces, links, switches and mounts end with the last process in those groups. So after a crash
at any point, `down` finds all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from seatrial.errors import StoreError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Finite
from seatrial.places.cluster.groups import Groups
from seatrial.places.cluster.shape import Shape
from seatrial.places.owned_folder import OwnedFolder, read_state, write_synced

FOLDER = "SEATRIAL_CLUSTER"
"""Names the folder of the cluster; `exec` sets it for its command."""
_USUAL = Path("/run/seatrial/cluster")
_JOURNAL = "journal"
CLUSTER = OwnedFolder("cluster", "cluster", FOLDER, 60, "others than root", _JOURNAL)


class Obtained(Frozen):
    """What was measured on a link, None: not measured. Rates are those of the payload of TCP. `round_trip_s` includes
    the other end's link."""

    out_Bps: Annotated[Finite, "away from the node or leaf switch"] = None
    in_Bps: Annotated[Finite, "towards it"] = None
    round_trip_s: Annotated[Finite, "of one byte, to the node at the other end and back"] = None
    against: Annotated[tuple[str, ...], "the nodes at the other end"] = ()


class State(Frozen):
    """`processes`: node -> role -> process id; the roles are `namespaces` (which keeps them alive), `slurmd`,
    `slurmctld`, `munged`. `obtained`: node or leaf switch -> what was measured on its link upwards."""

    name: str
    shape: Shape
    processes: Mapping[str, Mapping[str, int]]
    obtained: Mapping[str, Obtained] = {}


class Home(Frozen):
    """The folder of a cluster, which is locked while it is brought up or down."""

    path: Path

    def make_journal(self, groups: Groups) -> None:
        """Record what will be made; on disk when this returns."""
        entry = {"tops": [str(top) for top in groups.tops], "is_v2": groups.is_v2, "enabled": list(groups.enabled)}
        write_synced(self.path / _JOURNAL, json.dumps(entry))

    def read_journal(self) -> Groups | None:
        """What was recorded; None if nothing was made before the crash. Raises StoreError if the journal is damaged."""
        try:
            entry = json.loads((self.path / _JOURNAL).read_text())
            return Groups(tuple(Path(top) for top in entry["tops"]), entry["is_v2"], tuple(entry["enabled"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the journal {self.path / _JOURNAL} cannot be read: {error}",
                "end the cluster's processes and remove its control groups (seatrial-*) by hand",
            ) from error

    def read_state(self) -> State | None:
        """See `owned_folder.read_state`."""
        return read_state(self.path, State)

    def remove(self) -> None:
        """Remove the folder, the journal last, and the folder above it if nothing else is in that. Raises
        StoreError."""
        CLUSTER.remove(self.path)
        if self.path == _USUAL:
            with suppress(OSError):
                self.path.parent.rmdir()


def home_path(variables: Mapping[str, str]) -> Path:
    """The folder of the cluster: $SEATRIAL_CLUSTER, else one in /run. Raises UsageError."""
    return CLUSTER.named(variables) or _USUAL


@contextmanager
def new_home(path: Path) -> Iterator[Home]:
    """Make the folder, and hold its lock. Raises UsageError if there is one: a machine has one cluster."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        closed = next((folder for folder in path.parents if not folder.stat().st_mode & 0o001), None)
    except OSError as error:
        raise StoreError(f"the cluster's folder {path} cannot be made: {error.strerror}") from error
    if closed is not None:
        raise UsageError(
            f"the cluster's folder {path} is below {closed}, which is closed to other users: munged refuses that",
            f"name a folder in /run with ${FOLDER}, or chmod o+x {closed}",
        )
    with CLUSTER.new(path, 0o755):
        yield Home(path)


@contextmanager
def existing_home(path: Path) -> Iterator[Home | None]:
    """Hold the lock of the folder; None if there is no cluster. Raises UsageError if others could have written there,
    BusyError if a process is bringing the cluster up or down."""
    with CLUSTER.existing(path) as is_there:
        yield Home(path) if is_there else None
