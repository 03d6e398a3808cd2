"""Programs of the user on the command line: `seatrial run command -- ./app input` and `--versus`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from seatrial.cli.command import Options
from seatrial.cli.output import Output, message, print_json, style_of
from seatrial.errors import UsageError

if TYPE_CHECKING:
    from seatrial.analysis.results import RunResult
    from seatrial.model.benchmark.parameter import Value

COMMAND = "command"
"""The benchmark that runs programs of the user."""

_OF_A_SHELL = frozenset({"|", "||", "&", "&&", ";", ">", ">>", "<", "2>", "2>&1"})
_LAST_LINES = 5


WORDS = "seatrial.words"
"""The key of the words after `--` in the context of the command; missing without `--`."""


class WithWords(TyperCommand):
    """A command that takes the words of a program after `--`, as they are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without those words."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[WORDS] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)


class ProgramOptions(Options):
    """The options about programs, as written; None: not given."""

    warmup: Annotated[
        int | None,
        typer.Option("--warmup", metavar="N", help="of a program: runs before the timed ones in each repeat", min=0),
    ] = None
    prepare: Annotated[
        str | None, typer.Option("--prepare", metavar="CMD", help="of a program: run this before each run, not timed")
    ] = None
    cleanup: Annotated[
        str | None, typer.Option("--cleanup", metavar="CMD", help="of a program: run this at the end of each repeat")
    ] = None
    input: Annotated[
        Path | None, typer.Option("--input", metavar="FILE", help="of a program: its standard input (default: empty)")
    ] = None
    expect: Annotated[
        int | None,
        typer.Option("--expect", metavar="STATUS", help="of a program: its exit status (default: 0)", min=0, max=255),
    ] = None

    def settings(self) -> dict[str, Value]:
        """The parameters of the benchmark `command` that they set. Raises UsageError for what cannot be run or read."""
        from seatrial.interface.run import words_of

        found: dict[str, Value] = {}
        for name, number in (("warmup", self.warmup), ("expect", self.expect)):
            if number is not None:
                found[name] = number
        for name, text in (("prepare", self.prepare), ("cleanup", self.cleanup)):
            if text is not None:
                found[name] = checked(words_of(text))
        if self.input is not None:
            if not self.input.exists() or self.input.is_dir():
                why = "it is a folder" if self.input.is_dir() else "no such file"
                raise UsageError(f"--input {str(self.input)!r} cannot be read: {why}", "give the path of a file")
            found["input"] = str(self.input)
        return found

    @property
    def given(self) -> list[str]:
        """The names of those that were given."""
        return [f"--{name}" for name in self.__struct_fields__ if getattr(self, name) is not None]


def merged(settings: Mapping[str, Any], of_program: Mapping[str, Value]) -> dict[str, Any]:
    """Settings of `--set` and those of the options about programs. Raises UsageError for a parameter in both."""
    if twice := sorted(settings.keys() & of_program.keys()):
        raise UsageError(f"{twice[0]} is given twice, with --set and otherwise", "give it once")
    return {**settings, **of_program}


def checked(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words of a command that can be run. Raises UsageError for others; says so if words look meant for a shell."""
    from seatrial.interface.run import refuse_missing

    refuse_missing(words)
    if meant := [word for word in words[1:] if word in _OF_A_SHELL]:
        message(
            f"note: no shell runs {words[0]}: it gets {meant[0]!r} as an argument; for a pipeline or a redirection, "
            "write sh -c '...'"
        )
    return words


def program_settings(
    targets: Sequence[str], words: Sequence[str] | None, options: ProgramOptions
) -> tuple[list[str], dict[str, Value]]:
    """The targets and settings of `run` with a program after `--`, or with options about programs.

    Raises UsageError if the targets are not the benchmark `command` alone, or nothing can be run.
    """
    if words is None and not options.given:
        return list(targets), {}
    what = "words after `--`" if words is not None else options.given[0]
    if any(target != COMMAND for target in targets) or (words is None and not targets):
        raise UsageError(
            f"{what}: only the benchmark `command` and --versus run a program that you name",
            "write seatrial run command -- PROGRAM ARGUMENTS",
        )
    found = options.settings()
    if words is not None:
        if not words or not words[0]:
            raise UsageError("no program after `--`", "write seatrial run command -- PROGRAM ARGUMENTS")
        found["argv"] = checked(tuple(words))
    return [COMMAND], found


def single_settings(settings: Mapping[str, Sequence[str]]) -> dict[str, Value]:
    """The settings of a comparison of commands. Raises UsageError for several values, and for the environment."""
    for name, values in settings.items():
        if len(values) > 1 or "." in name:
            raise UsageError(
                f"--versus varies the commands only, but --set {name}={','.join(values)} was given",
                "write a study with both axes: seatrial init study",
            )
    return {name: values[0] for name, values in settings.items()}


def print_comparison(found: RunResult, out: Output) -> None:
    """The comparison on stdout; on stderr, the commands that failed, with the end of what they printed."""
    from msgspec.structs import replace

    from seatrial.analysis.answer import answer_of_study
    from seatrial.model.spelling import written
    from seatrial.report.documents.compare import compare_document
    from seatrial.report.text.compare import compare_text
    from seatrial.report.text.terminal import clean

    compared = found.study.compared if found.study is not None else ()
    answer = None if found.study is None else replace(answer_of_study(found.study), maximum=None)  # --budget lifts it
    if out.as_json:
        print_json(compare_document(compared, answer=answer))
    else:
        print(compare_text(compared, answer=answer, style=style_of(sys.stdout), detail=out.detail))
    for one in found.experiments:
        if not one.outcome.is_ok:
            name = written("argv", one.experiment.parameters["argv"])
            message(f"{clean(name)}: {one.outcome.state}: {one.outcome.reason}")
            for line in one.outcome.evidence.splitlines()[-_LAST_LINES:]:
                message(f"  | {line}")
