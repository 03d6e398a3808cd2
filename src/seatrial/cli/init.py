"""`seatrial init`: a commented file to start from, with the line that gives editors its schema."""

from __future__ import annotations

import json
import os
from enum import StrEnum
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from seatrial.benchmarks import benchmark_of
from seatrial.cli.command import command
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Role


class StarterFile(StrEnum):
    """A kind of file that `init` writes."""

    STUDY = "study"
    SITE = "site"
    BENCHMARK = "benchmark"
    IMAGE = "image"


@command("init")
def _init(
    kind: Annotated[StarterFile, typer.Argument(metavar="study|site|benchmark|image", help="the kind of file")],
    file: Annotated[
        Path | None, typer.Argument(metavar="FILE", help="its name (default: the kind, with .yaml)")
    ] = None,
) -> None:
    path = file or Path(f"{kind}.yaml")
    schema = _schema(kind)
    lead = "" if schema is None else f"# yaml-language-server: $schema={schema}\n"
    try:
        with path.open("x", encoding="utf-8") as stream:
            text = resources.files(__package__).joinpath("templates", f"{kind}.yaml").read_text(encoding="utf-8")
            stream.write(lead + text.format(file=path, benchmark=benchmark_of(Role.MEMORY_BANDWIDTH)))
    except FileExistsError as error:
        raise UsageError(f"{path} exists already", f"give another name: seatrial init {kind} FILE") from error
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror or error}", "give another file") from error
    print(path)


def _schema(kind: StarterFile) -> Path | None:
    """The schema of this version, written into the user's data folder for editors; None if that is not possible."""
    from seatrial.plan.schemas import SCHEMAS
    from seatrial.store.files import write_once

    try:
        base = Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share", "seatrial", "schemas")
        base.mkdir(parents=True, exist_ok=True)
        write_once(base, f"{kind}-1.json", data=json.dumps(SCHEMAS[kind](), ensure_ascii=False).encode())
    except (OSError, RuntimeError):
        return None
    return base / f"{kind}-1.json"
