"""Selects the tests to run against a mutant (suite_mutants.py): those of its line, file, package, or area."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mutation import Mutant

ROOT = Path(__file__).resolve().parents[1]
SOURCES = "src/seatrial/"

# The tests of programs and kernels, by path prefix; the first match counts. Test files that name the program or header
# run before these.
AREAS: Sequence[tuple[str, Sequence[str]]] = (
    ("profiler/native/", ("tests/profiler/test_*.py",)),
    ("native/launch/", ("tests/launch/test_*.py", "tests/launch/test_ranks_real.py")),
    ("native/mpi/", ("tests/benchmarks/test_mpi_*.py",)),
    ("native/device/", ("tests/benchmarks/test_gpu_*.py",)),
    ("benchmarks/mpi/", ("tests/benchmarks/test_mpi_*.py",)),
    ("benchmarks/gpu/", ("tests/benchmarks/test_gpu_*.py",)),
    ("benchmarks/memory/stream", ("tests/benchmarks/test_stream.py", "tests/engine/test_faults.py")),
    ("", ("tests/benchmarks/test_*.py", "tests/engine/test_faults.py")),
)


class Selection:
    """Selects the tests for each mutant."""

    def __init__(self, select: Path | None, coverage: Path | None) -> None:
        self._map: dict[str, Any] = {} if coverage is None else _lines_covered(coverage)
        self._is_known = select is not None or coverage is not None
        if select is not None:
            self._map |= json.loads(select.read_text(encoding="utf-8"))

    def of_line(self, mutant: Mutant) -> list[str]:
        """All tests known to run the line, fast and real; empty if unknown."""
        lines = self._map.get(mutant.file, {})
        found = {test for line in _nearest(mutant, lines) for test in lines[line]} if isinstance(lines, dict) else set()
        return sorted(found)

    def stages(self, mutant: Mutant) -> Iterator[tuple[str, Sequence[str]]]:
        """Stage names and tests (files or ids) marked `real`, for a mutant whose line no test is known to run."""
        named = self._map.get(mutant.file)
        if isinstance(named, list):
            yield "real, selected", named
        elif named is not None or (self._is_known and not mutant.is_native):
            yield "real, same file", sorted({test for tests in (named or {}).values() for test in tests})
        elif mutant.is_native:
            files = _named_test_files(mutant.file)
            yield "real, by name", files
            yield "real, same area", [file for file in _area(mutant.file) if file not in files]
        else:
            folder = test_folder(mutant.file)
            yield "real, same package", [folder] if folder else []
            yield "real, others", ["tests", *([f"--ignore={folder}"] if folder else [])]

    def without_a_test(self, mutant: Mutant) -> str:
        """A message if no test runs the line, else an empty string."""
        lines = self._map.get(mutant.file, {})
        if mutant.is_native or not self._is_known or not isinstance(lines, dict) or _nearest(mutant, lines):
            return ""
        return "no test runs this line"


def _nearest(mutant: Mutant, lines: Mapping[str, Sequence[str]]) -> list[str]:
    """The line as a key, or else the lines of its statement, because coverage may miss lines of a long statement."""
    statement = [str(line) for line in range(mutant.first, mutant.last + 1) if lines.get(str(line))]
    return [str(mutant.line)] if lines.get(str(mutant.line)) else statement


def _lines_covered(path: Path) -> dict[str, dict[str, list[str]]]:
    """File -> line -> test ids, from the data of coverage.py: line bits, or arcs between lines."""
    covered: dict[str, dict[str, set[str]]] = {}
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as data:
        files = {
            number: SOURCES + name.rpartition(SOURCES)[2]
            for number, name in data.execute("SELECT id, path FROM file")
            if SOURCES in name
        }
        tests = {number: name.rpartition("|")[0] for number, name in data.execute("SELECT id, context FROM context")}
        bits = (
            (file, context, 8 * at + bit)
            for file, context, numbits in data.execute("SELECT file_id, context_id, numbits FROM line_bits")
            for at, byte in enumerate(numbits)
            for bit in range(8)
            if byte >> bit & 1
        )
        arcs = (
            (file, context, abs(line))
            for file, context, *ends in data.execute("SELECT file_id, context_id, fromno, tono FROM arc")
            for line in ends
        )
        for rows in (bits, arcs):
            for file, context, line in rows:
                if file in files and tests[context]:
                    covered.setdefault(files[file], {}).setdefault(str(line), set()).add(tests[context])
    return {
        file: {line: sorted(names) for line, names in sorted(lines.items())} for file, lines in sorted(covered.items())
    }


def test_folder(file: str) -> str:
    """The test folder that mirrors the package of a file, or an empty string."""
    name = "benchmarks" if f"{SOURCES}native/" in file else file.removeprefix(SOURCES).partition("/")[0]
    return f"tests/{name}" if (ROOT / "tests" / name).is_dir() else ""


def _named_test_files(file: str) -> list[str]:
    """Test files that name a program, its benchmark, or a header, or that are named after it."""
    path = Path(file)
    words = [path.name, f'"{path.stem}"', f"{path.parent.name}.{path.stem}"]
    word = re.compile("|".join(rf"(?<!\w){re.escape(one)}(?!\w)" for one in words).replace(r'(?<!\w)"', '"'))
    return [
        str(test.relative_to(ROOT))
        for test in sorted((ROOT / "tests").rglob("test_*.py"))
        if re.fullmatch(rf"test_{path.stem}.*", test.stem) or word.search(test.read_text(encoding="utf-8"))
    ]


def _area(file: str) -> list[str]:
    globs = next(globs for start, globs in AREAS if file.removeprefix(SOURCES).startswith(start))
    return [str(test.relative_to(ROOT)) for one in globs for test in sorted(ROOT.glob(one))]
