"""Loads environment modules, by the module command of this machine (Lmod or Environment Modules).

A login shell finds the command in LMOD_CMD or MODULES_CMD. Asked for Python, it prints assignments to `os.environ`;
they are read, not run.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator, Mapping, Sequence

from seatrial.environments.asking import ask
from seatrial.errors import BuildError

_COMMANDS = ("LMOD_CMD", "MODULES_CMD")
_LIMIT_S = 60.0

Changes = tuple[tuple[str, str | None], ...]


class NoModuleError(BuildError):
    """A module cannot be loaded."""

    need = "module"


def load_modules(names: Sequence[str], variables: Mapping[str, str] | None = None) -> Changes:
    """The variables that loading these modules sets (None: unsets), without the module command's own. Raises
    NoModuleError."""
    variables = os.environ if variables is None else variables
    command = next((found for name in _COMMANDS if (found := variables.get(name))), None)
    asked = f"module load {' '.join(names)}"
    if command is None:
        todo = f"run seatrial from a login shell, in which `module` works (it sets {' or '.join(_COMMANDS)})"
        raise NoModuleError(f"{asked}: there is no module command here", todo)
    try:
        answer = ask([command, "python", "load", *names], variables, _LIMIT_S)
    except BuildError as error:
        raise NoModuleError(f"{asked} fails: {_said(error.output) or error.message}", "try it in a shell") from error
    try:
        changes = dict(_changes(ast.parse(answer.stdout)))
    except (SyntaxError, ValueError) as error:
        why = f"{asked}: the answer of {command} is not understood ({error})"
        raise NoModuleError(why, "load it in the shell that starts seatrial") from error
    if not changes:
        raise NoModuleError(f"{asked} changes nothing: {_said(answer.stderr)}", "try it in a shell")
    return tuple((name, value) for name, value in changes.items() if not name.startswith("_"))


def _changes(answer: ast.Module) -> Iterator[tuple[str, str | None]]:
    """The assignments and deletions of an answer. Raises ValueError for anything else."""
    for statement in answer.body:
        match statement:
            case ast.Assign(targets=[ast.Subscript() as target], value=ast.Constant(value=str() as value)):
                yield _variable(target), value
            case ast.Delete(targets=[ast.Subscript() as target]):
                yield _variable(target), None
            case ast.Import(names=[ast.alias(name="os")]):
                continue
            case ast.Assign(targets=[ast.Name(id="_mlstatus")], value=ast.Constant(value=True)):
                continue
            case _:
                raise ValueError(f"line {statement.lineno} is not an assignment to a variable")


def _variable(target: ast.Subscript) -> str:
    match target:
        case ast.Subscript(
            value=ast.Attribute(value=ast.Name(id="os"), attr="environ"), slice=ast.Constant(value=str() as name)
        ):
            return name
        case _:
            raise ValueError(f"line {target.lineno} is not an assignment to a variable")


def _said(text: str) -> str:
    return " ".join(text.split())[:300]
