"""The axes that vary what programs are built and run in: their names, their values, what is chosen by them."""

from __future__ import annotations

import re
from collections.abc import Mapping

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.environment_choice import AS_IT_IS, EnvironmentChoice
from seatrial.model.parameter import Value
from seatrial.model.secrets import sounds_like_a_secret
from seatrial.model.study import ENVIRONMENT_PREFIX
from seatrial.plan.study_yaml import Node

COMPILER = ENVIRONMENT_PREFIX + "compiler"
FLAGS = ENVIRONMENT_PREFIX + "flags"
OF_BUILDS = (COMPILER, FLAGS)
"""Those that change only what is compiled."""

_MPI = ENVIRONMENT_PREFIX + "mpi"
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,127}")
_LONGEST_VALUE = 4096

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


def check_environment_axis(name: str) -> None:
    """Raises UsageError where `name`, which begins with "environment.", is none that a study can vary."""
    if name in OF_BUILDS:
        return
    if name == _MPI:
        raise UsageError(
            "this version of seatrial runs no MPI programs, so there is nothing to vary",
            f"the environment has {COMPILER}, {FLAGS} and variables such as {ENVIRONMENT_PREFIX}OMP_WAIT_POLICY",
        )
    variable = name.removeprefix(ENVIRONMENT_PREFIX)
    if not _VARIABLE.fullmatch(variable):
        known = UnknownNameError("axis", name, (COMPILER, FLAGS))
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
    if node.value is None:
        return None
    if not node.is_scalar or not node.written.isprintable() or len(node.written) > _LONGEST_VALUE:
        raise UsageError(f"{node.shown()} is no value of a variable", f"it takes {ACCEPTED_VARIABLE}")
    return node.written


def choice_of(given: Mapping[str, Value | None]) -> EnvironmentChoice:
    """What the values of a point's axes choose of the environment."""
    chosen = {name: value for name, value in given.items() if name.startswith(ENVIRONMENT_PREFIX)}
    if not chosen:
        return AS_IT_IS
    compiler, flags = chosen.pop(COMPILER, None), chosen.pop(FLAGS, None)
    variables = {
        name.removeprefix(ENVIRONMENT_PREFIX): None if value is None else str(value) for name, value in chosen.items()
    }
    return EnvironmentChoice(
        None if compiler is None else str(compiler),
        () if flags is None else tuple(str(flags).split()),
        tuple(sorted(variables.items())),
    )


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
