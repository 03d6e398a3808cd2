"""MPI settings as environment variables of each library, and the settings that a library lists.

The library itself lists what it has (`control_variables`), so a version with more algorithms offers more. A setting
that it does not have is an error that lists the available ones: nothing is set on speculation.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from seatrial.environments.asking import ask_once, last_object
from seatrial.errors import BuildError
from seatrial.model.environment.mpi import (
    BINDING,
    CLUSTER_LINK,
    COLLECTIVE_ALGORITHM,
    TRANSPORT,
    Mpi,
    MpiFamily,
    chosen_algorithms,
)
from seatrial.model.frozen import Frozen

_SCRIPT = Path(__file__).with_name("ask_control_variables.py")


class ControlVariable(Frozen):
    """`items` are (value, name) of an enumeration's members, () for other types; `text` is the library's help text."""

    items: tuple[tuple[int, str], ...]
    text: str


class ControlVariables(Frozen):
    """The variables of a library by name, and its version text (MPI_Get_library_version)."""

    version: str
    variables: Mapping[str, ControlVariable]

    def __contains__(self, name: str) -> bool:
        return name in self.variables

    def have(self, prefix: str) -> bool:
        """Whether any name begins with the prefix: an Open MPI component that is not installed has none."""
        return any(name.startswith(prefix) for name in self.variables)


def control_variables(mpi: Mpi) -> ControlVariables:
    """The variables of a library, read once in a separate process. Raises BuildError if that fails."""
    return _read(mpi.library, mpi.variables)


@cache
def _read(library: Path, variables: tuple[tuple[str, str], ...]) -> ControlVariables:
    # The user's settings must not interfere: some of them end the process.
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("OMPI_MCA_", "MPIR_CVAR_"))}
    words = [sys.executable, "-I", str(_SCRIPT), str(library)]
    answer = ask_once(words, {**clean, **dict(variables)}, files=(_SCRIPT, library))
    try:
        document = last_object(answer.stdout)
        return ControlVariables(
            str(document["version"]),
            {
                str(name): ControlVariable(
                    tuple((int(value), str(item)) for value, item in entry["items"]), str(entry["text"])
                )
                for name, entry in document["variables"].items()
            },
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise BuildError(f"{library} did not list its control variables: {error!r}") from error


Settings = Iterable[tuple[str, str]]
Variables = tuple[tuple[str, str], ...]


class NoSettingError(BuildError):
    """The library has no such setting."""

    need = "setting"


def setting_variables(mpi: Mpi, settings: Settings) -> Variables:
    """The variables, sorted, that apply these settings in a library. Binding, which the launcher does, and the link of
    a cluster need none.

    Raises NoSettingError, and BuildError if the library's control variables cannot be listed."""
    found: dict[str, str] = {}
    for name, value in settings:
        if name == COLLECTIVE_ALGORITHM:
            for operation, algorithm in chosen_algorithms(value):
                found |= _algorithm(mpi, operation, algorithm)
        elif name == TRANSPORT:
            found |= _transport(mpi, value)
        elif name not in (BINDING, CLUSTER_LINK):
            raise NoSettingError(f"{mpi.title} has no setting {name}")
    return tuple(sorted(found.items()))


def _algorithm(mpi: Mpi, operation: str, algorithm: str) -> Mapping[str, str]:
    if mpi.family is MpiFamily.INTEL:
        return _intel_algorithm(mpi, operation, algorithm)
    variables = control_variables(mpi)
    if mpi.family is MpiFamily.OPENMPI:
        return _openmpi_algorithm(mpi, variables, operation, algorithm)
    return _mpich_algorithm(mpi, variables, operation, algorithm)


def _transport(mpi: Mpi, transport: str) -> Mapping[str, str]:
    if mpi.family is MpiFamily.INTEL:
        return _INTEL_TRANSPORTS[transport]
    variables = control_variables(mpi)
    if mpi.family is MpiFamily.OPENMPI:
        return _openmpi_transport(mpi, variables, transport)
    return _mpich_transport(mpi, variables, transport)


# --- Open MPI: coll/tuned for blocking collectives, coll/libnbc for nonblocking ones.

_IGNORE = "ignore"
_MOST = "100"


def _openmpi_algorithm(mpi: Mpi, variables: ControlVariables, operation: str, algorithm: str) -> Mapping[str, str]:
    """Forces the algorithm by its number. The component that obeys gets the highest priority; otherwise a preferred one
    (han, hcoll, ucc) would run the collective its own way."""
    component = "libnbc" if operation.startswith("i") else "tuned"
    name = f"coll_{component}_{operation.replace('-', '_')}_algorithm"
    known = variables.variables.get(name)
    items = [] if known is None else [(value, item) for value, item in known.items if item != _IGNORE]
    own = _chosen(mpi, operation, algorithm, [item for _, item in items])
    number = next(value for value, item in items if item == own)
    forced = {f"OMPI_MCA_{name}": str(number), f"OMPI_MCA_coll_{component}_priority": _MOST}
    if component == "tuned":
        forced["OMPI_MCA_coll_tuned_use_dynamic_rules"] = "1"
    return forced


def _openmpi_transport(mpi: Mpi, variables: ControlVariables, transport: str) -> Mapping[str, str]:
    """ob1 with one byte transfer layer (and `self`), or one of the matching transport layers."""
    shared = "sm" if variables.have("btl_sm_") and not _is_before_5(mpi) else "vader"
    choices = {
        "shm": (f"btl_{shared}_", {"pml": "ob1", "btl": f"self,{shared}"}),
        "tcp": ("btl_tcp_", {"pml": "ob1", "btl": "self,tcp"}),
        "ucx": ("pml_ucx_", {"pml": "ucx"}),
        "ofi": ("mtl_ofi_", {"pml": "cm", "mtl": "ofi"}),
    }
    _need_one_of(mpi, transport, [name for name, (component, _) in choices.items() if variables.have(component)])
    chosen = dict(choices[transport][1])
    if transport == "ucx":
        # Without these, the component declines on machines without an adapter that it supports.
        chosen |= {name: "any" for name in ("pml_ucx_tls", "pml_ucx_devices") if name in variables}
    return {f"OMPI_MCA_{name}": value for name, value in chosen.items()}


def _is_before_5(mpi: Mpi) -> bool:
    """The shared-memory layer was named vader from 1.9 to 4.1, when sm was another one; since 5 it is named sm."""
    major = mpi.version.partition(".")[0]
    return major.isdecimal() and int(major) < 5


# --- MPICH and its derivatives.

_AUTOMATIC = frozenset({"auto", "sched_auto"})
# fmt: off
_MPICH_ALGORITHMS = (
    "nb", "smp", "binomial", "scatter_recursive_doubling_allgather", "scatter_ring_allgather", "tree",
    "pipelined_tree", "linear", "brucks", "recursive_doubling", "ring", "pairwise", "pairwise_sendrecv_replace",
    "scattered", "reduce_scatter_gather", "naive", "noncommutative", "reduce_scatter_allgather",
    "recursive_halving", "dissemination", "scatterv_recexch_allgatherv", "recexch_doubling", "inplace",
    "recexch_halving", "permuted_sendrecv", "blocked", "recexch", "recexch_single_buffer",
    "recexch_multiple_buffer", "recexch_reduce_scatter_recexch_allgatherv",
)
# fmt: on
"""Of MPICH 4.0 (src/mpi/coll/coll_algorithms.txt), whose help text has no line ends, unlike later versions."""
_HELP_LINE = re.compile(r"^([a-z][a-z0-9_]{1,80}) *- ", re.MULTILINE)
_HELP_WORD = re.compile(r"([a-z0-9_]{2,200}) *- ")
_KINDS = ("sched_", "tsp_", "gentran_", "")


def _mpich_algorithm(mpi: Mpi, variables: ControlVariables, operation: str, algorithm: str) -> Mapping[str, str]:
    """Sets the algorithm by name. The device must not replace it by its own, and if the algorithm does not support a
    call, the library must fail instead of silently using another."""
    bare = _in_capitals(operation)
    name = f"MPIR_CVAR_{bare}_INTRA_ALGORITHM"
    known = variables.variables.get(name)
    own = _chosen(mpi, operation, algorithm, [] if known is None else _named_in_help(known.text))
    strict = {"MPIR_CVAR_COLLECTIVE_FALLBACK": "error", "MPIR_CVAR_DEVICE_COLLECTIVES": "percoll"}
    strict[f"MPIR_CVAR_{bare}_DEVICE_COLLECTIVE"] = "0"
    return {name: own, **{each: value for each, value in strict.items() if each in variables}}


def _named_in_help(text: str) -> list[str]:
    """The values that a help text lists as "name - description"; MPICH 4.0 has them without line ends."""
    if "\n" in text:
        names = _HELP_LINE.findall(text)
    else:
        known = sorted((kind + name for kind in _KINDS for name in _MPICH_ALGORITHMS), key=len, reverse=True)
        words = _HELP_WORD.findall(text)
        names = [found for word in words if (found := next((name for name in known if word.endswith(name)), None))]
    return [name for name in dict.fromkeys(names) if name not in _AUTOMATIC]


def _mpich_transport(mpi: Mpi, variables: ControlVariables, transport: str) -> Mapping[str, str]:
    """Ranks on one host use shared memory unless NOLOCAL disables it; then they use a network module, of which some
    builds have two."""
    modules = _network_modules(variables.version)
    over = next((module for module in ("ofi", "ucx") if module in modules), None)
    offered = [*modules, *(["tcp"] if over else []), *(["shm"] if "MPIR_CVAR_NOLOCAL" in variables else [])]
    _need_one_of(mpi, transport, offered if "MPIR_CVAR_NOLOCAL" in variables else [])
    if transport == "shm":
        return {"MPIR_CVAR_NOLOCAL": "0"}
    module = transport if transport in modules else str(over)
    chosen = {"MPIR_CVAR_NOLOCAL": "1"}
    if len(modules) > 1:
        chosen["MPIR_CVAR_CH4_NETMOD"] = module
    if transport == "tcp":
        chosen |= {"FI_PROVIDER": "tcp"} if module == "ofi" else {"UCX_TLS": "tcp,self"}
    return chosen


def _network_modules(version: str) -> tuple[str, ...]:
    """Those of "MPICH Device:  ch4:ucx ofi" in the library's version text."""
    for line in version.splitlines():
        label, _, value = line.partition(":")
        if label.strip() == "MPICH Device" and value.strip().startswith("ch4:"):
            words = re.split(r"[ ,:]+", value.strip())
            return tuple(word for word in words if word in ("ucx", "ofi"))
    return ()


# --- Intel MPI, as in its developer reference (2021.8 and later).

_INTEL_TRANSPORTS: Mapping[str, Mapping[str, str]] = {
    "shm": {"I_MPI_FABRICS": "shm"},
    "tcp": {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "tcp"},
    "ucx": {"I_MPI_FABRICS": "ofi", "I_MPI_OFI_PROVIDER": "mlx"},
    "ofi": {"I_MPI_FABRICS": "ofi"},
}


def _intel_algorithm(mpi: Mpi, operation: str, algorithm: str) -> Mapping[str, str]:
    """Presets have numbers, which its reference lists; since 2021.14 there are more presets than algorithms, so a name
    would be ambiguous."""
    name = f"I_MPI_ADJUST_{_in_capitals(operation)}"
    if not re.fullmatch(r"[0-9]{1,3}", algorithm):
        raise NoSettingError(
            f"{mpi.title} uses numbers, not names, for the algorithms of {operation}",
            f"use the number that its reference lists for {name}, such as {operation}:1",
        )
    return {name: algorithm}


def _in_capitals(operation: str) -> str:
    return operation.replace("-", "_").upper()


# --- Names.

_ALIASES = {
    "basic-linear": "linear",
    "brucks": "bruck",
    "modified-bruck": "bruck",
    "neighbor": "neighbor-exchange",
    "reduce-scatter-allgather": "rabenseifner",
    "reduce-scatter-gather": "rabenseifner",
    "dissemination": "bruck",
}
"""A library's name with hyphens -> the common name. Open MPI calls the dissemination barrier Bruck's."""


def portable(own: str) -> str:
    """The common name of an algorithm: the library's name with hyphens, or its alias."""
    name = own.lower().replace("_", "-").removeprefix("sched-")
    return _ALIASES.get(name, name)


def _chosen(mpi: Mpi, operation: str, algorithm: str, own: Sequence[str]) -> str:
    """The library's own name of an algorithm. Raises NoSettingError, which lists those that it has."""
    if not own:
        raise NoSettingError(f"{mpi.title} has no setting for the algorithm of {operation}", "leave it at auto")
    names: dict[str, str] = {}
    for name in own:
        names.setdefault(portable(name), name)
    wanted = algorithm.lower().replace("_", "-")
    exact = next((name for name in own if name.replace("_", "-") == wanted), None)
    found = exact or names.get(_ALIASES.get(wanted, wanted))
    if found is None:
        near = difflib.get_close_matches(wanted, names, n=1, cutoff=0.7)
        hint = f"did you mean {near[0]}? " if near else ""
        raise NoSettingError(
            f"{mpi.title} has no algorithm {algorithm} for {operation}", f"{hint}It has {', '.join(sorted(names))}"
        )
    return found


def _need_one_of(mpi: Mpi, transport: str, offered: Sequence[str]) -> None:
    if transport not in offered:
        has = f"it has {', '.join(offered)}" if offered else "it has no setting for it: leave it at auto"
        raise NoSettingError(f"{mpi.title} has no transport {transport}", has)
