"""What goes wrong in containers, by what runtimes, loaders and MPI libraries print and by how far ranks came."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from seatrial.model.environment.container import BIND, INSIDE, JOINED, OUTSIDE
from seatrial.model.frozen import Frozen
from seatrial.places.containers.image import ContainerError

_LINES = 3
_SHOWN = 300


class Fault(Frozen):
    """A known fault: its name, the pattern of its message, the cause and the remedy."""

    name: str
    pattern: re.Pattern[str]
    cause: str
    remedy: str


@cache
def _faults() -> tuple[Fault, ...]:
    text = resources.files(__package__).joinpath("faults.toml").read_text(encoding="utf-8")
    return tuple(
        Fault(one["name"], re.compile(one["pattern"], re.IGNORECASE), one["cause"], one["remedy"])
        for one in tomllib.loads(text)["fault"]
    )


OF_LIBRARIES = frozenset({"old C library", "missing library", "no such program"})
"""Faults of programs of the host that programs built in the image do not have."""


def fault_in(output: str) -> Fault | None:
    """The first known fault that a text shows."""
    return next((fault for fault in _faults() if fault.pattern.search(output)), None)


def last_words(output: str) -> str:
    """The end of what was printed, for a message."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    return "; ".join(lines[-_LINES:])[-_SHOWN:] or "it printed nothing"


def not_started(what: str, output: str) -> ContainerError:
    """The error of a program that did not run in a container: the known fault, or the runtime's own words."""
    fault = fault_in(output)
    if fault is None:
        return ContainerError(f"{what}: {last_words(output)}", "run the same command by hand", output=output)
    line = next((line.strip() for line in output.splitlines() if fault.pattern.search(line)), "")
    return ContainerError(f"{what} ({fault.name}): {fault.cause}: {line[:_SHOWN]}", fault.remedy, output, fault.name)


_WITH = {BIND: "the host's MPI library (bind)", JOINED: "one container for all (joined)"}


def ranks_fault(
    notes: Sequence[Mapping[str, Any]], ranks: int, placement: str, *, timed_out: bool, failed: bool, output: str
) -> ContainerError | None:
    """Why ranks cannot work together in containers; None if they can.

    `notes` are those of every process that started (native/launch/ranks_inside.cpp): without `size` it did not return
    from MPI_Init, without `message_arrived` a message of 4 MiB did not arrive.
    """
    where = f"ranks with {_WITH.get(placement, f'their launcher {placement}')}"
    sizes = [note["size"] for note in notes if "size" in note]
    if sizes and any(size != ranks for size in sizes):
        seen = f"{len(sizes)} times rank 0 of {sizes[0]}" if len(sizes) > 1 else f"{sizes[0]} ranks"
        return ContainerError(
            f"{where} do not find each other (size of the world): {ranks} were started, {seen} were seen; the "
            "launcher belongs to another MPI library than the one that the ranks load",
            f"set environment.mpi to the library of the image, or environment.container_mpi={INSIDE}",
            output=output,
        )
    known = fault_in(output)
    if not notes and (failed or timed_out):
        return not_started(f"no rank started in the container: {where}", output)
    stuck = [note for note in notes if "size" in note and not note.get("message_arrived")]
    attach = next((note["cross_memory_error"] for note in notes if note.get("cross_memory_error")), 0)
    if timed_out and stuck and attach:
        return ContainerError(
            f"{where} hang at a message of 4 MiB (no cross-memory attach): ranks cannot read each other's memory from "
            f"their own user namespaces (errno {attach}), which Open MPI does not handle",
            f"set environment.container_mpi={JOINED} or {INSIDE}, or "
            "environment.OMPI_MCA_btl_vader_single_copy_mechanism=none",
            output=output,
        )
    if (failed or timed_out) and known is not None:
        return not_started(f"{where} fail", output)
    if timed_out:
        did = "exchange a message of 4 MiB" if stuck else "return from MPI_Init"
        return ContainerError(
            f"{where} do not {did} in time: {last_words(output)}",
            f"try another of environment.container_mpi={OUTSIDE}, {JOINED} or {INSIDE}",
            output=output,
        )
    if failed or len(sizes) < ranks or (stuck and ranks > 1 and ranks % 2 == 0):
        return ContainerError(
            f"{where} fail: {len(sizes)} of {ranks} ranks started MPI: {last_words(output)}",
            f"try another of environment.container_mpi={OUTSIDE}, {JOINED} or {INSIDE}",
            output=output,
        )
    return None
