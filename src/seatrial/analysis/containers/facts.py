"""The facts of both sides that a fair comparison of containers states."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

from seatrial.analysis.containers.message_paths import bare, modules_of
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.environment.container import INSIDE, JOINED, OUTSIDE
from seatrial.model.results.record import RepeatRecord
from seatrial.model.spelling import count
from seatrial.model.study.comparison import ContainerFact

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
    sides = [_of_side(side) for side in (baseline, candidate)]
    if not any("runs in" in one and one["runs in"] != _NONE for one in sides):
        return ()
    names = dict.fromkeys(name for pair in zip_longest(*sides) for name in pair if name is not None)
    facts = [ContainerFact(name, sides[0].get(name), sides[1].get(name)) for name in _ORDER if name in names]
    return (*facts, *_libraries(baseline.all_records(), candidate.all_records()))


def _of_side(side: SideFacts) -> _Texts:
    records = [record for record in side.all_records() if record.outcome.is_ok]
    if not records:
        return {}
    containers = [_mapping(record.seen.get("container")) for record in records]
    made = [_mapping(_mapping(document.get("container")).get("made")) for document in side.environments.values()]
    notes = [_mapping(record.seen.get("notes")) for record in records]
    texts = {name: _all(map(words, containers)) for name, words in _OF_CONTAINERS.items()}
    texts |= {name: _all(map(words, made)) for name, words in _OF_IMAGES.items()}
    texts |= {name: _all(map(words, notes)) for name, words in _OF_RANKS.items()}
    texts["modules for messages"] = _all(
        ", ".join(modules_of(record.seen.get("added_libs") or ())) for record in records
    )
    if texts["MPI library"] and not any(containers):
        texts |= {"ranks": "on the host", "user namespaces": "that of the host"}
    return {name: text for name, text in texts.items() if text}


def _all(texts: Iterable[str]) -> str:
    """The distinct texts; of benchmarks without ranks, "" for a fact of ranks."""
    return " | ".join(text for text in dict.fromkeys(texts) if text)


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


def _names(names: Sequence[object]) -> str:
    more = f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return ", ".join(map(str, names[:_MOST_NAMES])) + more


def _packages(made: Mapping[str, Any]) -> str:
    packages = made.get("packages")
    return "" if packages is None else count(len(packages), "package")


_OF_CONTAINERS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "runs in": _runs_in,
    "image": _image,
    "root file system": _root,
    "namespaces of its own": _namespaces,
    "ranks": lambda container: _PLACES.get(str(container.get("mpi", "")), ""),
    "user namespaces": _user_namespaces,
    "environment variables": _variables,
}
_OF_IMAGES: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "image made from": lambda made: str(made.get("base", "")),
    "packages in the image": _packages,
    "content of the image": lambda made: str(made.get("content", ""))[: len("sha256:") + _DIGITS],
}
_OF_RANKS: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
    "MPI library": lambda notes: str(notes.get("mpi_version", "")).partition(",")[0],
    "ranks read each other's memory": lambda notes: str(notes.get("transport_cross_memory", "")),
    "single copy of large messages": lambda notes: bare(notes.get("transport_single_copy")),
}
_ORDER = (
    "runs in",
    "image",
    *_OF_IMAGES,
    "root file system",
    "namespaces of its own",
    "ranks",
    "user namespaces",
    "MPI library",
    "modules for messages",
    "ranks read each other's memory",
    "single copy of large messages",
    "environment variables",
)


def _libraries(baseline: _Records, candidate: _Records) -> Iterator[ContainerFact]:
    """The libraries that both sides load under one name, by build id, and those of a rank that loads others."""
    sides = [_build_ids(records) for records in (baseline, candidate)]
    both = [name for name in sides[0] if name in sides[1]]
    unlike = [name for name in both if sides[0][name] != sides[1][name]]
    for name in unlike:
        yield ContainerFact(f"library {name}", *(", ".join(map(_short, sorted(side[name]))) for side in sides))
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


def _short(build_id: str) -> str:
    return build_id[:_DIGITS] or "no id"


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
