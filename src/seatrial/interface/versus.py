"""Programs of the user against each other, without a study file."""

from __future__ import annotations

import hashlib
import shlex
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from seatrial.analysis.results import RunResult
from seatrial.benchmarks import benchmark_named
from seatrial.engine.ready import Listener
from seatrial.errors import UsageError
from seatrial.interface.compare import margin_given
from seatrial.interface.run import run
from seatrial.model.benchmark.parameter import Value
from seatrial.model.secrets import masked_words
from seatrial.model.study.study import (
    DEFAULT_MARGIN,
    LABEL,
    MOST_REPEATS,
    Axis,
    Compare,
    RepeatPolicy,
    Study,
    StudyBenchmark,
    refuse_margin,
)

_COMMAND = "command"
_ARGV = "argv"
_WITHOUT_A_PARTNER = 0.5
"""Precision of a side that is left alone because all others failed: nobody asked how long it takes."""
Words = tuple[str, ...]


def versus(
    *commands: str | Sequence[str],
    set: Mapping[str, Value] | None = None,
    margin: float | None = None,
    equivalence: float | None = None,
    results: str | Path | None = "seatrial-results",
    budget_s: float | None = None,
    again: bool = False,
    keep: bool = False,
    site: str | Path | None = None,
    system: str | None = None,
    wait_s: float | None = None,
    ignore_lock_of: Sequence[str] = (),
    progress: Listener | None = None,
) -> RunResult:
    """Measure commands side by side, and compare each with the first.

    A command is a list of words, or text that is split into words as by a shell (`shlex.split`); no shell runs it.
    `set` are parameters of the benchmark `command`; a relative difference up to `margin` counts as none (default: 0.02,
    which is 2 %); `equivalence` gives it instead, for verdicts `equivalent` in place of `same`.
    The other arguments are those of `run`.

    Raises UsageError before anything runs: for fewer than two commands, and for one that cannot be run.
    """
    share = margin_given(margin, equivalence)
    split = [words_of(one) if isinstance(one, str) else tuple(one) for one in commands]
    study = versus_study(split, set or {}, share, equivalence=equivalence is not None)
    if budget_s is not None:
        study = replace(study, repeat=replace(study.repeat, maximum=MOST_REPEATS))  # nothing else ends it undecided
    return run(
        study,
        results=results,
        budget_s=budget_s,
        again=again,
        keep=keep,
        site=site,
        system=system,
        wait_s=wait_s,
        ignore_lock_of=ignore_lock_of,
        progress=progress,
    )


def versus_study(
    commands: Sequence[Words],
    parameters: Mapping[str, Value],
    margin: float = DEFAULT_MARGIN,
    *,
    equivalence: bool = False,
) -> Study:
    """The study that compares these commands with the first; `equivalence`: the margin is one of equivalence. Raises
    UsageError."""
    if len(commands) < 2:
        raise UsageError(
            f"{len(commands) or 'no'} command to compare", "give two or more, each in quotes: './a input' './b input'"
        )
    refuse_margin(margin)
    benchmark = benchmark_named(_COMMAND)
    fixed = {name: benchmark.parameter(name).value_of(value) for name, value in parameters.items()}
    if _ARGV in fixed:
        raise UsageError("argv cannot be set for a comparison of commands", "give the commands themselves")
    for words in (*commands, *(value for name, value in fixed.items() if name in ("prepare", "cleanup"))):
        if isinstance(words, tuple):
            refuse_missing(words)
    names = [shlex.join(masked_words(words)) for words in commands]
    axes: tuple[Axis, ...] = (Axis(_ARGV, tuple(commands)),)
    if len({*commands}) == 1:  # A against A
        fixed[_ARGV] = commands[0]
        axes = (Axis(LABEL, tuple(f"#{number} {name}" for number, name in enumerate(names, 1))),)
    elif len({*commands}) < len(commands):
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{twice!r} is given twice, beside other commands", "give each command once")
    return Study(
        name=f"versus-{hashlib.sha256(repr(names).encode()).hexdigest()[:8]}",
        question=f"Which is faster, {' or '.join(dict.fromkeys(names))}?",
        benchmarks=(StudyBenchmark(_COMMAND, fixed),),
        axes=axes,
        compare=Compare(axes[0].name, axes[0].values[0], margin, asks_equivalence=equivalence),
        repeat=RepeatPolicy(precision=_WITHOUT_A_PARTNER),
    )


def words_of(command: str) -> Words:
    """The words of a command, split as by a shell. Raises UsageError for none, and for an open quote."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        raise UsageError(f"{command!r} cannot be split into words: {str(error).lower()}", "close it") from None
    if not words or not words[0]:
        raise UsageError(f"{command!r} is not a command", "give a program and its arguments, in quotes")
    return words


def refuse_missing(words: Words) -> None:
    """Raise UsageError if the program of a command cannot be run."""
    name = words[0]
    if shutil.which(name) is not None:
        return
    if "/" not in name:
        raise UsageError(f"{name}: command not found", "give its path, or put it on PATH")
    path = Path(name)
    if path.is_dir():
        raise UsageError(f"{name} is a folder", "give a program")
    if path.exists():
        raise UsageError(f"{name} is not executable", f"chmod +x {shlex.quote(name)}, or name its interpreter first")
    raise UsageError(f"{name}: no such file", "give the path of a program")
