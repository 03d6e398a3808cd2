"""Measure benchmarks, a study, or the standard trial of this machine."""

from __future__ import annotations

import hashlib
import logging
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread

from msgspec.structs import replace

from seatrial.analysis.results import Asked, RunResult, results_of, trial_of
from seatrial.analysis.study_results import study_result
from seatrial.benchmarks import benchmark_named
from seatrial.engine.host_lock import HostLock, users_named
from seatrial.engine.listener import Listener
from seatrial.engine.pool import Clock
from seatrial.engine.ready import Refused
from seatrial.engine.trial import TrialRun, TrialToRun
from seatrial.environments.chosen import refuse_misspelt
from seatrial.environments.settings.change import replay
from seatrial.environments.settings.node import although_shared, root_in_force
from seatrial.errors import UsageError
from seatrial.interface.arguments import Time, once_named, seconds
from seatrial.interface.results import margin_given
from seatrial.jobs.queue import part_here
from seatrial.launch.allocation import machine_here
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.sample import Outcome, Stage
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
from seatrial.places.guest.of_run import guest_names, with_guests
from seatrial.plan.points import (
    PROBES_SETTING,
    Settings,
    plan_points,
    refuse_unfit,
    study_points,
    values_of,
    with_probes,
    with_probes_apart,
)
from seatrial.plan.site_in_force import at_site
from seatrial.plan.targets import only_study, with_declared
from seatrial.probes.quiet import Quiet, look
from seatrial.processes.own_folder import temporary_folder
from seatrial.store.contents import Contents, read_contents
from seatrial.store.folder import ResultsFolder

_log = logging.getLogger(__name__)
_RENAMED = {"budget_s": "budget", "wait_s": "wait", "wait_quiet_s": "wait_quiet"}


@once_named(**_RENAMED)
def run(
    *targets: str | Path | Study,
    set: Settings | None = None,
    results: str | Path | None = "seatrial-results",
    budget: Time | None = None,
    repeats: int | None = None,
    again: bool = False,
    keep: bool = False,
    site: str | Path | None = None,
    system: str | None = None,
    wait: Time | None = None,
    wait_quiet: Time | None = None,
    ignore_lock_of: Sequence[str] = (),
    shared: bool = False,
    progress: Listener | None = None,
) -> RunResult:
    """Measure benchmarks (names or declaration files), one study (its file, or as a value), or without targets the
    standard trial, and record the results.

    `set` maps a parameter, or an axis of the environment ("environment.mpi"), to its value; a list of values makes one
    experiment for each. `probes` in it lists what is measured beside the repeats (mpi, io, power), of a study too.
    `budget` is the time for the whole call but for waits (default: 20 s for the repeats of each experiment; for a
    study, the budget in its file): what does not fit is left out, which `progress.fitted` gets before anything starts;
    only a benchmark that was named gets its six repeats in any case. `repeats` makes exactly that many of each
    experiment instead. With `results=None` nothing is kept: `run("memory.latency", repeats=1, results=None)` is a quick
    measurement.

    A finished experiment is not run again unless `again` is set. `keep` keeps the output of every repeat. `site` is a
    site file, `system` a system in it (`NAME[:PARTITION]`). `progress` is called between repeats.

    One run at a time measures on a host: `wait` is the longest wait for another one (default: until it ends). Runs of
    the users `ignore_lock_of` (names or numbers) are not waited for, which the records note. `wait_quiet` is the
    longest wait until nothing else uses the CPUs; then it is measured anyway. `progress.looked` gets what else uses
    this machine.

    Settings of the machine ("environment.governor") are changed for each repeat and put back, unless others run
    programs on this node; with `shared` also then. What a killed run of this user left changed is put back first.

    Times are numbers of seconds, or text with a unit ("5min").

    Raises UsageError before anything runs, BusyError after the wait. KeyboardInterrupt passes through: finished repeats
    are kept.
    """
    if repeats is not None and repeats < 1:
        raise UsageError(f"repeats={repeats}: at least 1 is required", "give a number from 1")
    clock = Clock()
    budget_s = seconds(budget)
    listener = progress or Listener()
    lock = HostLock(seconds(wait), users_named(ignore_lock_of), seconds(wait_quiet))
    tell = _looked_meanwhile(progress)
    _put_back()
    with at_site(site, system), although_shared(shared), _folder(results) as path, ExitStack() as held:
        names: list[str] = []
        if len(targets) == 1 and isinstance(targets[0], Study):
            study: Study | None = with_probes(targets[0], with_probes_apart(set or {})[0])
        else:
            names = with_declared([target.name if isinstance(target, Study) else str(target) for target in targets])
            study = only_study(names, set or {})
        if study is not None:
            study = part_here(study, None if site is None else Path(site), system)
        ResultsFolder.refuse_other(path)
        machine = held.enter_context(with_guests(machine_here(), guest_names(study, set or {})))
        trial = TrialToRun(machine, lambda: ResultsFolder.create(path), listener, again, keep, lock, clock)
        if study is None:
            points = plan_points(names, values_of(set or {}), machine)
            tell()
            made = trial.run_points(points, budget_s=budget_s, repeats=repeats)
        else:
            _refuse_repeats(study, repeats)
            points = study_points(study, machine)
            refuse_unfit(study, points)
            refuse_misspelt(point.environment for point in points)
            tell()
            made = trial.run_study(study, points, budget_s=budget_s)
        contents = _contents(path)
        found = _result(made, contents)
        return found if targets else replace(found, trial=trial_of(machine, found.experiments, contents))


def _put_back() -> None:
    """Put back the settings of this node that killed processes left: they would act on what is measured now."""
    for _, undone in replay(root_in_force()):
        for path in undone.restored:
            _log.warning("%s was left changed by a seatrial that was killed; it is put back", path)
        for path, why in undone.kept.items():
            _log.warning("left by a seatrial that was killed: %s %s", path, why)


def _looked_meanwhile(progress: Listener | None) -> Callable[[], None]:
    """Look at what else uses this machine while it is discovered; the function waits for the end of the look, and
    reports it."""
    if progress is None:
        return lambda: None
    seen: list[Quiet] = []
    looking = Thread(target=lambda: seen.append(look()), daemon=True)
    looking.start()

    def tell() -> None:
        looking.join()
        for one in seen:
            progress.looked(one)

    return tell


@contextmanager
def _folder(results: str | Path | None) -> Iterator[Path]:
    """The results folder; for None a temporary one."""
    if results is not None:
        yield Path(results)
        return
    with temporary_folder("results") as folder:
        yield folder / "results"


def _refuse_repeats(study: Study, repeats: int | None) -> None:
    """Raise UsageError for a number of repeats."""
    if repeats is not None:
        raise UsageError(
            f"study {study.name} defines its own number of repeats", "set a budget instead, or change the study file"
        )


def _contents(results: Path) -> Contents:
    """The contents of the folder; empty if it vanished during the run, which the trial has reported."""
    try:
        contents = read_contents(ResultsFolder.existing(results))
    except UsageError:
        return Contents()
    for line in contents.damaged:
        _log.warning("ignored: %s", line)
    return contents


def _result(trial: TrialRun, contents: Contents) -> RunResult:
    lost = None if trial.problem is None else Outcome.failed(Stage.RECORD, trial.problem.message)
    asked = [
        Asked(
            item.experiment,
            item.outcome if isinstance(item, Refused) else lost,
            measured_now=item.experiment.id in trial.measured,
        )
        for item in trial.experiments
    ]
    found = results_of(contents, asked)
    known = {result.id: result for result in found}
    return RunResult(
        found,
        trial.environments,
        {item.experiment.id: item.point.environment for item in trial.experiments},
        study=None if trial.study is None else study_result(trial.study, contents, known),
        problem=trial.problem,
    )


_COMMAND = "command"
_ARGV = "argv"
_WITHOUT_A_PARTNER = 0.5
"""Precision of a side that is left alone because all others failed: nobody asked how long it takes."""
Words = tuple[str, ...]


@once_named(**_RENAMED)
def versus(
    *commands: str | Sequence[str],
    set: Mapping[str, Value] | None = None,
    margin: float | None = None,
    equivalence: float | None = None,
    results: str | Path | None = "seatrial-results",
    budget: Time | None = None,
    again: bool = False,
    keep: bool = False,
    site: str | Path | None = None,
    system: str | None = None,
    wait: Time | None = None,
    wait_quiet: Time | None = None,
    ignore_lock_of: Sequence[str] = (),
    shared: bool = False,
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
    probes, parameters = with_probes_apart(set or {})
    study = versus_study(split, parameters, share, equivalence=equivalence is not None)
    if budget is not None:
        study = replace(study, repeat=replace(study.repeat, maximum=MOST_REPEATS))  # nothing else ends it undecided
    return run(
        study,
        set={PROBES_SETTING: list(probes)} if probes else None,
        results=results,
        budget=budget,
        again=again,
        keep=keep,
        site=site,
        system=system,
        wait=wait,
        wait_quiet=wait_quiet,
        ignore_lock_of=ignore_lock_of,
        shared=shared,
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
