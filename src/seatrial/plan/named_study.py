"""Study files named by the caller."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from seatrial.errors import UnknownNameError, UsageError
from seatrial.model.study import Study
from seatrial.plan.files import read_file
from seatrial.references.loader import reference_named

_ENDINGS = (".yaml", ".yml")


def is_study_file(target: str) -> bool:
    """Whether a target of `run` is a file, not a benchmark: it ends in .yaml or .yml, contains a slash, or exists."""
    return target.endswith(_ENDINGS) or "/" in target or Path(target).is_file()


def only_study(targets: Sequence[str], settings: Collection[str]) -> Study | None:
    """The study that the targets name; None if they name benchmarks.

    Raises UsageError for a study with further targets or with settings, and as `read_study_file` does.
    """
    files = [target for target in targets if is_study_file(target)]
    if not files:
        return None
    if len(targets) > 1:
        raise UsageError(
            f"{files[0]} is a study and must be the only target, but {len(targets) - 1} more were given",
            "name one study at a time",
        )
    if settings:
        raise UsageError(f"--set does not apply to a study ({files[0]})", "edit the study file instead")
    return read_study_file(Path(files[0]))


def read_study_file(path: Path) -> Study:
    """The study in a file. Raises UsageError if it cannot be read or is invalid."""
    from seatrial.benchmarks import registry
    from seatrial.plan.study_file import MAX_BYTES, read_study  # loads pydantic and YAML

    if str(path) in registry() and not path.exists():
        raise UsageError(f"{path} is a benchmark, not a study file", f"`seatrial run {path}` measures it")

    study = read_study(read_file(path, MAX_BYTES, "give a study file; examples/ has some"), str(path))
    _refuse_unknown_references(study, path)
    return study


def _refuse_unknown_references(study: Study, path: Path) -> None:
    for reference in study.references:
        try:
            reference_named(reference)
        except UnknownNameError as error:
            raise UsageError(f"{path}: references: {error.message}", error.todo) from None
