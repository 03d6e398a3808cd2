"""What goes wrong in containers, by what runtimes, loaders and MPI libraries print and by how far ranks came."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from seatrial.model.environment.container import BIND, BROUGHT, INSIDE, JOINED, OUTSIDE
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


def _fault(name: str, pattern: str, cause: str, remedy: str) -> Fault:
    return Fault(name, re.compile(pattern, re.IGNORECASE), cause, remedy)


_FAULTS = (
    _fault(
        "old C library",
        r"version [`']?(?:GLIBC|GLIBCXX|CXXABI)_[\w.]+'? not found",
        "the libraries of the image are older than those that the program was built with",
        "use an image with at least the host's C library, or set environment.container_build to "
        f"{INSIDE} (built by the image's compiler) or {BROUGHT} (with the host's C library)",
    ),
    _fault(
        "newer instruction set",
        r"CPU ISA level is lower than required|Illegal instruction|SIGILL|Fatal glibc error: CPU does not support",
        "the image, or the program, was built for processors with more instructions than this one has",
        "use an image for this processor, or build for it with environment.flags=-march=...",
    ),
    _fault(
        "missing driver",
        r"lib(?:cuda|nvidia-ml|amdhip64|ze_loader)\.so[\w.]*: cannot open shared object file",
        "the driver's libraries of the host are not in the container (--nv misses those on a shared path)",
        "mount the driver's folder, and name it in LD_LIBRARY_PATH",
    ),
    _fault(
        "missing MPI library",
        r"error while loading shared libraries: lib(?:mpi(?:ch)?(?:_\w+)?|open-(?:rte|pal))\.so[\w.]*: cannot open",
        "the image does not have the MPI library that the program was built with",
        f"set environment.container_mpi={BIND} to bring the host's, or environment.container_build={INSIDE} to use the "
        "image's, or install the same library in the image",
    ),
    _fault(
        "missing library",
        r"error while loading shared libraries: \S+: cannot open shared object file",
        "the image does not have a library that the program needs",
        f"install it in the image, or set environment.container_build to {INSIDE} (built by the image's compiler) or "
        f"{BROUGHT} (with the host's libraries)",
    ),
    _fault(
        "shared memory of UCX",
        r"Shared memory error",
        "UCX cannot attach the memory of ranks in other user namespaces",
        f"set environment.container_mpi={JOINED}, or {INSIDE}, or UCX_TLS=sysv,self",
    ),
    _fault(
        "descriptors of the launcher",
        r"PMI_Get_appnum returned -1",
        "the runtime does not pass on the descriptors by which MPICH's launcher reaches its ranks",
        f"set environment.container_mpi={INSIDE}",
    ),
    _fault(
        "launcher of another library",
        r"plm_rsh_agent|ess_singleton|ess_init",
        "the ranks of Open MPI found no launcher of their library, and could not start one alone",
        f"set environment.mpi to the library of the image, or environment.container_mpi={INSIDE}",
    ),
    _fault(
        "no such program",
        r"can't execve|\bexec(?:vp?e?)?\b\W.*no such file|No such file or directory.*(?:exec|executable)"
        r"|executable file .* not found|failed to find",
        "the program does not exist in the image, or the loader that it asks for does not",
        "give a path of the image; a program from outside needs a C library of the same kind in the image, or "
        f"environment.container_build={BROUGHT}",
    ),
    _fault(
        "another user inside",
        r"OPAL ERROR: Unreachable in file ext3x_client\.c|PMIX_ERR_INVALID_CRED",
        "the user has another number inside the container, with which Open MPI's launcher outside accepts no rank",
        f"set environment.container_mpi={INSIDE}",
    ),
    _fault(
        "no such image",
        r"image not known|Unable to find image|No such image|no such container image",
        "the runtime has stored no image of that name",
        "give the path of an image, the name of a container of the site file, or load the image with the runtime's "
        "own command",
    ),
    _fault(
        "CDI",
        r"unresolvable CDI devices?|CDI device.*not found|failed to inject CDI",
        "this machine describes no device of that name to the Container Device Interface",
        "make the description (nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml), or name another device",
    ),
    _fault(
        "mount point",
        r"can't (?:create|mkdir).*read-only|can't bind: (?:destination|not found)|destination .* doesn't exist"
        r"|mount point does not exist|failed to create mount point",
        "the image has no file or folder where one of the host is to be mounted, and the runtime cannot create it",
        "mount it at a folder of the image, such as /mnt, or create the folder in the image",
    ),
    _fault(
        "limits",
        r"rlimit.*operation not permitted|setrlimit",
        "the runtime sets limits that this user may not raise",
        "run as another user, or lower the limits of the runtime's configuration",
    ),
    _fault(
        "control groups",
        r"cgroups? in hybrid mode not supported|cgroup.*(?:not supported|permission denied)",
        "the runtime does not support the control groups of this host",
        "choose another environment.container_runtime, or runc as podman's OCI runtime",
    ),
    _fault(
        "no user namespaces",
        r"(?:unshare|clone|user namespace|newuidmap|uid_map).*(?:operation not permitted|permission denied|not allowed"
        r"|no space left)|kernel does not (?:support|allow).*user namespace",
        "this user may not create user namespaces here",
        "have user namespaces enabled (sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, /etc/subuid)",
    ),
    _fault(
        "root needed",
        r"need to be root|must be (?:run as )?root|requires? root",
        "the runtime works only for root",
        "choose another environment.container_runtime",
    ),
)


OF_LIBRARIES = frozenset({"old C library", "missing library", "no such program"})
"""Faults of programs of the host that programs built in the image do not have."""


def fault_in(output: str) -> Fault | None:
    """The first known fault that a text shows."""
    return next((fault for fault in _FAULTS if fault.pattern.search(output)), None)


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
            f"user namespaces of their own (errno {attach}), which Open MPI does not handle",
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
