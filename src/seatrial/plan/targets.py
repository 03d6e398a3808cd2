"""Targets that the caller names: benchmarks, study files and declaration files; and the folders with declarations."""

from __future__ import annotations

import logging
import os
import pwd
import shlex
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from seatrial.benchmarks import declare, registry
from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.declaration import FOLDER
from seatrial.model.study.study import Study
from seatrial.plan.files import read_file
from seatrial.plan.points import with_probes, with_probes_apart
from seatrial.plan.site_in_force import site_in_force
from seatrial.references.loader import reference_named

_ENDINGS = (".yaml", ".yml")
_MOST_FILES = 1000
_log = logging.getLogger(__name__)


def is_study_file(target: str) -> bool:
    """Whether a target of `run` is a file, not a benchmark: it ends in .yaml or .yml, contains a slash, or exists."""
    return target.endswith(_ENDINGS) or "/" in target or target in (".", "..") or Path(target).is_file()


def only_study(targets: Sequence[str], settings: Mapping[str, Any]) -> Study | None:
    """The study that the targets name, with the probes of the settings; None if they name benchmarks.

    Raises UsageError for a study with further targets or with other settings, and as `read_study_file` does.
    """
    files = [target for target in targets if is_study_file(target)]
    if not files:
        return None
    if len(targets) > 1:
        raise UsageError(
            f"{files[0]} is a study and must be the only target, but {len(targets) - 1} more were given",
            "name one study at a time",
        )
    probes, others = with_probes_apart(settings)
    if others:
        raise UsageError(f"--set does not apply to a study ({files[0]})", "edit the study file instead")
    return with_probes(read_study_file(Path(files[0])), probes)


def read_study_file(path: Path) -> Study:
    """The study in a file. Raises UsageError if it cannot be read or is invalid."""
    from seatrial.plan.study_file import MAX_BYTES, read_study

    if str(path) in registry() and not path.exists():
        todo = f"`seatrial run {shlex.quote(str(path))}` measures it"
        raise UsageError(f"{path} is a benchmark, not a study file", todo)

    study = read_study(read_file(path, MAX_BYTES, "give a study file; examples/ has some"), str(path))
    _refuse_unknown_references(study, path)
    return study


def _refuse_unknown_references(study: Study, path: Path) -> None:
    for reference in study.references:
        try:
            reference_named(reference)
        except UnknownNameError as error:
            raise UsageError(f"{path}: references: {error.message}", error.todo) from None


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
    from seatrial.plan.files import MAX_BYTES, read_yaml

    document = read_yaml(read_file(path, MAX_BYTES, "give a declaration file"), str(path))
    if not is_declaration(document):
        return None
    return declared_benchmark(declaration_in(document), path.absolute().parent)


def _who_can_change(paths: Iterable[Path]) -> str | None:
    """Who besides this user and root can change one of these paths, or the link at it. What is found in the working
    folder without being named may have been put there by somebody else, and a benchmark runs programs."""
    for path in paths:
        for found in (path.lstat(), path.stat()):
            if found.st_uid not in (os.geteuid(), 0):
                with suppress(KeyError):
                    return f"user {pwd.getpwuid(found.st_uid).pw_name}"
                return f"user {found.st_uid}"
            if found.st_mode & stat.S_IWOTH and not stat.S_ISLNK(found.st_mode):
                return "everybody"
    return None


def _in_folders() -> Iterator[Benchmark]:
    for folder in (Path(FOLDER), *site_in_force().benchmarks):
        paths = sorted(path for path in folder.glob("*") if path.suffix in _ENDINGS and path.is_file())
        if folder == Path(FOLDER) and paths and (who := _who_can_change([folder, *paths])) is not None:
            _log.warning("ignored: %s, which %s can change; to run a benchmark of it, name its file", folder, who)
            continue
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
