"""The axes that vary the environment of programs: their names, their values and what each selects."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from seatrial.errors import UnknownNameError, UsageError, did_you_mean, nearest_names
from seatrial.model.benchmark import python_script
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.environment import container as containers
from seatrial.model.environment import mpi as mpi_settings
from seatrial.model.environment.choice import AS_IT_IS, TEXT_PARTS, EnvironmentChoice
from seatrial.model.environment.container import ACCEPTED_DEVICE, ACCEPTED_MOUNT, SEPARATOR, devices_of, mounts_of
from seatrial.model.environment.machine_settings import MACHINE_SETTINGS, UNCHANGED
from seatrial.model.environment.mpi import (
    BINDINGS,
    CLUSTER_LINK,
    DEFAULTS,
    OPERATIONS,
    TRANSPORTS,
    chosen_algorithms,
    is_collective,
    operation_of,
)
from seatrial.model.frozen import Frozen
from seatrial.model.machine import guest as guests
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.model.study.study import ENVIRONMENT_PREFIX, is_of_environment
from seatrial.plan.files import YamlNode

COMPILER = ENVIRONMENT_PREFIX + "compiler"
FLAGS = ENVIRONMENT_PREFIX + "flags"
MPI = ENVIRONMENT_PREFIX + "mpi"
COLLECTIVE_ALGORITHM = ENVIRONMENT_PREFIX + mpi_settings.COLLECTIVE_ALGORITHM
TRANSPORT = ENVIRONMENT_PREFIX + mpi_settings.TRANSPORT
BINDING = ENVIRONMENT_PREFIX + mpi_settings.BINDING
SETTINGS = (COLLECTIVE_ALGORITHM, TRANSPORT, BINDING, CLUSTER_LINK)
CONTAINER = ENVIRONMENT_PREFIX + containers.CONTAINER
CONTAINER_RUNTIME = ENVIRONMENT_PREFIX + containers.CONTAINER_RUNTIME
CONTAINER_MPI = ENVIRONMENT_PREFIX + containers.CONTAINER_MPI
VM = ENVIRONMENT_PREFIX + guests.VM
CONTAINER_BUILD = ENVIRONMENT_PREFIX + containers.CONTAINER_BUILD
CONTAINER_MOUNTS = ENVIRONMENT_PREFIX + containers.CONTAINER_MOUNTS
CONTAINER_DEVICES = ENVIRONMENT_PREFIX + containers.CONTAINER_DEVICES
PYTHON = ENVIRONMENT_PREFIX + python_script.PYTHON
"""Affects only scripts of libraries of Python."""
OF_CONTAINERS = (CONTAINER, CONTAINER_RUNTIME, CONTAINER_MPI, CONTAINER_BUILD, CONTAINER_MOUNTS, CONTAINER_DEVICES)
OF_BUILDS = (COMPILER, FLAGS, CONTAINER_BUILD)
"""Axes that affect only benchmarks compiled here."""

OF_RANKS = (MPI, *SETTINGS, CONTAINER_MPI)
"""Axes that affect only programs with MPI ranks."""
OF_MACHINES = tuple(ENVIRONMENT_PREFIX + name for name in MACHINE_SETTINGS)
OF_GPUS = frozenset(ENVIRONMENT_PREFIX + name for name, one in MACHINE_SETTINGS.items() if one.of_gpus)
"""Axes that affect only programs that may use a GPU."""
NAMED = (
    *(*OF_BUILDS, *OF_RANKS, CONTAINER, CONTAINER_RUNTIME, CONTAINER_MOUNTS, CONTAINER_DEVICES, VM, PYTHON),
    *OF_MACHINES,
)
"""All axes of the environment except environment variables."""

VARIABLE = r"[A-Z_][A-Z0-9_]{0,127}|[A-Z][A-Z0-9]{0,31}_[A-Za-z0-9_]{1,127}"
"""Upper case, or after an upper-case word as in OMPI_MCA_btl, so that a misspelt axis is not taken for a variable."""
_LONGEST_VALUE = 4096

_MPI_NAME = re.compile(r"[A-Za-z0-9_/.~][A-Za-z0-9_/.+@~-]{0,254}")
_ALGORITHM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
_RATE = re.compile(r"\d{1,6}(?:\.\d{1,6})?[kmgt]?bit")
_GUEST = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
_COMMAND = re.compile(r"[A-Za-z0-9_/.][A-Za-z0-9_/.+-]{0,254}")

_FLAG = re.compile(
    r"""-O(?:[0-3sgz]|fast)?
    | -m(?!llvm|link|relocation)[a-z][A-Za-z0-9_-]*(?:=[A-Za-z0-9_.,:+-]+)?
    | -f(?!plugin|pass-plugin|test-cov|cov|dump|stack-usage|callgraph|save|time-|record|module|pch|xray|crash|use-ld
           |opt-info|optimization-record|branch-prob|auto-profile|memory-profile|cs-profile|analyzer|json|embed
           |offload|syntax-only|preprocessed)
        (?![a-z-]*(?:profile-(?:gen|use|dir|arcs|instr|list)|prefix-map|file|output))
        [a-z][a-z0-9-]*
    | -f(?:fp-(?:contract|model|exception-behavior)|excess-precision|denormal-fp-math[a-z0-9-]*|openmp|lto
           |(?:vect|simd)-cost-model|veclib|vec(?:tor)?-[a-z-]+|align-[a-z]+|inline-limit|tree-parallelize-loops
           |tls-model|visibility|cf-protection|sanitize|stack-protector|zero-call-used-regs|trivial-auto-var-init
           |reorder-blocks-algorithm|ira-[a-z-]+|pack-struct|template-depth|constexpr-[a-z-]+|unroll-[a-z-]+
           |prefetch-loop-arrays|split-stack|live-patching|abi-version|complex-arithmetic|basic-block-sections)
        =[A-Za-z0-9_,:+-]+
    | -[DU][A-Za-z_][A-Za-z0-9_]*(?:=\S*)?
    | -W(?![alp],)[a-z][A-Za-z0-9_+=-]*
    | -g[0-3]? | -std=[a-z0-9+]+ | -pthread | -pipe | -static(?:-[a-z+]+)? | -s | -w
    | --param=[a-z0-9-]+=[0-9]+""",
    re.VERBOSE,
)
"""Flags that affect code generation. Flags of GCC and Clang that load code, or read or write further files, are not
accepted: a group with such members (-f) accepts a value only if the value is known not to be a file."""


def check_environment_axis(name: str) -> None:
    """Raises UsageError if a study cannot vary `name`, which begins with "environment."."""
    if name in NAMED:
        return
    variable = name.removeprefix(ENVIRONMENT_PREFIX)
    if not re.fullmatch(VARIABLE, variable):
        known = UnknownNameError("axis", name, NAMED)
        near = nearest_names(variable, (axis.removeprefix(ENVIRONMENT_PREFIX) for axis in NAMED))
        upper = variable.upper()
        if near:
            todo = did_you_mean(ENVIRONMENT_PREFIX + axis for axis in near)
        elif re.fullmatch(VARIABLE, upper):
            todo = f"environment variables are upper case: {ENVIRONMENT_PREFIX}{upper}"
        else:
            todo = f"known: {', '.join(NAMED)}, or an environment variable: {ENVIRONMENT_PREFIX}OMP_WAIT_POLICY"
        raise UsageError(known.message, todo)
    if variable == "CXX":
        raise UsageError("it would have no effect: programs are built before they run", f"vary {COMPILER} instead")
    if sounds_like_a_secret(variable):
        raise UsageError(
            "the name suggests a secret, and values of axes appear in records and on pages", "set it outside the study"
        )


def environment_value(name: str, node: YamlNode) -> Value | None:
    """One value of an axis of the environment. Raises UsageError with the accepted values."""
    if name in AXES:
        return AXES[name].read(AXES[name], node)
    if node.value is None:
        return None
    if not node.is_scalar or not node.written.isprintable() or len(node.written) > _LONGEST_VALUE:
        raise UsageError(f"{node.shown()} is not a valid value of a variable", f"it takes {ACCEPTED_VARIABLE}")
    return node.written


def concerns_environment(name: str, benchmark: Benchmark) -> bool:
    """Whether an axis of the environment affects a benchmark: a compiler and its flags affect what is compiled here, an
    MPI library and its settings what has ranks, the algorithm of a collective what may call one, the clock of GPUs what
    may use one. Of our own programs only some benchmarks do; an application, and a command, may do anything."""
    program = benchmark.program
    is_built = program.source is not None
    if name in OF_BUILDS:
        return is_built
    if name == PYTHON:
        return isinstance(program, python_script.PythonScript)
    if name in OF_GPUS and is_built:
        starts_commands = getattr(program, "commands", None) is not None
        return starts_commands or getattr(program, "library", None) == "gpu"
    if name == COLLECTIVE_ALGORITHM and is_built:
        return is_collective(benchmark.name)
    return name not in OF_RANKS or benchmark.ranks == "mpi"


def refuse_for(name: str, value: Value | None, benchmark: Benchmark) -> None:
    """Raise UsageError for an algorithm without an operation if the benchmark is not a collective."""
    if name != COLLECTIVE_ALGORITHM or value == mpi_settings.AUTO or is_collective(benchmark.name):
        return
    for operation, algorithm in chosen_algorithms(str(value)):
        if not operation:
            raise UsageError(
                f"{benchmark.name} is not a collective, so {algorithm!r} must name one",
                f"write OPERATION:ALGORITHM, such as allreduce:{algorithm}",
            )


def choice_of(given: Mapping[str, Value | None], benchmark: Benchmark, parameters: Params) -> EnvironmentChoice:
    """The environment that the values of axes select for a benchmark with these parameters. A setting at its default is
    left out, so that the experiment is the same as without it."""
    chosen = {
        name.removeprefix(ENVIRONMENT_PREFIX): None if value is None else str(value)
        for name, value in given.items()
        if is_of_environment(name)
    }
    if not chosen:
        return AS_IT_IS
    flags = chosen.pop("flags", None) or ""
    of_machine = {name: chosen.pop(name) for name in MACHINE_SETTINGS if name in chosen}
    parts: dict[str, Any] = {name: chosen.pop(name, None) for name in TEXT_PARTS}
    parts[guests.VM] = guest_of(given)
    is_contained = parts[containers.CONTAINER] not in (None, containers.NO_CONTAINER)
    for name in (axis.removeprefix(ENVIRONMENT_PREFIX) for axis in OF_CONTAINERS):
        if not is_contained or parts[name] == containers.NO_CONTAINER:
            parts[name] = None
    settings = {name: str(chosen.pop(name)) for name in mpi_settings.SETTINGS if name in chosen}
    if (algorithm := settings.get(mpi_settings.COLLECTIVE_ALGORITHM)) is not None:
        operation = operation_of(benchmark.name, parameters)
        settings[mpi_settings.COLLECTIVE_ALGORITHM] = _with_operations(algorithm, operation)
    return EnvironmentChoice(
        flags=tuple(flags.split()),
        variables=tuple(sorted(chosen.items())),
        mpi_settings=tuple(sorted((name, value) for name, value in settings.items() if value != DEFAULTS.get(name))),
        machine_settings=tuple((name, text) for name, text in of_machine.items() if text not in (None, UNCHANGED)),
        **parts,
    )


def guest_of(given: Mapping[str, Value | None]) -> str | None:
    """The guest that the values of axes select; None: this machine."""
    value = given.get(VM)
    return None if value in (None, guests.NO_GUEST) else str(value)


def _with_operations(value: str, operation: str | None) -> str:
    """The algorithms, each with its operation; the default is the operation of the benchmark."""
    if value == mpi_settings.AUTO:
        return value
    return "+".join(sorted(f"{named or operation}:{one}" for named, one in chosen_algorithms(value)))


class EnvironmentAxis(Frozen):
    """An axis of the environment other than a variable. `accepts` is what it accepts, for messages and schemas; `read`
    makes a value of it. `words` are all that it takes; with `suggests`, the nearest one is suggested for another."""

    name: str
    accepts: str
    read: Callable[[EnvironmentAxis, YamlNode], str]
    words: tuple[str, ...] = ()
    suggests: bool = True

    def refuse(self, node: YamlNode, what: str = "not accepted") -> UsageError:
        """An error about a value that is `what`."""
        return UsageError(f"{node.shown()} is {what}", f"it takes {self.accepts}")


def _text(node: YamlNode) -> str:
    return node.written if node.is_scalar and node.value is not None else ""


def _word(axis: EnvironmentAxis, node: YamlNode) -> str:
    text = _text(node)
    if text in axis.words:
        return text
    known = UnknownNameError(axis.name.removeprefix(ENVIRONMENT_PREFIX), text[:_LONGEST_VALUE], axis.words)
    if known.nearest and axis.suggests:
        raise UsageError(f"{node.shown()} is not accepted", known.todo)
    raise axis.refuse(node)


def _compiler(axis: EnvironmentAxis, node: YamlNode) -> str:
    if not isinstance(node.value, str) or not _COMMAND.fullmatch(node.value):
        raise axis.refuse(node, "not a command")
    return node.value


def _flags(axis: EnvironmentAxis, node: YamlNode) -> str:
    """The flags, separated by single spaces. Flags that are not known to be harmless are refused: compilers have
    hundreds, and those that load code or write files have little in common."""
    if not isinstance(node.value, str) or not node.value.isprintable() or len(node.value) > _LONGEST_VALUE:
        raise axis.refuse(node, "not text with flags")
    flags = node.value.split()
    for flag in flags:
        if not flag.startswith("-"):
            raise UsageError(f"{flag!r} does not begin with '-'", f"it takes {axis.accepts}")
        if not _FLAG.fullmatch(flag):
            raise UsageError(f"the flag {flag!r} is not accepted", f"it takes {axis.accepts}")
    return " ".join(flags)


def _library(axis: EnvironmentAxis, node: YamlNode) -> str:
    if not _MPI_NAME.fullmatch(_text(node)):
        raise axis.refuse(node, "not the name of a library")
    return node.written


def _algorithms(axis: EnvironmentAxis, node: YamlNode) -> str:
    """One algorithm, or several with their operations. Whether a library has them is checked on the machine."""
    text = _text(node)
    parts = chosen_algorithms(text)
    named = [operation for operation, _ in parts]
    for operation, algorithm in parts:
        is_auto_in_part = mpi_settings.AUTO in (algorithm, text) and text != mpi_settings.AUTO
        if not _ALGORITHM.fullmatch(algorithm) or is_auto_in_part:
            raise axis.refuse(node, "not an algorithm")
        if operation and operation not in OPERATIONS:
            known = UnknownNameError("collective", operation, OPERATIONS)
            raise UsageError(known.message, known.todo)
    if len(set(named)) < len(named):
        raise UsageError(f"{node.shown()} sets the same operation twice", "keep one of them")
    return text


def _link(axis: EnvironmentAxis, node: YamlNode) -> str:
    if not _RATE.fullmatch(_text(node).lower()):
        raise axis.refuse(node, "not the rate of a link")
    return node.written.lower()


def _image(axis: EnvironmentAxis, node: YamlNode) -> str:
    """An image as an absolute path or a name. What there is is looked up on the machine."""
    text = _text(node)
    if not text or not text.isprintable() or len(text) > _LONGEST_VALUE or text.startswith("-") or ":" in text[:1]:
        raise axis.refuse(node, "not an image")
    return str(Path(text).expanduser().absolute()) if text.startswith(("/", ".", "~")) else text


def _parts_of(text_of: Callable[[list[str]], Iterable[str]]) -> Callable[[EnvironmentAxis, YamlNode], str]:
    """Reads several mounts or devices, in the form in which they are compared."""

    def read(axis: EnvironmentAxis, node: YamlNode) -> str:
        text = _text(node)
        if text == containers.NO_CONTAINER:
            return text
        if not text or len(text) > _LONGEST_VALUE:
            raise axis.refuse(node)
        return SEPARATOR.join(text_of(text.split(SEPARATOR)))

    return read


def _interpreter(axis: EnvironmentAxis, node: YamlNode) -> str:
    """The absolute path of an interpreter, or of a virtual environment's folder; links are kept, since the folder of a
    virtual environment decides which libraries its interpreter has."""
    text = _text(node)
    if not text.startswith(("/", "./", "../", "~/")) or not text.isprintable() or len(text) > _LONGEST_VALUE:
        raise axis.refuse(node, "not the path of an interpreter")
    path = Path(text).expanduser().absolute()
    return str(path / "bin" / "python") if path.is_dir() else str(path)


def _guest(axis: EnvironmentAxis, node: YamlNode) -> str:
    """The name of a guest, or a topology file as an absolute path."""
    text = _text(node)
    if text.startswith(("/", "./", "../", "~/")) and text.isprintable() and len(text) <= _LONGEST_VALUE:
        return str(Path(text).expanduser().absolute())
    if not _GUEST.fullmatch(text):
        raise axis.refuse(node, "not a guest")
    return text


def _setting(axis: EnvironmentAxis, node: YamlNode) -> str:
    """The one text of a value, so that 2500MHz and 2.5GHz are one experiment."""
    if _text(node).lower() == UNCHANGED:
        return UNCHANGED
    setting = MACHINE_SETTINGS[axis.name.removeprefix(ENVIRONMENT_PREFIX)]
    try:
        return setting.text_of(setting.value_of(_text(node)))
    except UsageError as error:
        raise axis.refuse(node, "not a value of it") from error


_AXES = (
    EnvironmentAxis(COMPILER, "the command of a compiler, such as g++ or clang++-16", _compiler),
    EnvironmentAxis(
        FLAGS,
        "flags in one string, such as '-O2 -march=x86-64-v3': "
        "-O, -m, -f, -D, -U, -W, -g, -std=, -pthread, -static, --param=, "
        "but none that reads or writes another file",
        _flags,
    ),
    EnvironmentAxis(
        MPI, "an MPI library by its name in `seatrial list`, such as openmpi, mpich or openmpi-5.0.11", _library
    ),
    EnvironmentAxis(
        COLLECTIVE_ALGORITHM,
        "auto, or an algorithm such as recursive-doubling, ring or rabenseifner; with its operation if the benchmark "
        "is not a collective: allreduce:ring, or allreduce:ring+bcast:binomial",
        _algorithms,
    ),
    EnvironmentAxis(TRANSPORT, f"one of {', '.join(TRANSPORTS)}", _word, TRANSPORTS),
    EnvironmentAxis(
        BINDING,
        f"{BINDINGS[0]} (each rank on its own CPUs, the default) or {BINDINGS[1]} (placed by the kernel)",
        _word,
        BINDINGS,
    ),
    EnvironmentAxis(
        CLUSTER_LINK, "the rate of each node's link on a `seatrial cluster`, such as 10gbit or 500mbit", _link
    ),
    EnvironmentAxis(
        CONTAINER,
        f"{containers.NO_CONTAINER}, the name of a container of the site file, or an image: the path of a folder, of a "
        "squashfs or SIF file or of an OCI archive, or the name of an image that the runtime has stored",
        _image,
    ),
    EnvironmentAxis(CONTAINER_RUNTIME, f"one of {', '.join(containers.RUNTIMES)}", _word, containers.RUNTIMES),
    EnvironmentAxis(
        CONTAINER_MPI,
        "outside (the launcher is outside, each rank in its own container), joined (the same with one container for "
        "all ranks of a node), inside (launcher and ranks in one container) or bind (the launcher is outside, the "
        "host's MPI is brought into the image)",
        _word,
        containers.PLACEMENTS,
        suggests=False,
    ),
    EnvironmentAxis(
        CONTAINER_MOUNTS,
        f"{containers.NO_CONTAINER}, or mounts with {SEPARATOR} between them: {ACCEPTED_MOUNT}",
        _parts_of(lambda parts: map(str, mounts_of(parts))),
    ),
    EnvironmentAxis(
        CONTAINER_DEVICES,
        f"{containers.NO_CONTAINER}, or devices with {SEPARATOR} between them: {ACCEPTED_DEVICE}",
        _parts_of(lambda parts: (device.name for device in devices_of(parts))),
    ),
    EnvironmentAxis(
        CONTAINER_BUILD,
        "outside (built on the host, with the image's libraries), inside (built by the image's compiler) or brought "
        "(built on the host and brought in with the host's C library and loader)",
        _word,
        containers.BUILDS,
        suggests=False,
    ),
    EnvironmentAxis(
        PYTHON, "the path of a Python interpreter, or the folder of a virtual environment, with / in it", _interpreter
    ),
    EnvironmentAxis(
        VM,
        f"{guests.NO_GUEST} (this machine), {guests.RUNNING} (the guest that `seatrial vm up` started), the name of a "
        "guest of the site file, or the path of a topology file, whose guest is started for the run",
        _guest,
    ),
    *(
        EnvironmentAxis(ENVIRONMENT_PREFIX + name, f"{one.accepts}; or {UNCHANGED}", _setting)
        for name, one in MACHINE_SETTINGS.items()
    ),
)
AXES: Mapping[str, EnvironmentAxis] = {axis.name: axis for axis in _AXES}
ACCEPTED_VARIABLE = "text, a number, or null to unset it"
