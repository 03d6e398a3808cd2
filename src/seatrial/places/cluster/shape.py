"""The shape of a cluster: its nodes, switches and links, with addresses and CPUs; and the options of `seatrial cluster
up`, from their text.

The folder of the one cluster of a machine: the journal in it, and what is known of a running cluster, a JSON file.

The journal is written and synced before anything is made, and names everything outside the folder that will be made:
the control groups. Namespaces, links, switches and mounts end with the last process in those groups. So after a crash
at any point, `down` finds all.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated

from seatrial.errors import StoreError, UnknownNameError, UsageError
from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Count, Finite, key
from seatrial.model.units import parse_bytes, parse_seconds
from seatrial.places.cluster.groups import ControlGroups
from seatrial.places.owned_folder import OwnedFolder, read_state, write_synced

MOST_NODES = 512
"""A Linux bridge has at most 1024 ports, and each node has its own slurmd."""
HEAD = "head"
"""The name of the node with the controller of Slurm; it is connected to the top switch, without a limit of its rate."""
HEAD_ADDRESS = "10.101.255.254"
PREFIX_BITS = 16
SPINE, SWITCH = "spine", "switch"


class LinkShape(Frozen):
    """What is asked of a link: B/s in each direction, and the delay in seconds that it adds in each direction."""

    rate_Bps: float
    delay_s: float = 0.0


class SwitchTree(Frozen):
    """Leaf switches of equally many nodes, below one spine. `ratio`: the rates of a leaf's nodes together, over the
    rate of its uplink."""

    leaves: int
    nodes_per_leaf: int
    ratio: float


class NodeSettings(Frozen):
    """What is asked of one node besides its link, None: the same as of the others. `quota`: the share of its CPUs that
    it may use. `loss`: of the packets that arrive from other nodes; `loss_out`: of those that it sends to them.
    `clock_s`, `drift`, `files_s` as in `NodeShape`."""

    link: LinkShape | None = None
    quota: float | None = None
    memory_B: int | None = None
    cpus: int | None = None
    loss: float | None = None
    loss_out: float | None = None
    clock_s: float | None = None
    drift: float | None = None
    files_s: float | None = None


class NodeShape(Frozen):
    """A node.

    `switch` is the one that its link leads to.
    """

    number: Count
    switch: str
    link: LinkShape
    cpus: tuple[int, ...]
    quota: Annotated[float | None, "the share of the time of its CPUs that it may use; null: all"] = None
    memory_B: Annotated[int | None, "null: not limited"] = None
    loss: Annotated[
        float | None, "the share of the packets from other nodes to it that is dropped, at random; null: none"
    ] = None
    loss_out: Annotated[float | None, "the same of the packets from it to other nodes"] = None
    clock_s: Annotated[float | None, "seconds that its clock was ahead when the cluster came up; null: none"] = None
    drift: Annotated[float | None, "seconds that its clock gains in a second; null: none"] = None
    files_s: Annotated[
        float | None, "seconds longer that making, renaming or syncing a file takes on it; null: none"
    ] = None

    @property
    @key
    def name(self) -> str:
        """Its host name."""
        return f"n{self.number}"

    @property
    @key
    def address(self) -> str:
        """Its IPv4 address."""
        return f"10.101.{self.number >> 8}.{self.number & 255}"


class Switch(Frozen):
    """A switch; `uplink` is its link to the switch above, None for the top one."""

    name: str
    above: str | None = None
    uplink: LinkShape | None = None


class ClusterShape(Frozen):
    """A whole cluster, the top switch first."""

    nodes: tuple[NodeShape, ...]
    switches: tuple[Switch, ...]
    ratio: float | None = None

    @property
    def cpus(self) -> tuple[int, ...]:
        """Those of all nodes together."""
        return tuple(sorted({cpu for node in self.nodes for cpu in node.cpus}))

    def below(self, switch: str) -> tuple[NodeShape, ...]:
        """The nodes whose links lead to this switch."""
        return tuple(node for node in self.nodes if node.switch == switch)


class WantedShape(Frozen):
    """What `seatrial cluster up` was asked for. `nodes` None: as the tree says. `cpus`: of each node; None: an equal
    part of this machine's. `changed` and `uplinks` are by the number of the node or leaf switch, from 1."""

    nodes: int | None
    link: LinkShape
    tree: SwitchTree | None = None
    cpus: int | None = None
    changed: Mapping[int, NodeSettings] = {}
    uplinks: Mapping[int, LinkShape] = {}


def shape_of(wanted: WantedShape, host_cpus: Sequence[int]) -> ClusterShape:
    """The cluster that is asked for, on a machine with these CPUs. Raises UsageError if its parts do not agree."""
    count = _count(wanted)
    leaves = [SWITCH] if wanted.tree is None else [f"leaf{k + 1}" for k in range(wanted.tree.leaves)]
    _check_numbers("--node", "nodes", wanted.changed, count)
    _check_numbers("--switch", "leaf switches", wanted.uplinks, 0 if wanted.tree is None else len(leaves))
    each = count // len(leaves)
    usual = wanted.cpus or max(1, len(host_cpus) // count)
    nodes, taken = [], 0
    for k in range(count):
        own = wanted.changed.get(k + 1, NodeSettings())
        cpus = own.cpus or usual
        if cpus > len(host_cpus):
            raise UsageError(f"n{k + 1} cannot have {cpus} CPUs", f"this machine has {len(host_cpus)}")
        used = tuple(sorted(host_cpus[(taken + i) % len(host_cpus)] for i in range(cpus)))
        taken += cpus
        link = own.link or wanted.link
        faults = (own.loss, own.loss_out, own.clock_s, own.drift, own.files_s)
        nodes.append(NodeShape(k + 1, leaves[k // each], link, used, own.quota, own.memory_B, *faults))
    return ClusterShape(tuple(nodes), _switches(wanted, leaves), None if wanted.tree is None else wanted.tree.ratio)


def _count(wanted: WantedShape) -> int:
    tree = wanted.tree
    of_tree = None if tree is None else tree.leaves * tree.nodes_per_leaf
    count = of_tree if wanted.nodes is None else wanted.nodes
    if count is None:
        raise UsageError("the number of nodes is missing", "give --nodes N, or --tree SHAPE,RATIO such as 2x2,4:1")
    if of_tree is not None and count != of_tree and tree is not None:
        raise UsageError(
            f"--nodes {count} and --tree {tree.leaves}x{tree.nodes_per_leaf} contradict each other: "
            f"the tree has {of_tree} nodes",
            "leave out --nodes",
        )
    if not 1 <= count <= MOST_NODES:
        raise UsageError(f"a cluster cannot have {count} nodes", f"1 to {MOST_NODES} are possible")
    return count


def _switches(wanted: WantedShape, leaves: Sequence[str]) -> tuple[Switch, ...]:
    tree = wanted.tree
    if tree is None:
        return (Switch(SWITCH),)
    usual = LinkShape(wanted.link.rate_Bps * tree.nodes_per_leaf / tree.ratio)
    return (Switch(SPINE), *(Switch(name, SPINE, wanted.uplinks.get(k + 1, usual)) for k, name in enumerate(leaves)))


def _check_numbers(option: str, what: str, given: Mapping[int, object], count: int) -> None:
    for number in given:
        if not 1 <= number <= count:
            there = f"the cluster has {what} 1 to {count}" if count else f"the cluster has no {what} without --tree"
            raise UsageError(f"{option} {number} does not exist", there)


_RATE = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)([kmgt]?)bit\Z", re.ASCII)
_SCALE = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_LEAST_Bps, _MOST_Bps = 1e6 / 8, 1e12 / 8
_LONGEST_DELAY_S = 1.0
_SHAPE = re.compile(r"(\d{1,4})x(\d{1,4})\Z", re.ASCII)
_RATIO = re.compile(r"(\d{1,4}(?:\.\d{1,3})?):(\d{1,4}(?:\.\d{1,3})?)\Z", re.ASCII)
_LEAST_MEMORY_B = 64 << 20
"""slurmd and a shell fit in this; with less, the kernel ends them at once."""


def read_wanted(
    nodes: int | None,
    link: str,
    tree: str | None = None,
    cpus: int | None = None,
    changed: Iterable[str] = (),
    uplinks: Iterable[str] = (),
) -> WantedShape:
    """What was asked for. Raises UsageError for what cannot be understood."""
    usual = read_link(link)
    settings: dict[int, NodeSettings] = {}
    for text in changed:
        number, words = _numbered("--node", text, "2:link=5gbit,quota=80%,memory=4GiB,cpus=1")
        if number in settings:
            raise UsageError(f"--node {number} is given twice", "write its settings in one: 2:link=5gbit,quota=80%")
        settings[number] = _node_settings(words, usual)
    rates: dict[int, LinkShape] = {}
    for text in uplinks:
        number, words = _numbered("--switch", text, "1:uplink=2gbit")
        given = _settings("--switch", words, ("uplink",))
        if number in rates:
            raise UsageError(f"--switch {number} is given twice", "leave one out")
        rates[number] = LinkShape(read_rate(given["uplink"]))
    return WantedShape(nodes, usual, None if tree is None else _tree(tree), cpus, settings, rates)


def read_rate(text: str) -> float:
    """B/s of a rate as tc(8) writes it: "10gbit", "500mbit" (decimal prefixes, bit/s). Raises UsageError."""
    match = _RATE.match(text.strip().lower())
    if match is None:
        raise UsageError(f"{text!r} is not the rate of a link", "write it like 10gbit or 500mbit")
    rate_Bps = float(match[1]) * _SCALE[match[2]] / 8
    if not _LEAST_Bps <= rate_Bps <= _MOST_Bps:
        raise UsageError(f"a link cannot have the rate {text!r}", "1mbit to 1tbit are possible")
    return rate_Bps


def read_link(text: str) -> LinkShape:
    """RATE[,DELAY]: "10gbit", "1gbit,50us". Raises UsageError."""
    rate, comma, delay = text.partition(",")
    if not comma:
        return LinkShape(read_rate(rate))
    delay_s = parse_seconds(delay.strip())
    if not 0 <= delay_s <= _LONGEST_DELAY_S:
        raise UsageError(f"a link cannot delay by {delay.strip()!r}", "0 to 1s are possible")
    return LinkShape(read_rate(rate), delay_s)


def _tree(text: str) -> SwitchTree:
    shape, _, ratio = text.partition(",")
    sizes, parts = _SHAPE.match(shape.strip()), _RATIO.match(ratio.strip())
    if sizes is None or parts is None:
        raise UsageError(
            f"--tree cannot be {text!r}", "write LEAVESxNODES,RATIO: 2x4,4:1 is 2 leaf switches of 4 nodes each"
        )
    leaves, each, below, above = int(sizes[1]), int(sizes[2]), float(parts[1]), float(parts[2])
    if leaves < 2 or each < 1 or below <= 0 or above <= 0:
        raise UsageError(f"--tree cannot be {text!r}", "it needs 2 leaf switches or more, with 1 node or more each")
    return SwitchTree(leaves, each, below / above)


def _numbered(option: str, text: str, example: str) -> tuple[int, str]:
    number, colon, words = text.partition(":")
    if not colon or not re.fullmatch(r"n?\d{1,4}", number.strip(), re.ASCII):
        raise UsageError(f"{option} cannot be {text!r}", f"write it like {example}")
    return int(number.strip().removeprefix("n")), words


def _settings(option: str, words: str, known: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for word in words.split(","):
        name, equals, value = (part.strip() for part in word.partition("="))
        if name not in known:
            raise UnknownNameError(f"setting of {option}", name, known)
        if not equals or not value:
            raise UsageError(f"{option}: {name} has no value", f"write {name}=VALUE")
        if name in given:
            raise UsageError(f"{option}: {name} is given twice", "leave one out")
        given[name] = value
    return given


_NODE_SETTINGS = ("link", "delay", "quota", "memory", "cpus", "loss", "loss-out", "clock", "drift", "files")
_MOST_CLOCK_S = 240.0
"""munged refuses what is five minutes old."""
_MOST_DRIFT, _MOST_FILES_S = 0.1, 10.0


def _node_settings(words: str, usual: LinkShape) -> NodeSettings:
    given = _settings("--node", words, _NODE_SETTINGS)
    link = None
    if "link" in given or "delay" in given:
        delay = f",{given['delay']}" if "delay" in given else ""
        asked = read_link(given["link"] + delay) if "link" in given else read_link("1gbit" + delay)
        link = LinkShape(
            asked.rate_Bps if "link" in given else usual.rate_Bps, asked.delay_s if "delay" in given else usual.delay_s
        )
    memory_B = parse_bytes(given["memory"]) if "memory" in given else None
    if memory_B is not None and memory_B < _LEAST_MEMORY_B:
        raise UsageError(f"a node cannot work with {given['memory']} of memory", "give 64MiB or more")
    return NodeSettings(
        link,
        _share("quota", given["quota"], "of the node's CPUs: 80% or 0.8", 0.01) if "quota" in given else None,
        memory_B,
        _whole(given["cpus"]) if "cpus" in given else None,
        _share("loss", given["loss"], "of the packets that arrive: 1% or 0.01", 1e-6) if "loss" in given else None,
        _share("loss-out", given["loss-out"], "of the packets it sends: 1% or 0.01", 1e-6)
        if "loss-out" in given
        else None,
        _signed("clock", given["clock"], parse_seconds, _MOST_CLOCK_S, "+3s, -0.5s") if "clock" in given else None,
        _signed("drift", given["drift"], _rate, _MOST_DRIFT, "1%, -500ppm") if "drift" in given else None,
        _signed("files", given["files"], parse_seconds, _MOST_FILES_S, "20ms", least=0.0) if "files" in given else None,
    )


def _signed(
    name: str, text: str, read: Callable[[str], float], most: float, like: str, least: float | None = None
) -> float:
    """A number with a sign, from minus `most` (or `least`) to `most`."""
    sign = -1.0 if text.startswith("-") else 1.0
    value = sign * read(text[1:] if text[:1] in ("+", "-") else text)
    if not (-most if least is None else least) <= value <= most:
        raise UsageError(f"--node: {name} cannot be {text!r}", f"write it like {like}; {most:g} is the most")
    return value


def _rate(text: str) -> float:
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,6})?)\s*(%|ppm)", text, re.ASCII)
    if match is None:
        raise UsageError(f"--node: drift cannot be {text!r}", "write it like 1% or 500ppm")
    return float(match[1]) / (100 if match[2] == "%" else 1e6)


def _share(name: str, text: str, of_what: str, least: float) -> float:
    """A share: "80%" or "0.8"."""
    match = re.fullmatch(r"(\d{1,3}(?:\.\d{1,6})?)\s*(%?)", text, re.ASCII)
    share = 0.0 if match is None else float(match[1]) / (100 if match[2] else 1)
    if not least <= share <= 1.0:
        raise UsageError(f"--node: {name} cannot be {text!r}", f"it is the share {of_what}")
    return share


def _whole(text: str) -> int:
    if not re.fullmatch(r"[1-9]\d{0,4}", text, re.ASCII):
        raise UsageError(f"--node: cpus cannot be {text!r}", "give a number such as 2")
    return int(text)


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


class ClusterState(Frozen):
    """`processes`: node -> role -> process id; the roles are `namespaces` (which keeps them alive), `slurmd`,
    `slurmctld`, `munged`. `obtained`: node or leaf switch -> what was measured on its link upwards."""

    name: str
    shape: ClusterShape
    processes: Mapping[str, Mapping[str, int]]
    obtained: Mapping[str, Obtained] = {}


class Home(Frozen):
    """The folder of a cluster, which is locked while it is brought up or down."""

    path: Path

    def make_journal(self, groups: ControlGroups) -> None:
        """Record what will be made; on disk when this returns."""
        entry = {"tops": [str(top) for top in groups.tops], "is_v2": groups.is_v2, "enabled": list(groups.enabled)}
        write_synced(self.path / _JOURNAL, json.dumps(entry))

    def read_journal(self) -> ControlGroups | None:
        """What was recorded; None if nothing was made before the crash. Raises StoreError if the journal is damaged."""
        try:
            entry = json.loads((self.path / _JOURNAL).read_text())
            return ControlGroups(tuple(Path(top) for top in entry["tops"]), entry["is_v2"], tuple(entry["enabled"]))
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StoreError(
                f"the journal {self.path / _JOURNAL} cannot be read: {error}",
                "end the cluster's processes and remove its control groups (seatrial-*) by hand",
            ) from error

    def read_state(self) -> ClusterState | None:
        """See `owned_folder.read_state`."""
        return read_state(self.path, ClusterState)

    def remove(self) -> None:
        """Remove the folder, the journal last, and the folder above it if nothing else is in that. Raises
        StoreError."""
        CLUSTER.remove(self.path)
        if self.path == _USUAL:
            with suppress(OSError):
                self.path.parent.rmdir()


def own_cluster(variables: Mapping[str, str]) -> ClusterState | None:
    """The cluster on a node of which this process runs, by its variables; None on no cluster of one machine."""
    folder = variables.get(FOLDER)
    return None if folder is None else Home(Path(folder)).read_state()


def sharing_cpus(shape: ClusterShape, nodes: Collection[str]) -> tuple[tuple[str, ...], ...]:
    """The groups of these nodes that have a CPU of the machine in common."""
    by_cpu = [[node.name for node in shape.nodes if cpu in node.cpus and node.name in nodes] for cpu in shape.cpus]
    return tuple(dict.fromkeys(tuple(group) for group in by_cpu if len(group) > 1))


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
