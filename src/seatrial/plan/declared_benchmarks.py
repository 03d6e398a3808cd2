"""Benchmarks that users declare in files: those of `./seatrial-benchmarks` and of the folders that the site file names,
found by name, and files that are named themselves."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

from seatrial.benchmarks import declare
from seatrial.errors import UsageError
from seatrial.model.benchmark import Benchmark
from seatrial.model.declaration import FOLDER
from seatrial.plan.files import read_file
from seatrial.plan.site_in_force import site_in_force

_ENDINGS = (".yaml", ".yml")
_MOST_FILES = 1000
_log = logging.getLogger(__name__)


def with_declared(targets: Sequence[str] = ()) -> list[str]:
    """Declare the benchmarks of the folders and of the declaration files among the targets; the targets, with the names
    of the benchmarks in place of their files.

    A file of a folder that is not valid is reported and left out. Raises UsageError for a named one.
    """
    found: dict[str, Benchmark] = {}
    named = [_named(target) for target in targets]
    for benchmark in (*(one for one in named if one is not None), *_in_folders()):
        found.setdefault(benchmark.name, benchmark)
    declare(found.values())
    return [target if one is None else one.name for target, one in zip(targets, named, strict=True)]


def _named(target: str) -> Benchmark | None:
    """The benchmark that a file declares; None for everything else, also for a file that is not valid YAML: reading it
    as a study says why."""
    path = Path(target)
    if path.suffix not in _ENDINGS or not path.is_file():
        return None
    return _declared(path)


def _declared(path: Path) -> Benchmark | None:
    """Raises UsageError for an invalid declaration."""
    from seatrial.benchmarks.declared import declared_benchmark
    from seatrial.plan.declaration_file import declaration_in, is_declaration
    from seatrial.plan.study_yaml import MAX_BYTES, read_yaml

    document = read_yaml(read_file(path, MAX_BYTES, "give a declaration file"), str(path))
    if not is_declaration(document):
        return None
    return declared_benchmark(declaration_in(document), path.absolute().parent)


def _in_folders() -> Iterator[Benchmark]:
    for folder in (Path(FOLDER), *site_in_force().benchmarks):
        paths = sorted(path for path in folder.glob("*") if path.suffix in _ENDINGS) if folder.is_dir() else []
        if len(paths) > _MOST_FILES:
            _log.warning("%s has %d files; the first %d are read", folder, len(paths), _MOST_FILES)
        for path in paths[:_MOST_FILES]:
            try:
                benchmark = _declared(path)
            except UsageError as error:
                _log.warning("ignored: %s (%s)", error.message, error.todo)
                continue
            if benchmark is None:
                _log.warning("ignored: %s declares no benchmark", path)
            else:
                yield benchmark
