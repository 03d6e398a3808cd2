"""The folder of the one cluster of a machine: the journal in it, and what is known of a running cluster, a JSON file.

The journal is written and synced before anything is made, and names everything outside the folder that will be made:
the control groups. Namespaces, links, switches and mounts end with the last process in those groups. So after a crash
at any point, `down` finds all.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

from seatrial.errors import BusyError, StoreError, UsageError
from seatrial.launch.owned_folder import is_owned, locked, write_synced
from seatrial.model.frozen import Frozen
from seatrial.model.json_object import plain
from seatrial.model.json_record import record_of
from seatrial.model.json_shape import Finite
from seatrial.places.cluster.groups import Groups
from seatrial.places.cluster.shape import Shape

STATE = "state.json"
_VERSION = 1


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

    def document(self) -> dict[str, Any]:
        """As JSON."""
        return {"v": _VERSION, **plain(self)}

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> State:
        """The inverse. Raises KeyError or ValueError."""
        if document["v"] != _VERSION:
            raise ValueError(f"version {document['v']}")
        return record_of(cls, document)


def read_state(folder: Path) -> State | None:
    """The state of the cluster in this folder; None if it has not come up, or its file is damaged."""
    try:
        return State.from_document(json.loads((folder / STATE).read_text()))
    except (OSError, KeyError, TypeError, ValueError):
        return None


FOLDER = "SEATRIAL_CLUSTER"
"""Names the folder of the cluster; `exec` sets it for its command."""
_USUAL = Path("/run/seatrial/cluster")
_JOURNAL = "journal"
_LONGEST_PATH = 60
"""Sockets in it have at most 107 characters."""


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

    def write_state(self, state: State) -> None:
        """The cluster is complete, with this state."""
        write_synced(self.path / STATE, json.dumps(state.document(), indent=1))

    def read_state(self) -> State | None:
        """See `state.read_state`."""
        return read_state(self.path)

    def remove(self) -> None:
        """Remove the folder, the journal last, and the folder above it if nothing else is in that."""
        for entry in self.path.iterdir():
            if entry.name != _JOURNAL:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        (self.path / _JOURNAL).unlink(missing_ok=True)
        self.path.rmdir()
        if self.path == _USUAL:
            try:
                self.path.parent.rmdir()
            except OSError:
                return


def home_path(variables: Mapping[str, str]) -> Path:
    """The folder of the cluster: $SEATRIAL_CLUSTER, else one in /run. Raises UsageError."""
    given = variables.get(FOLDER)
    if not given:
        return _USUAL
    path = Path(given)
    if not path.is_absolute() or len(str(path)) > _LONGEST_PATH:
        raise UsageError(
            f"${FOLDER} is {given!r}", f"it must be an absolute path of at most {_LONGEST_PATH} characters"
        )
    return path


@contextmanager
def new_home(path: Path) -> Iterator[Home]:
    """Make the folder, and hold its lock. Raises UsageError if there is one: a machine has one cluster."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        closed = next((folder for folder in path.parents if not folder.stat().st_mode & 0o001), None)
        if closed is not None:
            raise UsageError(
                f"the cluster's folder {path} is below {closed}, which is closed to other users: munged refuses that",
                f"name a folder in /run with ${FOLDER}, or chmod o+x {closed}",
            )
        path.mkdir(mode=0o755)
    except FileExistsError:
        raise already_there(path) from None
    except OSError as error:
        raise StoreError(f"the cluster's folder {path} cannot be made: {error.strerror}") from error
    path.chmod(0o755)
    with locked(path, _busy(path)):
        yield Home(path)


def already_there(path: Path) -> UsageError:
    """The error of a second cluster."""
    return UsageError(
        f"a cluster is already there, in {path}", "seatrial cluster status shows it, seatrial cluster down ends it"
    )


@contextmanager
def existing_home(path: Path) -> Iterator[Home | None]:
    """Hold the lock of the folder; None if there is no cluster. Raises UsageError if others could have written there,
    BusyError if a process is bringing the cluster up or down."""
    try:
        owned = is_owned(path)
    except FileNotFoundError:
        yield None
        return
    if not owned:
        raise UsageError(
            f"{path} is not a cluster's folder: others than root can write there", f"check ${FOLDER}, or remove it"
        )
    with locked(path, _busy(path)):
        yield Home(path) if path.exists() else None


def _busy(path: Path) -> BusyError:
    return BusyError(
        f"another seatrial process is bringing the cluster in {path} up or down",
        "wait for it, or end it and run seatrial cluster down",
    )
