"""What costs in a container: causes of figures that are clearly slower, by facts that differ between the same sides.

A cause is named only for a figure that it can reach: single copies matter from the size on at which libraries stop
copying through shared memory, a file system only while files are read. Several causes may fit one figure; records do
not tell which of them it is, so all are named. A figure that none fits is named as well.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from seatrial.analysis.fairness.side import SideFacts
from seatrial.analysis.grouped import grouped
from seatrial.analysis.rules.finding import listed
from seatrial.benchmarks import declared_figure
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.environment.container import INSIDE, JOINED, OUTSIDE
from seatrial.model.frozen import Frozen
from seatrial.model.results.record import RepeatRecord
from seatrial.model.spelling import count
from seatrial.model.study.comparison import (
    Breakdown,
    Change,
    Comparison,
    ContainerContrast,
    ContainerCost,
    ContainerFact,
    Cost,
    SideName,
    Verdict,
)

_OPEN_MPI = re.compile(r"mca_(?P<kind>pml|btl|mtl)_(?P<name>\w+)\.so")
_UCX = re.compile(r"libuct_(?P<name>\w+)\.so")
_BESIDE = frozenset({"self", "rdma"})
"""Modules that carry nothing between ranks."""
_MPI = re.compile(r"lib(?:mpi|mpich|mpi_cray|mpi_intel)\.so")
_WORKS = "yes"
_COPIES_ONCE = re.compile(r"\((?:cma|knem|xpmem)\)")


class MessagePaths(Frozen):
    """`cross_memory`: whether ranks can read each other's memory ("yes", "no (why)"); `single_copy`: how Open MPI
    copies large messages ("1 (cma)"); `modules`: what the MPI library loaded to carry messages; `library`: the build id
    of libmpi; `root`: the type of the container's root file system. None: not recorded, () : none known."""

    cross_memory: str | None = None
    single_copy: str | None = None
    modules: tuple[str, ...] = ()
    library: str | None = None
    root: str | None = None

    @property
    def copies_once(self) -> bool | None:
        """Whether large messages are copied once, from memory to memory; None: not known."""
        if self.cross_memory is None or not self.cross_memory.startswith(_WORKS):
            return None if self.cross_memory is None else False
        return self.single_copy is None or _COPIES_ONCE.search(self.single_copy) is not None

    @property
    def copying(self) -> str:
        """The same in words."""
        if self.cross_memory is None:
            return "not recorded"
        if self.cross_memory.startswith(_WORKS) and not self.copies_once:
            return f"possible, but the library does not use it: {bare(self.single_copy)}"
        return self.cross_memory

    @property
    def is_user_space(self) -> bool:
        """Whether a process serves the root file system."""
        return self.root is not None and self.root.startswith("fuse")


def bare(mechanism: str | None) -> str:
    """An enumeration's value without its number: "cma" of "1 (cma)"."""
    found = re.search(r"\((.+)\)$", mechanism or "")
    return found[1] if found else mechanism or ""


def modules_of(libraries: Iterable[object]) -> tuple[str, ...]:
    """The modules of Open MPI and UCX that carry messages, among loaded libraries: "btl vader", "uct cma"."""
    found = set()
    for library in map(str, libraries):
        if (match := _OPEN_MPI.match(library)) and match["name"] not in _BESIDE:
            found.add(f"{match['kind']} {match['name']}")
        elif (match := _UCX.match(library)) and match["name"] not in _BESIDE:
            found.add(f"uct {match['name']}")
    return tuple(sorted(found))


def _text(value: object) -> str | None:
    return None if value is None else str(value)


_DIGITS = 12
_MOST_NAMES = 12
_PLACES = {
    OUTSIDE: "launcher outside, a container for each rank (outside)",
    JOINED: "launcher outside, one container for the ranks of a node (joined)",
    INSIDE: "launcher and ranks in one container (inside)",
}
_MOUNTS = (
    ("fuse.squashfuse", "squashfs by a process in user space (squashfuse)"),
    ("fuse.fuse-overlayfs", "layers by a process in user space (fuse-overlayfs)"),
    ("fuse", "a process in user space serves it (FUSE)"),
    ("squashfs", "squashfs in the kernel"),
    ("overlay", "layers in the kernel (overlay)"),
    ("tmpfs", "a root in memory, with the folders of the image in it"),
)
_NONE = "no container"
_Records = Sequence[RepeatRecord]
_Texts = dict[str, str]
"""Name of a fact -> its text on one side."""


def container_facts(baseline: SideFacts, candidate: SideFacts) -> tuple[ContainerFact, ...]:
    """One row for each fact that is known of a side; empty if no side is in a container."""
    if not any(map(_is_contained, (baseline, candidate))):
        return ()
    sides = [_of_side(side) for side in (baseline, candidate)]
    known = [name for name in _FACTS if any(name in one for one in sides)]
    facts = [ContainerFact(name, *(one.get(name) for one in sides)) for name in known]
    return (*facts, *_libraries(baseline.all_records(), candidate.all_records()))


def _is_contained(side: SideFacts) -> bool:
    """Whether a repeat that succeeded ran in a container."""
    return any(_mapping(one.seen.get("container")) for one in side.all_records() if one.outcome.is_ok)


def _of_side(side: SideFacts) -> _Texts:
    """The distinct texts of each fact that is known; benchmarks without ranks have none for a fact of ranks."""
    records = [record for record in side.all_records() if record.outcome.is_ok]
    if not records:
        return {}
    parts = {
        _CONTAINER: [_mapping(record.seen.get("container")) for record in records],
        _IMAGE: [_mapping(_mapping(one.get("container")).get("made")) for one in side.environments.values()],
        _NOTES: [_mapping(record.seen.get("notes")) for record in records],
        _SEEN: [record.seen for record in records],
    }
    texts = {
        name: " | ".join(filter(None, dict.fromkeys(map(words, parts[part])))) for name, (part, words) in _FACTS.items()
    }
    if texts["MPI library"] and not any(parts[_CONTAINER]):
        texts |= {"ranks": "on the host", "user namespaces": "that of the host"}
    return {name: text for name, text in texts.items() if text}


def _runs_in(container: Mapping[str, Any]) -> str:
    if not container:
        return _NONE
    return f"{container.get('image')}, started by {container.get('runtime')} {container.get('version')}"


def _image(container: Mapping[str, Any]) -> str:
    if not container:
        return "none"
    digest = str(container.get("digest") or "")
    shown = f"{digest[: len('sha256:') + _DIGITS]}" if digest else "no digest: only the runtime knows it"
    return f"{container.get('kind')}, {shown}"


def _root(container: Mapping[str, Any]) -> str:
    if not container:
        return "that of the host"
    root = str(container.get("root", ""))
    kind = root.partition(" ")[0]
    known = next((words for prefix, words in _MOUNTS if kind.startswith(prefix)), None)
    return f"{known or 'the folder itself, mounted'}; {root}" if kind else ""


def _namespaces(container: Mapping[str, Any]) -> str:
    if not container:
        return "none"
    return ", ".join(map(str, container.get("own_namespaces") or ())) or "none"


def _user_namespaces(container: Mapping[str, Any]) -> str:
    number = _mapping(container.get("ranks")).get("user_namespaces")
    if number is None:
        return ""
    has_own = "user" in (container.get("own_namespaces") or ())
    return f"{count(int(number), 'user namespace')} for all ranks" + ("" if has_own else ", that of the host")


def _variables(container: Mapping[str, Any]) -> str:
    if not container:
        return "as on the host"
    changes = _mapping(container.get("variables"))
    parts = [f"{kind}: {_names(names)}" for kind in ("added", "removed", "changed") if (names := changes.get(kind))]
    return "; ".join(parts) or "as on the host"


def _names(names: Iterable[object]) -> str:
    return listed(map(str, names), _MOST_NAMES)


def _packages(made: Mapping[str, Any]) -> str:
    packages = made.get("packages")
    return "" if packages is None else count(len(packages), "package")


_CONTAINER, _IMAGE, _NOTES, _SEEN = "container", "image", "notes", "seen"
_FACTS: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], str]]] = {
    "runs in": (_CONTAINER, _runs_in),
    "image": (_CONTAINER, _image),
    "image made from": (_IMAGE, lambda made: str(made.get("base", ""))),
    "packages in the image": (_IMAGE, _packages),
    "content of the image": (_IMAGE, lambda made: str(made.get("content", ""))[: len("sha256:") + _DIGITS]),
    "root file system": (_CONTAINER, _root),
    "namespaces": (_CONTAINER, _namespaces),
    "ranks": (_CONTAINER, lambda container: _PLACES.get(str(container.get("mpi", "")), "")),
    "user namespaces": (_CONTAINER, _user_namespaces),
    "MPI library": (_NOTES, lambda notes: str(notes.get("mpi_version", "")).partition(",")[0]),
    "modules for messages": (_SEEN, lambda seen: ", ".join(modules_of(seen.get("added_libs") or ()))),
    "ranks read each other's memory": (_NOTES, lambda notes: str(notes.get("transport_cross_memory", ""))),
    "single copy of large messages": (_NOTES, lambda notes: bare(notes.get("transport_single_copy"))),
    "environment variables": (_CONTAINER, _variables),
}
"""Fact -> the part of a record or environment that has it, and its text from that; in the order of the page."""


def _libraries(baseline: _Records, candidate: _Records) -> Iterator[ContainerFact]:
    """The libraries that both sides load under one name, by build id, and those of a rank that loads others."""
    sides = [_build_ids(records) for records in (baseline, candidate)]
    both = [name for name in sides[0] if name in sides[1]]
    unlike = [name for name in both if sides[0][name] != sides[1][name]]
    for name in unlike:
        shown = (", ".join(one[:_DIGITS] or "no id" for one in sorted(side[name])) for side in sides)
        yield ContainerFact(f"library {name}", *shown)
    alone = [sorted(set(own) - set(other)) for own, other in (sides, sides[::-1])]
    if any(alone):
        yield ContainerFact("libraries on one side only", *(_names(names) or "none" for names in alone))
    if both and not unlike:
        same = f"{count(len(both), 'library', 'libraries')} with the same build ids"
        yield ContainerFact("libraries", same, same)


def _build_ids(records: _Records) -> dict[str, set[str]]:
    """Library -> its build ids in all repeats and on all ranks of the trial before them."""
    found: dict[str, set[str]] = {}
    for record in records:
        for name, build_id in _mapping(record.seen.get("libs")).items():
            found.setdefault(str(name), set()).add(str(build_id))
        ranks = _mapping(_mapping(record.seen.get("container")).get("ranks"))
        for name, ids in _mapping(ranks.get("libraries")).items():
            if name in found:
                found[name].update(map(str, ids))
    return found


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_EAGER_B = 4096
"""Messages below are copied through shared memory by every library: the smallest limit is that of Open MPI 4's vader
(btl_vader_eager_limit)."""
_OF_CALLS = (Change.TRANSFER, Change.LATENCY)
_CLEAR = (Verdict.SLOWER, Verdict.FASTER)
Records = Mapping[str, Sequence[RepeatRecord]]
"""Experiment -> its repeats."""
_Seen = tuple[Cost, str, str]


def container_costs(
    comparisons: Sequence[Comparison], breakdowns: Sequence[Breakdown], records: tuple[Records, Records]
) -> tuple[ContainerCost, ...]:
    """The causes of all comparisons that are clearly slower on one side, those that are known first. `records`: of the
    baseline and of the candidate."""
    clear = ((one, _slower_side(one)) for one in comparisons if one.verdict in _CLEAR and not one.is_secondary)
    found = grouped(
        ((seen, on), one) for one, on in clear for seen in list(_costs(one, on, records)) or [(Cost.NOT_KNOWN, "", "")]
    )
    made = [
        ContainerCost(
            cost,
            on,
            baseline,
            candidate,
            tuple(figures),
            _spared(figures, comparisons) if cost is Cost.CROSS_MEMORY else (),
            _share(figures, breakdowns) if cost in (Cost.CROSS_MEMORY, Cost.TRANSPORT) else None,
        )
        for ((cost, baseline, candidate), on), figures in found.items()
    ]
    return tuple(sorted(made, key=lambda one: one.cost is Cost.NOT_KNOWN))


def _slower_side(one: Comparison) -> SideName:
    return "candidate" if one.verdict is Verdict.SLOWER else "baseline"


def _costs(one: Comparison, on: SideName, records: tuple[Records, Records]) -> Iterator[_Seen]:
    sides = [_paths_of(side.experiments, own) for side, own in zip((one.baseline, one.candidate), records, strict=True)]
    slow, fast = sides[::-1] if on == "candidate" else sides
    first, second = sides
    if _is_large(one) and fast.copies_once and slow.copies_once is False:
        yield Cost.CROSS_MEMORY, _copying(first), _copying(second)
    if first.modules and second.modules and first.modules != second.modules:
        yield Cost.TRANSPORT, _only(first, second), _only(second, first)
    if first.library and second.library and first.library != second.library:
        yield Cost.MPI_LIBRARY, first.library, second.library
    if slow.is_user_space and not fast.is_user_space and _reads_files(one):
        yield Cost.USER_FILES, first.root or "", second.root or ""


def _reads_files(one: Comparison) -> bool:
    """Whether programs of the image are read within what the figure times."""
    figure = declared_figure(one.benchmark, one.figure)
    return figure is not None and figure.role is Role.PROGRAM_START


def _paths_of(experiments: Sequence[str], records: Records) -> MessagePaths:
    """From the first repeat that succeeded: the paths do not change between repeats."""
    record = next((one for key in experiments for one in records.get(key, ()) if one.outcome.is_ok), None)
    if record is None:
        return MessagePaths()
    notes, libs, container = (_mapping(record.seen.get(name)) for name in ("notes", "libs", "container"))
    return MessagePaths(
        _text(notes.get("transport_cross_memory")),
        _text(notes.get("transport_single_copy")),
        modules_of([*libs, *(record.seen.get("added_libs") or ())]),
        next((str(build_id) for name, build_id in libs.items() if _MPI.match(name)), None),
        str(container.get("root", "")).partition(" ")[0] or None,
    )


def _is_large(one: Comparison) -> bool:
    """Whether messages may be large enough to be copied once; an application's may."""
    size = one.parameters.get("size_B")
    return not isinstance(size, int | float) or size >= _EAGER_B


def _copying(paths: MessagePaths) -> str:
    return f"yes ({bare(paths.single_copy)})" if paths.copies_once and paths.single_copy else paths.copying


def _only(own: MessagePaths, other: MessagePaths) -> str:
    """The modules that only one side has."""
    rest = [module for module in own.modules if module not in other.modules]
    return ", ".join(rest) if rest else "none of these"


def _spared(figures: Sequence[Comparison], comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The small messages of the same figures that are not clearly slower."""
    names = {(one.benchmark, one.figure) for one in figures}
    return tuple(
        one
        for one in comparisons
        if (one.benchmark, one.figure) in names
        and not _is_large(one)
        and one.verdict in (Verdict.SAME, Verdict.EQUIVALENT)
    )


def _share(figures: Sequence[Comparison], breakdowns: Sequence[Breakdown]) -> float | None:
    """What the cost of calls explains of the difference, by the profiles of the same benchmarks."""
    names = {one.benchmark for one in figures}
    shares = [
        sum(cause.share for cause in one.diagnoses if cause.change in _OF_CALLS)
        for one in breakdowns
        if one.benchmark in names and one.diagnoses
    ]
    return min(shares) if shares else None


def container_contrast(
    baseline: SideFacts, candidate: SideFacts, comparisons: Sequence[Comparison], breakdowns: Sequence[Breakdown]
) -> ContainerContrast | None:
    """The contrast of two sides; None if both run outside of containers, or in equal ones."""
    facts = container_facts(baseline, candidate)
    if not any(fact.is_unlike for fact in facts):
        return None
    return ContainerContrast(facts, container_costs(comparisons, breakdowns, (baseline.records, candidate.records)))
