"""Applications on an input that the user gives: it is copied for each run, and a reader of logs reads the result."""

from __future__ import annotations

import fnmatch
import hashlib
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from msgspec.structs import replace

from seatrial.applications.readers import reader_of
from seatrial.applications.running.given_input import stated_key
from seatrial.engine.kinds.external import ExternalKind, ExternalProgram
from seatrial.engine.ready import Ready
from seatrial.environments.installed import Installed
from seatrial.environments.loaded_libraries import files_among
from seatrial.errors import BuildError, ParseError, ProtocolError
from seatrial.model.benchmark.benchmark import External
from seatrial.model.benchmark.given_input import CASE, CLOCKED_S, FOLDER, INPUT, NONE, GivenInput
from seatrial.model.benchmark.parameter import Params
from seatrial.model.benchmark.program import ProgramRecord
from seatrial.model.results.sample import Sample
from seatrial.plan.points import Point

_MOST_FILES = 10_000
_COUNTS = ("ranks", "processes", "threads")


class InputMissingError(BuildError):
    """The input of an application is missing, or is not the published one."""

    need = "input"


@dataclass(frozen=True, slots=True)
class GivenInputProgram(ExternalProgram):
    """An installed application and the files that the user gave."""

    runs_in_its_folder: ClassVar[bool] = True
    given: GivenInput

    @contextmanager
    def prepared(self, ready: Ready, directory: Path, limit_s: float) -> Iterator[None]:
        """Copy the user's files: the application may write to them. Files made here replace none of them."""
        folder = _folder_of(ready.point.parameters)
        for path in _files_in(self.given, folder) if folder is not None else ():
            target = directory / path.relative_to(folder or path)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        with super(GivenInputProgram, self).prepared(ready, directory, limit_s):
            yield

    def read(self, data: bytes, ready: Ready, directory: Path) -> ProgramRecord:
        """What the reader of its logs finds, and what only the declaration reads. Raises ProtocolError."""
        record = super(GivenInputProgram, self).read(data, ready, directory)
        if not record.ended:
            return record
        samples, notes = _read_log(self.given, data, ready.point.parameters)
        return replace(record, samples=samples, notes={**notes, **record.notes})

    def timed(self, record: ProgramRecord, wall_s: float) -> ProgramRecord:
        """The same record, with our own time of the whole run, launcher included, in its first sample."""
        if not self.given.is_clocked or not record.samples:
            return record
        first, *others = record.samples
        return replace(record, samples=(replace(first, extra={**first.extra, CLOCKED_S: wall_s}), *others))


def _read_log(given: GivenInput, data: bytes, params: Params) -> tuple[tuple[Sample, ...], dict[str, Any]]:
    """The samples of the one run in a log; the first has the numbers that the log states. Raises ProtocolError."""
    try:
        found = reader_of(given.reader).read(data)
    except ParseError as error:
        raise ProtocolError(str(error)) from error
    if len(found.experiments) != 1:
        raise ProtocolError(f"the log of {found.tool} holds {len(found.experiments)} runs, expected one")
    experiment = found.experiments[0]
    if failed := found.failed or experiment.failed:
        raise ProtocolError(f"{found.tool} reports a wrong result: {failed}")
    stated = {
        stated_key(name): float(value)
        for name, value in experiment.parameters.items()
        if name in given.stated and isinstance(value, int | float)
    }
    first, *others = experiment.samples
    notes: dict[str, Any] = {"version": found.version, **experiment.parameters, **experiment.notes}
    checked = {name for number, name in given.stated.items() if number in experiment.parameters}
    unchecked = [name for name in _COUNTS if name in params and params[name] != 1 and name not in checked]
    unchecked += [name for name in given.stated.values() if name in params and name not in {*checked, *unchecked}]
    remarks = [*experiment.remarks, *(f"{name}: not stated in the log, so not checked" for name in unchecked)]
    if remarks:
        notes["remarks"] = remarks
    return (replace(first, extra={**first.extra, **stated}), *others), notes


@dataclass(slots=True)
class GivenInputKind(ExternalKind):
    """Other content of the input is another experiment."""

    def _found_for(self, point: Point, program: External) -> tuple[External, Installed, dict[str, Any]]:
        chosen, installed, described = super(GivenInputKind, self)._found_for(point, program)
        if isinstance(chosen, GivenInput) and point.refusal is None:
            described = {**described, "inputs": _contents(chosen, point.parameters)}
        return chosen, installed, described

    def _runnable(self, declared: External, found: Installed) -> ExternalProgram:
        if not isinstance(declared, GivenInput):
            raise TypeError(f"{declared.name} is not an application with a given input")
        return GivenInputProgram(declared, found, declared)


def _folder_of(params: Params) -> Path | None:
    return None if params[FOLDER] == NONE else Path(str(params[FOLDER])).absolute()


def _contents(given: GivenInput, params: Params) -> Mapping[str, str]:
    """Name -> content of each input file, the user's and those made here. Raises InputMissingError."""
    contents = {name: hashlib.sha256(data).hexdigest() for name, data in given.inputs(params).items()}
    folder, case = _folder_of(params), given.case(params[CASE])
    if folder is None:
        return contents
    if not folder.is_dir():
        raise InputMissingError(f"{folder} is not a folder", f"set {FOLDER} to the folder with the files of the input")
    paths = {str(path.relative_to(folder)): path for path in _files_in(given, folder)}
    source = "" if case is None else f"get them from {case.source}"
    if not paths:
        raise InputMissingError(f"{folder} is empty", source)
    needed = () if case is None else (*case.files, *((case.start,) if case.start else ()))
    if missing := [name for name in needed if name not in paths and name not in contents]:
        raise InputMissingError(f"{folder} has no {', '.join(missing)}, which {params[CASE]} needs", source)
    start = str(params.get(INPUT, ""))  # some programs add the ending; without this parameter, none is named
    names = (*paths, *contents)
    if start and not (folder / start).exists() and not any(f"{name}.".startswith(f"{start}.") for name in names):
        raise InputMissingError(f"{folder} has no {start}", f"set {INPUT} to the file that the program is started with")
    known = {} if case is None else case.sha256
    for name, path in paths.items():
        found = files_among([str(path)]).get(str(path), "")
        if name in known and found != known[name]:
            raise InputMissingError(
                f"{path} is not the published file of {params[CASE]}: its SHA-256 is {found[:16]}..., expected "
                f"{known[name][:16]}...",
                f"{source}, or set {CASE}=own",
            )
        contents.setdefault(name, found)
    return contents


def _files_in(given: GivenInput, folder: Path) -> list[Path]:
    """The files of the user's folder, without those that could be taken for the output of the run. Raises
    InputMissingError."""
    found: list[Path] = []
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not fnmatch.fnmatch(str(path.relative_to(folder)), given.output):
            found.append(path)
        if len(found) > _MOST_FILES:
            why = f"{folder} has more than {_MOST_FILES} files"
            raise InputMissingError(why, "set it to a folder with the files of the input only")
    return found
