"""A plan as text for a terminal: the axes, the experiments, those that cannot run, the time, and the analysis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark.parameter import Value
from seatrial.model.study.study import SYSTEM, Scaling
from seatrial.model.units import duration
from seatrial.plan.planned import PlannedExperiment, PlannedJobs, PlannedStudy, PlannedTrial
from seatrial.report.text.terminal import PLAIN, Style, clean
from seatrial.report.units import count, few_names, show, show_percent, written
from seatrial.stats.interval import MINIMUM_REPEATS

_MOST_LINES = 20
"""Of one kind; the JSON has all."""
_MOST_VALUES = 12


def plan_text(plan: PlannedStudy | PlannedTrial, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """The output of `seatrial plan` without a trailing newline; `verbose` lists each experiment of a study."""
    if isinstance(plan, PlannedTrial):
        return trial_text(plan, style)
    study = plan.study
    head = [style.paint(clean(study.name), "heading"), *_wrapped(style, study.question)]
    blocks = [head, _axes(plan, style), _experiments(plan, style), _refused(plan.experiments, style)]
    blocks += [_each(plan, style)] if verbose else []
    blocks += [_linked(plan, style), _time(plan, style)]
    blocks.append(_analysis(plan, style))
    return "\n\n".join("\n".join(block) for block in blocks if block)


def trial_text(plan: PlannedTrial, style: Style = PLAIN) -> str:
    """The standard trial: each experiment with its time, those that cannot run, and the time of all."""
    head = [style.paint(f"The standard trial of this machine: {count(len(plan.experiments), 'experiment')}", "heading")]
    rows, varied = [["benchmark", "", "a repeat", "expected", "at most"]], _varied(plan.experiments)
    for one in plan.experiments:
        if one.refusal is None:
            times = [show(s, "s", 2) for s in (one.repeat_s, plan.estimate_of(one), plan.most_of(one))]
            rows.append([one.experiment.benchmark, _parameters(one, varied[one.experiment.benchmark]), *times])
    lines = [
        *_wrapped(
            style,
            f"expected: about {duration(plan.estimate_s)}; at most about {duration(plan.most_s)}, if no figure is "
            f"known to {show_percent(plan.rule.precision)} before. An experiment takes at most "
            f"{show(plan.rule.budget_s, 's')}, or {plan.rule.minimum} repeats if these take longer. "
            "`seatrial run --budget TIME` measures what fits.",
        ),
        *_building(plan.build_s, style),
    ]
    refused = _refused(plan.experiments, style)
    blocks = [[*head, style.table(rows, has_head=True)], refused, [style.paint("Time", "heading"), *lines]]
    return "\n\n".join("\n".join(block) for block in blocks if block)


def _varied(planned: Sequence[PlannedExperiment]) -> dict[str, list[str]]:
    """The parameters that differ between the experiments of each benchmark, by its name."""
    values: dict[str, dict[str, set[str]]] = {}
    for one in planned:
        own = values.setdefault(one.experiment.benchmark, {})
        for name, value in one.experiment.parameters.items():
            own.setdefault(name, set()).add(repr(value))
    return {benchmark: [name for name, seen in own.items() if len(seen) > 1] for benchmark, own in values.items()}


def _parameters(one: PlannedExperiment, names: Sequence[str]) -> str:
    parameters = one.experiment.parameters
    return ", ".join(f"{clean(name)} {_value(name, parameters[name])}" for name in names if name in parameters)


def _building(build_s: float, style: Style) -> list[str]:
    """The time for missing programs."""
    return _wrapped(style, f"building the missing programs takes about {duration(build_s)} more.") if build_s else []


def _axes(plan: PlannedStudy, style: Style) -> list[str]:
    if not plan.study.axes:
        return []
    rows = [(clean(axis.name), str(len(axis.values)), _values(axis.name, axis.values)) for axis in plan.study.axes]
    lines = [style.paint("Axes", "heading"), style.table(rows)]
    lines += [f"  zip: {', '.join(map(clean, names))}" for names in plan.study.zips]
    for key, points in (("exclude", plan.study.exclude), ("include", plan.study.include)):
        texts = [", ".join(f"{clean(name)} {_value(name, value)}" for name, value in point.items()) for point in points]
        lines += [f"  {key}: {text}" for text in texts[:_MOST_LINES]]
        lines += [f"  {key}: {len(texts) - _MOST_LINES} more"] if len(texts) > _MOST_LINES else []
    return lines


def _experiments(plan: PlannedStudy, style: Style) -> list[str]:
    number = len(plan.experiments)
    lines = [style.paint(count(number, "experiment"), "heading")]
    merged = plan.combinations - number
    if merged:
        lines.append(f"  {count(plan.combinations, 'combination')}, of which {merged} are duplicates here")
    by_benchmark = Counter(experiment.experiment.benchmark for experiment in plan.experiments)
    ready = Counter(e.experiment.benchmark for e in plan.experiments if e.refusal is None)
    repeat_s = dict.fromkeys(by_benchmark, 0.0)
    for experiment in plan.experiments:
        repeat_s[experiment.experiment.benchmark] += experiment.repeat_s
    rows = []
    for name, here in by_benchmark.items():
        can = "" if ready[name] == here else f"{ready[name]} can run here"
        mean = f"{show(repeat_s[name] / ready[name], 's')} each repeat" if ready[name] else ""
        rows.append((name, count(here, "experiment"), mean, can))
    return [*lines, style.table(rows)]


def _each(plan: PlannedStudy, style: Style) -> list[str]:
    """Every experiment: the values of its axes, and the time of a repeat."""
    rows = [["benchmark", "", "a repeat"]]
    for one in plan.experiments:
        given = ", ".join(f"{clean(name)} {_value(name, value)}" for name, value in one.point.given.items())
        rows.append([one.experiment.benchmark, given, show(one.repeat_s, "s", 2) if one.refusal is None else "-"])
    return [style.table(rows, has_head=True)]


def _refused(planned: Sequence[PlannedExperiment], style: Style) -> list[str]:
    """The experiments that cannot run, grouped by reason."""
    reasons: dict[tuple[str, str], list[PlannedExperiment]] = {}
    for experiment in planned:
        if experiment.refusal is not None:
            lines = (line.strip() for line in (experiment.refusal.reason or "").splitlines())
            key = (experiment.refusal.state.value, "; ".join(line for line in lines if line))
            reasons.setdefault(key, []).append(experiment)
    if not reasons:
        return []
    text = [style.paint("Cannot run here", "warning")]
    for (state, reason), experiments in list(reasons.items())[:_MOST_LINES]:
        names = ", ".join(dict.fromkeys(experiment.experiment.benchmark for experiment in experiments))
        text += _wrapped(style, f"{state}: {count(len(experiments), 'experiment')} of {names}: {reason}")
    if len(reasons) > _MOST_LINES:
        text.append(f"  {len(reasons) - _MOST_LINES} more reasons (--format json lists all)")
    return text


def _linked(plan: PlannedStudy, style: Style) -> list[str]:
    """Which installed program is linked with which MPI library."""
    if not plan.linked:
        return []
    rows = []
    for one in plan.linked:
        library = one.path or f"{one.library}, which the loader does not find"
        rows.append((one.benchmark, one.program, "linked with", clean(one.mpi or "an unknown MPI"), clean(library)))
    return [style.paint("Installed programs and their MPI library", "heading"), style.table(rows)]


def _time(plan: PlannedStudy, style: Style) -> list[str]:
    lines = [style.paint("Time", "heading")]
    budget = show(plan.study.repeat.budget_s, "s")
    if plan.round_s == 0:
        return [*lines, "  none: nothing can run here"]
    if plan.is_short_of_time:
        text = (
            f"The budget of {budget} is too short: {MINIMUM_REPEATS} repeats of each experiment take "
            f"{show(plan.least_s, 's')}, but only {plan.affordable} fit. Below {MINIMUM_REPEATS} repeats there is no "
            f"interval and no verdict. Set a budget of at least {show(plan.least_s, 's')} (repeat.budget), or use "
            "fewer values."
        )
        return [style.paint("Time", "warning"), *_wrapped(style, text)]
    precision = show_percent(plan.study.repeat.precision)
    undecided = "undecided comparisons" if plan.study.compare is not None else f"figures not yet known to {precision}"
    text = (
        f"about {show(plan.estimate_s, 's')} for the first {plan.first_look} repeats of each experiment; {undecided} "
        f"then continue, up to the budget of {budget} for the whole study and {plan.study.repeat.maximum} repeats "
        f"each. The minimum of {MINIMUM_REPEATS} repeats for an interval takes {show(plan.least_s, 's')}."
    )
    return [*lines, *_wrapped(style, text), *_building(plan.build_s, style)]


def _analysis(plan: PlannedStudy, style: Style) -> list[str]:
    study = plan.study
    lines: list[str] = []
    if study.compare is not None:
        along = study.compare.along
        comparisons = sum((len(group) - 1) * len(_figures(plan, group)) for group in plan.compared)
        others = [_value(along, v) for v in _axis_values(plan, along) if v != study.compare.baseline]
        if comparisons:
            how = "on each system in a job of its own" if along == SYSTEM else "side by side in random order"
            text = (
                f"{_short(others)} against {_value(along, study.compare.baseline)} along {clean(along)}, "
                f"{'equivalence' if study.compare.asks_equivalence else 'margin'} "
                f"{show_percent(study.compare.margin)}: {count(comparisons, 'comparison')} in "
                f"{count(len(plan.compared), 'group')}, each group measured {how}."
            )
            lines += _wrapped(style, text)
            for name, figures in _figures_by_benchmark(plan).items():
                lines += _wrapped(style, f"figures of {name}: {', '.join(figures)}")
        else:
            lines += _wrapped(style, f"no comparison: fewer than two values of {clean(along)} can run here.")
        for same in plan.same[:_MOST_LINES]:
            shown = _short([_value(along, value) for value in same.values])
            text = f"{same.benchmark}: {shown} are one experiment on this machine"
            lines += _wrapped(style, f"not compared: {text}.")
    if study.scaling is not None:
        lines += _wrapped(style, _scaling(plan, study.scaling))
    if study.best_of is not None:
        lines += _wrapped(style, f"the best {study.best_of.figure} over {', '.join(map(clean, study.best_of.over))}.")
    return [style.paint("Analysis", "heading"), *lines] if lines else []


def _scaling(plan: PlannedStudy, scaling: Scaling) -> str:
    """What scales, or that nothing does because too few numbers of workers can run here."""
    text = f"{scaling.kind} scaling along {clean(scaling.along)}"
    here = {
        str(point.parameters.get(scaling.along, point.given.get(scaling.along)))
        for point in plan.points
        if point.refusal is None and scaling.along in point.given
    }
    values = _axis_values(plan, scaling.along)
    if len(here) < 2:
        return f"no {text}: {len(here)} of its {len(values)} values can run here, and it needs two."
    return f"{text}."


def _figures_by_benchmark(plan: PlannedStudy) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for group in plan.compared:
        own = found.setdefault(group[0].experiment.benchmark, [])
        own += [name for name in _figures(plan, group) if name not in own]
    return found


def _figures(plan: PlannedStudy, group: Sequence[PlannedExperiment]) -> list[str]:
    """The figures that are compared in a group: those that all its experiments have."""
    wanted = plan.study.compare.figures if plan.study.compare is not None else ()
    return [
        figure.name
        for figure in benchmark_named(group[0].experiment.benchmark).figures
        if (not wanted or figure.name in wanted)
        and all(figure.is_there(planned.experiment.parameters) for planned in group)
    ]


def _axis_values(plan: PlannedStudy, name: str) -> tuple[Value | None, ...]:
    axis = plan.study.axis(name)
    return () if axis is None else axis.values


def _value(name: str, value: Value | None) -> str:
    if value is None:
        return "(unset)"
    if isinstance(value, tuple):
        return clean(" ".join(value))
    text = written(name, value)
    return clean(text) if text else "(none)"


def _values(name: str, values: Iterable[Value | None]) -> str:
    return _short([_value(name, value) for value in values])


def _short(shown: list[str]) -> str:
    if len(shown) <= _MOST_VALUES:
        return ", ".join(shown)
    return f"{', '.join(shown[: _MOST_VALUES - 1])}, ... {shown[-1]}"


def _wrapped(style: Style, text: str) -> list[str]:
    return style.wrapped(clean(text), "  ")


_MOST_NAMES = 4


def jobs_text(planned: PlannedJobs, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """The jobs with their times and node-hours, and the script of the first; `verbose`: of each."""
    is_of_several = len({job.system for job in planned.jobs}) > 1
    rows = [
        [
            "job",
            *(["system"] if is_of_several else []),
            "benchmarks",
            "nodes",
            "expected",
            "time limit",
            "node-hours at most",
        ]
    ]
    for number, job in enumerate(planned.jobs, start=1):
        shown = few_names(job.benchmarks, _MOST_NAMES)
        times = (duration(job.expected_s), duration(job.limit_s), f"{job.node_hours:.3g}")
        rows.append([str(number), *([clean(job.system)] if is_of_several else []), shown, str(job.nodes), *times])
    title = f"{count(len(planned.jobs), 'job')} on {clean(planned.system)}, {planned.node_hours:.3g} node-hours at most"
    known = planned.machine_is_of_nodes
    machine = "the nodes, as an earlier job found them." if known else "this machine: the nodes are not known yet."
    lines = [style.paint(title, "heading"), style.table(rows, has_head=True)]
    lines += style.wrapped(f"planned for {machine}", "  ")
    for number, job in enumerate(planned.jobs if verbose else planned.jobs[:1], start=1):
        title = f"Script of job {number}" + ("" if verbose or len(planned.jobs) == 1 else " (-v: of each)")
        script = [f"  {clean(line)}" for line in job.script.splitlines()]
        lines += ["", style.paint(title, "heading"), *script]
    return "\n".join(lines)
