"""The axes that vary what programs are built and run in: their names, their values, what is chosen by them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model import mpi_settings
from seatrial.model.benchmark import Benchmark
from seatrial.model.environment_choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.mpi_settings import (
    BINDINGS,
    DEFAULTS,
    OPERATIONS,
    TRANSPORTS,
    chosen_algorithms,
    is_collective,
    operation_of,
)
from seatrial.model.parameter import Params, Value
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.model.study import ENVIRONMENT_PREFIX
from seatrial.plan.study_yaml import Node

COMPILER = ENVIRONMENT_PREFIX + "compiler"
FLAGS = ENVIRONMENT_PREFIX + "flags"
OF_BUILDS = (COMPILER, FLAGS)
"""Those that change only what is compiled."""

MPI = ENVIRONMENT_PREFIX + "mpi"
COLLECTIVE_ALGORITHM = ENVIRONMENT_PREFIX + mpi_settings.COLLECTIVE_ALGORITHM
TRANSPORT = ENVIRONMENT_PREFIX + mpi_settings.TRANSPORT
BINDING = ENVIRONMENT_PREFIX + mpi_settings.BINDING
SETTINGS = (COLLECTIVE_ALGORITHM, TRANSPORT, BINDING)
OF_RANKS = (MPI, *SETTINGS)
"""Those that change only programs of many ranks."""
NAMED = (*OF_BUILDS, *OF_RANKS)
"""All but variables, which have the names that they have."""

VARIABLE = r"[A-Z_][A-Z0-9_]{0,127}|[A-Z][A-Z0-9]{0,31}_[A-Za-z0-9_]{1,127}"
"""Upper case, or behind an upper-case word as in OMPI_MCA_btl: so a misspelt axis is not taken for a variable."""
_LONGEST_VALUE = 4096

_MPI_NAME = re.compile(r"[A-Za-z0-9_/.~][A-Za-z0-9_/.+@~-]{0,254}")
_ALGORITHM = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,79}")
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
"""Flags that choose code. Those of GCC and Clang that load code, or read and write files of their own, are left out:
a family that has such members (-f) takes a value only where the value is known to be no file."""

ACCEPTED_FLAGS = (
    "flags in one text, such as '-O2 -march=x86-64-v3': "
    "-O, -m, -f, -D, -U, -W, -g, -std=, -pthread, -static, --param=, "
    "none that reads or writes another file"
)
ACCEPTED_COMPILER = "the command of a compiler, such as g++ or clang++-16"
ACCEPTED_VARIABLE = "text, a number, or null to unset it"
ACCEPTED_MPI = "an MPI library as `seatrial list` names it, such as openmpi, mpich or openmpi-5.0.11"
ACCEPTED_ALGORITHM = (
    "auto, or an algorithm such as recursive-doubling, ring or rabenseifner; with its operation where a benchmark is "
    "no collective itself: allreduce:ring, or allreduce:ring+bcast:binomial"
)
ACCEPTED_TRANSPORT = f"one of {', '.join(TRANSPORTS)}"
ACCEPTED_BINDING = (
    f"{BINDINGS[0]} (each rank on CPUs of its own, as always) or {BINDINGS[1]} (where the kernel puts it)"
)
ACCEPTED = {
    MPI: ACCEPTED_MPI,
    COLLECTIVE_ALGORITHM: ACCEPTED_ALGORITHM,
    TRANSPORT: ACCEPTED_TRANSPORT,
    BINDING: ACCEPTED_BINDING,
}
"""What the axes of programs with many ranks take, in words."""


def check_environment_axis(name: str) -> None:
    """Raises UsageError where `name`, which begins with "environment.", is none that a study can vary."""
    if name in NAMED:
        return
    variable = name.removeprefix(ENVIRONMENT_PREFIX)
    if not re.fullmatch(VARIABLE, variable):
        known = UnknownNameError("axis", name, NAMED)
        raise UsageError(known.message, f"{known.todo} Variables are upper case: {ENVIRONMENT_PREFIX}OMP_WAIT_POLICY")
    if variable == "CXX":
        raise UsageError("it would change nothing: programs are built before they run", f"vary {COMPILER} instead")
    if sounds_like_a_secret(variable):
        raise UsageError(
            "the name sounds like a secret, and the values of axes stand in records and pages",
            "set it outside of the study",
        )


def environment_value(name: str, node: Node) -> Value | None:
    """One value of such an axis. Raises UsageError, saying what is accepted."""
    if name == COMPILER:
        return _compiler(node)
    if name == FLAGS:
        return _flags(node)
    if name in OF_RANKS:
        return _of_ranks(name, node)
    if node.value is None:
        return None
    if not node.is_scalar or not node.written.isprintable() or len(node.written) > _LONGEST_VALUE:
        raise UsageError(f"{node.shown()} is no value of a variable", f"it takes {ACCEPTED_VARIABLE}")
    return node.written


def concerns_environment(name: str, benchmark: Benchmark) -> bool:
    """Whether an axis of the environment changes anything about a benchmark: a compiler and its flags what is compiled
    here, an MPI library and its settings what has ranks, the algorithm of a collective what may do one. Of our own
    programs these are the collectives; an application may do any."""
    is_built = benchmark.program.source is not None
    if name in OF_BUILDS:
        return is_built
    if name == COLLECTIVE_ALGORITHM and is_built:
        return is_collective(benchmark.name)
    return name not in OF_RANKS or benchmark.ranks == "mpi"


def refuse_for(name: str, value: Value | None, benchmark: Benchmark) -> None:
    """Raise UsageError for a value that is right by itself and says too little for this benchmark."""
    if name != COLLECTIVE_ALGORITHM or value == mpi_settings.AUTO or is_collective(benchmark.name):
        return
    for operation, algorithm in chosen_algorithms(str(value)):
        if not operation:
            raise UsageError(
                f"{benchmark.name} is no collective itself, so {algorithm!r} does not tell of which one it is",
                f"write OPERATION:ALGORITHM, such as allreduce:{algorithm}",
            )


def choice_of(given: Mapping[str, Value | None], benchmark: Benchmark, parameters: Params) -> EnvironmentChoice:
    """What the values of a point's axes choose of the environment of a benchmark at these parameters. A setting at the
    value that sets nothing is none: its points are those without it."""
    chosen = {name: value for name, value in given.items() if name.startswith(ENVIRONMENT_PREFIX)}
    if not chosen:
        return AS_IT_IS
    compiler, flags, mpi = (chosen.pop(name, None) for name in (COMPILER, FLAGS, MPI))
    settings = {name.removeprefix(ENVIRONMENT_PREFIX): str(chosen.pop(name)) for name in SETTINGS if name in chosen}
    if mpi_settings.COLLECTIVE_ALGORITHM in settings:
        settings[mpi_settings.COLLECTIVE_ALGORITHM] = _with_operations(
            settings[mpi_settings.COLLECTIVE_ALGORITHM], operation_of(benchmark.name, parameters)
        )
    variables = {
        name.removeprefix(ENVIRONMENT_PREFIX): None if value is None else str(value) for name, value in chosen.items()
    }
    return EnvironmentChoice(
        None if compiler is None else str(compiler),
        () if flags is None else tuple(str(flags).split()),
        tuple(sorted(variables.items())),
        None if mpi is None else str(mpi),
        tuple(sorted((name, value) for name, value in settings.items() if value != DEFAULTS[name])),
    )


def _with_operations(value: str, operation: str | None) -> str:
    """The algorithms, each with its operation: that of the benchmark where none is named."""
    if value == mpi_settings.AUTO:
        return value
    return "+".join(sorted(f"{named or operation}:{one}" for named, one in chosen_algorithms(value)))


def _compiler(node: Node) -> str:
    if not isinstance(node.value, str) or not _COMMAND.fullmatch(node.value):
        raise UsageError(f"{node.shown()} is no command", f"it takes {ACCEPTED_COMPILER}")
    return node.value


def _flags(node: Node) -> str:
    """The flags with one blank between two. A name that is not known to be harmless is refused: compilers have hundreds
    of flags, and those that load code or write files have little in common."""
    if not isinstance(node.value, str) or not node.value.isprintable() or len(node.value) > _LONGEST_VALUE:
        raise UsageError(f"{node.shown()} is no text of flags", f"it takes {ACCEPTED_FLAGS}")
    flags = node.value.split()
    for flag in flags:
        if not flag.startswith("-"):
            raise UsageError(f"{flag!r} does not begin with '-'", f"it takes {ACCEPTED_FLAGS}")
        if not _FLAG.fullmatch(flag):
            raise UsageError(f"the flag {flag!r} is not accepted", f"it takes {ACCEPTED_FLAGS}")
    return " ".join(flags)


def _of_ranks(name: str, node: Node) -> str:
    """The value of an axis of programs with many ranks."""
    text = node.written if node.is_scalar and node.value is not None else ""
    if name == COLLECTIVE_ALGORITHM:
        return _algorithms(text, node)
    words = {TRANSPORT: TRANSPORTS, BINDING: BINDINGS}.get(name)
    if words is not None and text not in words:
        known = UnknownNameError(name.removeprefix(ENVIRONMENT_PREFIX), text[:_LONGEST_VALUE], words)
        raise UsageError(f"{node.shown()} is none", f"{known.todo} It takes {ACCEPTED[name]}")
    if words is None and not _MPI_NAME.fullmatch(text):
        raise UsageError(f"{node.shown()} is no name of a library", f"it takes {ACCEPTED[name]}")
    return text


def _algorithms(text: str, node: Node) -> str:
    """One algorithm, or several with their operations; which of them a library has is known only where it is."""
    parts = chosen_algorithms(text)
    named = [operation for operation, _ in parts]
    for operation, algorithm in parts:
        if not _ALGORITHM.fullmatch(algorithm) or (
            mpi_settings.AUTO in (algorithm, text) and text != mpi_settings.AUTO
        ):
            raise UsageError(f"{node.shown()} is no algorithm", f"it takes {ACCEPTED_ALGORITHM}")
        if operation and operation not in OPERATIONS:
            known = UnknownNameError("collective", operation, OPERATIONS)
            raise UsageError(known.message, known.todo)
    if len(set(named)) < len(named):
        raise UsageError(f"{node.shown()} chooses twice for the same operation", "leave one of them")
    return text
