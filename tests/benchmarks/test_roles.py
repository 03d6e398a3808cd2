"""Who knows what a figure is the measure of: its benchmark declares it, and nobody else knows benchmarks by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import seatrial
from seatrial.benchmarks import benchmark_of, registry
from seatrial.model.benchmark.benchmark import Ceiling, Role

SOURCE = Path(seatrial.__file__).parent
EXCEPTIONS = {
    "applications": "a reader says which benchmark has the same measure as the tool whose output it reads",
}
"""Folders below src/seatrial, and why names may stand there."""
NAME = re.compile(
    rf"(?<![\w.-])({'|'.join(sorted((re.escape(n) for n in registry() if '.' in n), key=len, reverse=True))})(?![\w-])"
)


def own_files() -> dict[str, set[str]]:
    """Name -> the files of a benchmark: of its declaration, which is beside its program, and others of its area that
    begin with its stem."""
    found: dict[str, set[str]] = {}
    for name, benchmark in registry().items():
        area, _, stem = name.partition(".")
        beside = [*(SOURCE / "benchmarks" / area).glob(f"{stem.replace('-', '_')}*")]
        if (source := benchmark.program.source) is not None:
            beside.append(source.with_suffix(".py"))
        found[name] = {str(file.relative_to(SOURCE)) for file in beside}
    return found


def texts_of(file: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of every string of a module but its docstrings; of other files, every line. None of a module that
    names no benchmark."""
    written = file.read_text()
    if file.suffix != ".py":
        yield from enumerate(written.splitlines(), start=1)
        return
    if not NAME.search(written):
        return
    tree = ast.parse(written)
    explained = {
        id(statement.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in explained:
            yield node.lineno, node.value


def test_no_benchmark_is_known_by_name_outside_its_own_files() -> None:
    own = own_files()
    files = [*SOURCE.rglob("*.py"), *SOURCE.glob("report/pages/templates/**/*.*")]
    assert len(files) > 500
    found = [
        f"{place}:{line}: {match[1]}"
        for file in files
        if (place := str(file.relative_to(SOURCE))).split("/", maxsplit=1)[0] not in EXCEPTIONS
        for line, text in texts_of(file)
        for match in NAME.finditer(text)
        if place not in own[match[1]]
    ]
    assert found == [], "ask for the role of a figure (model/benchmark/benchmark.py), or declare one"


@pytest.mark.parametrize("folder", EXCEPTIONS)
def test_every_exception_is_needed(folder: str) -> None:
    assert any(NAME.search(text) for file in (SOURCE / folder).rglob("*.py") for _, text in texts_of(file))


@pytest.mark.parametrize("role", Role)
def test_every_role_is_measured(role: Role) -> None:
    figures = [figure for figure in registry()[benchmark_of(role)].figures if figure.role is role]
    assert figures and len({figure.unit for figure in figures}) == 1


def test_a_ceiling_is_of_roles_whose_parameters_it_names() -> None:
    for benchmark in registry().values():
        point = benchmark.point({})
        for figure in benchmark.figures:
            if figure.ceiling is None or benchmark.name.startswith("apps."):
                continue  # those of applications are held against resolved points in their own tests
            found = figure.ceiling({**point, "threads": 1})
            for ceiling in (found,) if isinstance(found, Ceiling) else found or ():
                source = registry()[benchmark_of(ceiling.roles[0])]
                assert {*ceiling.parameters, *ceiling.ignored} <= {parameter.name for parameter in source.parameters}
