"""The table of processors (processors.toml), a row for each generation."""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from importlib import resources
from itertools import chain
from typing import Any

from seatrial.model.frozen import Frozen

DELL_XEON = "Dell, Balanced Memory with 2nd Generation Intel Xeon Scalable Processors (2019)"


class Cpuid(Frozen):
    """Family and models of an x86 CPU; `steppings` is None for all."""

    vendor: str
    family: int
    models: Collection[int]
    steppings: Collection[int] | None = None


class MainId(Frozen):
    """Implementer and part of an Arm CPU's Main ID Register."""

    implementer: int
    part: int


class Vector(Frozen):
    """The FMA hardware of a core: pipes, bits per pipe, cycles from an FMA to a dependent one; None is unknown."""

    pipes: int | None
    bits: int | None
    latency_cycles: int | None
    source: str


class Channels(Frozen):
    """Memory channels per socket."""

    count: int
    source: str


class Interleaving(Frozen):
    """Which populations of a socket with this number of channels interleave as one set.

    `balanced` and `near` are numbers of modules per socket, `subsets` the numbers of channels, fewer than all, that
    still form one set; `loss` is the published loss of other populations.
    """

    channels: int
    balanced: tuple[int, ...]
    near: tuple[int, ...]
    subsets: frozenset[int]
    source: str
    loss: str = ""


class PackageMemory(Frozen):
    """Memory in the processor package, in addition to the modules, of models whose name matches `model`."""

    model: str
    memory: str
    source: str


class Processor(Frozen):
    """One generation. `name` is its microarchitecture, None if a row covers several.

    It is identified by `ids`, or by `models`, a pattern of the model name, which every source has. `vectors`,
    `channels` and `memory_MTps` (the highest speed that the memory controllers support) depend on the model name.
    """

    name: str | None
    ids: tuple[Cpuid | MainId, ...] = ()
    ids_source: str = ""
    models: str | None = None
    vectors: tuple[tuple[str, Vector], ...] = ()
    channels: tuple[tuple[str, Channels], ...] = ()
    memory_MTps: tuple[tuple[str, float], ...] = ()
    interleaving: Interleaving | None = None
    package_memory: PackageMemory | None = None


@cache
def processors() -> tuple[Processor, ...]:
    """All rows, in order."""
    table = tomllib.loads(resources.files(__package__).joinpath("processors.toml").read_text(encoding="utf-8"))
    vectors = {
        name: Vector(**dict.fromkeys(("pipes", "bits", "latency_cycles")) | one)
        for name, one in table["vectors"].items()
    }
    channels = {name: Channels(**one) for name, one in table["channels"].items()}
    sets = {name: _interleaving(one) for name, one in table["interleaving"].items()}
    return tuple(
        Processor(
            row.get("name"),
            (*map(_cpuid, row.get("cpuid", ())), *(MainId(**one) for one in row.get("main_id", ()))),
            row.get("ids_source", ""),
            row.get("models"),
            tuple((pattern, vectors[name]) for pattern, name in row.get("vectors", ())),
            tuple((pattern, channels[name]) for pattern, name in row.get("channels", ())),
            tuple((pattern, speed) for pattern, speed in row.get("memory_MTps", ())),
            sets.get(row.get("interleaving", "")),
            PackageMemory(**row["package_memory"]) if "package_memory" in row else None,
        )
        for row in table["processor"]
    )


def _cpuid(one: Mapping[str, Any]) -> Cpuid:
    steppings = _numbers(one["steppings"]) if "steppings" in one else None
    return Cpuid(one["vendor"], one["family"], _numbers(one["models"]), steppings)


def _numbers(text: str) -> tuple[int, ...]:
    """The numbers of a list such as "0x10-0x1f,0x31"."""
    ends = [[int(end, 0) for end in part.split("-")] for part in text.split(",")]
    return tuple(chain.from_iterable(range(both[0], both[-1] + 1) for both in ends))


def _interleaving(one: Mapping[str, Any]) -> Interleaving:
    lists = {name: tuple(one[name]) for name in ("balanced", "near")}
    return Interleaving(**{**one, **lists, "subsets": frozenset(one["subsets"])})
