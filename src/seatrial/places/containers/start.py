"""What a program needs that starts containers itself: the command, and the program to start inside and outside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from seatrial.places.contained import Contained
from seatrial.places.containers.image import ImageKind
from seatrial.places.containers.tiny_root import STATUS, timed_program
from seatrial.places.starting import started

_NAME = "started"


def start_arguments(
    container: Contained, variables: Sequence[tuple[str, str | None]], directory: Path
) -> tuple[str, ...]:
    """The arguments that state the command of the container, the same program outside, the status that both end with,
    and the image's files, in a repeat's folder. Raises ContainerError."""
    program = directory / _NAME
    start = started(None, None, container, variables, {}, [directory])
    words = [*start.before, *start.words([str(program)])]
    numbered = [argument for number, word in enumerate(words) for argument in (f"--word-{number}", word)]
    own = ["--words", str(len(words)), *numbered, "--bare", str(program), "--expect", str(STATUS)]
    has_files = container.image.kind is not ImageKind.NAME
    return (*own, *(["--image", container.image.given] if has_files else []))


def write_started(directory: Path) -> None:
    """Write the program to start into a repeat's folder. Raises OSError."""
    path = directory / _NAME
    path.write_bytes(timed_program() or b"")
    path.chmod(0o755)
