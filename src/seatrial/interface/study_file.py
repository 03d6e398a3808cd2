"""Study files that a caller names."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.interface.files import read_file
from seatrial.model.study import Study

_ENDINGS = (".yaml", ".yml")


def is_study_file(target: str) -> bool:
    """Whether a target of `run` is a file and no benchmark's name: by its ending, or because it lies there."""
    return target.endswith(_ENDINGS) or "/" in target or Path(target).is_file()


def only_study(targets: Sequence[str], settings: Collection[str]) -> Study | None:
    """The study that the targets name: one file, and nothing else. None where they name benchmarks.

    Raises UsageError where more stands beside it, where settings would change it, and as `read_study_file` does.
    """
    files = [target for target in targets if is_study_file(target)]
    if not files:
        return None
    if len(targets) > 1:
        raise UsageError(
            f"{files[0]} is a study, which stands by itself, not together with {len(targets) - 1} more",
            "name one study at a time",
        )
    if settings:
        raise UsageError(
            f"--set does not change a study ({files[0]})", "change the file: it is the record of what was asked"
        )
    return read_study_file(Path(files[0]))


def read_study_file(path: Path) -> Study:
    """The study in a file. Raises UsageError where it cannot be read or is no study."""
    from seatrial.plan.study_file import MAX_BYTES, read_study  # pydantic and YAML: only where there is a study

    return read_study(read_file(path, MAX_BYTES, "give a study file; examples/ has some"), str(path))
