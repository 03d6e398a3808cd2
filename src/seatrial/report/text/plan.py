"""A plan as text for a terminal: the axes, the experiments, those that cannot run, the time, and the analysis."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.benchmarks import benchmark_named
from seatrial.model.benchmark.parameter import Value
from seatrial.model.benchmark.power import is_of_power
from seatrial.model.spelling import count, few_names, show, show_percent, written
from seatrial.model.study.study import POWER, SYSTEM, Compare, Scaling
from seatrial.model.units import duration
from seatrial.plan.planned import PlannedExperiment, PlannedJobs, PlannedStudy, PlannedTrial
from seatrial.report.text.terminal import PLAIN, Style, block, clean, joined, sentences
from seatrial.stats.interval import MINIMUM_REPEATS

_MOST_LINES = 20
"""Of one kind; the JSON has all."""
_MOST_VALUES = 12


def plan_text(plan: PlannedStudy | PlannedTrial, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """The output of `seatrial plan` without a trailing newline; `verbose` lists each experiment of a study."""
    if isinstance(plan, PlannedTrial):
        return trial_text(plan, style)
    study = plan.study
    head = [style.paint(clean(study.name), "heading"), *sentences([study.question], style)]
    blocks = [head, _axes(plan, style), _experiments(plan, style), _refused(plan.experiments, style)]
    blocks.append(_open(plan.experiments, style))
    blocks += [_each(plan, style)] if verbose else []
    blocks += [_linked(plan, style), _time(plan, style), _analysis(plan, style)]
    return joined(map("\n".join, blocks))


def plan_line(plan: PlannedStudy | PlannedTrial) -> str:
    """The plan in one line: "3 experiments, 1 of which cannot run here; expected: about 4 min"."""
    refused = sum(not one.may_run for one in plan.experiments)
    some = f", {refused} of which cannot run here" if refused else ""
    expected = f"about {duration(plan.estimate_s)}" if plan.estimate_s else "unknown"
    return f"{count(len(plan.experiments), 'experiment')}{some}; expected: {expected}"


def trial_text(plan: PlannedTrial, style: Style = PLAIN) -> str:
    """Benchmarks or the standard trial: each experiment with its time, those that cannot run, and the time of all."""
    number = count(len(plan.experiments), "experiment")
    title = number if plan.is_named else f"The standard trial of this machine: {number}"
    head = [style.paint(title, "heading")]
    rows, varied = [["benchmark", "", "a repeat", "expected", "at most"]], _varied(plan.experiments)
    for one in plan.experiments:
        if one.refusal is None:
            times = [show(s, "s", 2) for s in (one.repeat_s, plan.estimate_of(one), plan.most_of(one))]
            rows.append([one.experiment.benchmark, _parameters(one, varied[one.experiment.benchmark]), *times])
    text = (
        f"expected: about {duration(plan.estimate_s)}; at most about {duration(plan.most_s)}, if no figure is known to "
        f"{show_percent(plan.rule.precision)} before. An experiment takes at most {show(plan.rule.budget_s, 's')}, or "
        f"{plan.rule.minimum} repeats if these take longer. `seatrial run --budget TIME` measures what fits."
    )
    if plan.budget_s is not None:
        text = (
            f"expected: about {duration(plan.estimate_s)}; at most the budget of {duration(plan.budget_s)}, "
            f"also with the {plan.rule.minimum} repeats that an interval needs taking longer."
            if not plan.is_named
            else f"expected: about {duration(plan.estimate_s)} of the budget of {duration(plan.budget_s)}; what was "
            f"named gets its {plan.rule.minimum} repeats in any case."
        )
    if not any(one.refusal is None for one in plan.experiments):
        text = _NO_TIME if any(one.is_open for one in plan.experiments) else "none: nothing can run here"
    table = [style.table(rows, has_head=True)] if len(rows) > 1 else []
    refused = [_refused(plan.experiments, style), _open(plan.experiments, style)]
    time = block("Time", sentences((text, _building(plan.build_s)), style), style)
    return joined(["\n".join([*head, *table]), *map("\n".join, refused), time])


_NO_TIME = "no estimate: how long a repeat takes is seen on the nodes."


def _building(build_s: float) -> str:
    """The time for missing programs."""
    return f"building the missing programs takes about {duration(build_s)} more." if build_s else ""


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


def _axes(plan: PlannedStudy, style: Style) -> list[str]:
    if not plan.study.axes:
        return []
    rows = [
        (clean(axis.name), str(len(axis.values)), _short([_value(axis.name, value) for value in axis.values]))
        for axis in plan.study.axes
    ]
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
    of_benchmark: dict[str, list[PlannedExperiment]] = {}
    for one in plan.experiments:
        of_benchmark.setdefault(one.experiment.benchmark, []).append(one)
    rows = []
    for name, those in of_benchmark.items():
        ready = sum(one.refusal is None for one in those)
        open_ones = sum(one.is_open for one in those)
        can = "" if ready + open_ones == len(those) else f"{ready + open_ones} can run" + ("" if open_ones else " here")
        mean = f"{show(sum(one.repeat_s for one in those) / ready, 's')} each repeat" if ready else ""
        rows.append((name, count(len(those), "experiment"), mean, can))
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
    lines = _by_reason([one for one in planned if not one.may_run], style, with_state=True)
    return [style.paint("Cannot run here", "warning"), *lines] if lines else []


def _open(planned: Sequence[PlannedExperiment], style: Style) -> list[str]:
    """The experiments of jobs that cannot run on this machine: the nodes decide."""
    lines = _by_reason([one for one in planned if one.is_open], style, with_state=False)
    return [style.paint("Decided on the nodes; this machine cannot run", "heading"), *lines] if lines else []


def _by_reason(planned: Sequence[PlannedExperiment], style: Style, *, with_state: bool) -> list[str]:
    """Experiments that are refused, grouped by reason."""
    reasons: dict[tuple[str, str], list[PlannedExperiment]] = {}
    for experiment in planned:
        if experiment.refusal is not None:
            lines = (line.strip() for line in (experiment.refusal.reason or "").splitlines())
            key = (experiment.refusal.state.value, "; ".join(line for line in lines if line))
            reasons.setdefault(key, []).append(experiment)
    text = []
    for (state, reason), experiments in list(reasons.items())[:_MOST_LINES]:
        names = ", ".join(dict.fromkeys(experiment.experiment.benchmark for experiment in experiments))
        what = f"{count(len(experiments), 'experiment')} of {names}: {reason}"
        text += sentences([f"{state}: {what}" if with_state else what], style)
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
    budget, least = show(plan.study.repeat.budget_s, "s"), show(plan.least_s, "s")
    if plan.round_s == 0:
        is_open = any(one.is_open for one in plan.experiments)
        return [style.paint("Time", "heading"), f"  {_NO_TIME if is_open else 'none: nothing can run here'}"]
    if plan.is_short_of_time:
        text = (
            f"The budget of {budget} is too short: {MINIMUM_REPEATS} repeats of each experiment take {least}, but only "
            f"{plan.affordable} fit. Below {MINIMUM_REPEATS} repeats there is no interval and no verdict. Set a budget "
            f"of at least {least} (repeat.budget), or use fewer values."
        )
        return [style.paint("Time", "warning"), *sentences([text], style)]
    precision = show_percent(plan.study.repeat.precision)
    undecided = "undecided comparisons" if plan.study.compare is not None else f"figures not yet known to {precision}"
    text = (
        f"about {show(plan.estimate_s, 's')} for the first {plan.first_look} repeats of each experiment; {undecided} "
        f"then continue, up to the budget of {budget} for the whole study and {plan.study.repeat.maximum} repeats "
        f"each. The minimum of {MINIMUM_REPEATS} repeats for an interval takes {least}."
    )
    return [style.paint("Time", "heading"), *sentences([text, _building(plan.build_s)], style)]


def _analysis(plan: PlannedStudy, style: Style) -> list[str]:
    study = plan.study
    texts = [] if study.compare is None else _comparisons(plan, study.compare)
    if study.scaling is not None:
        texts.append(_scaling(plan, study.scaling))
    if study.best_of is not None:
        texts.append(f"the best {study.best_of.figure} over {', '.join(study.best_of.over)}.")
    return [style.paint("Analysis", "heading"), *sentences(texts, style)] if texts else []


def _comparisons(plan: PlannedStudy, compare: Compare) -> list[str]:
    along = compare.along
    figures: dict[str, list[str]] = {}
    comparisons = 0
    for group in plan.compared:
        of_group = _figures(plan, group)
        comparisons += (len(group) - 1) * len(of_group)
        own = figures.setdefault(group[0].experiment.benchmark, [])
        own += [name for name in of_group if name not in own]
    if comparisons:
        others = [_value(along, value) for value in _axis_values(plan, along) if value != compare.baseline]
        how = "on each system in its own job" if along == SYSTEM else "side by side in random order"
        texts = [
            f"{_short(others)} against {_value(along, compare.baseline)} along {along}, "
            f"{'equivalence' if compare.asks_equivalence else 'margin'} {show_percent(compare.margin)}: "
            f"{count(comparisons, 'comparison')} in {count(len(plan.compared), 'group')}, each group measured {how}.",
            *(f"figures of {name}: {', '.join(names)}" for name, names in figures.items()),
        ]
    else:
        texts = [f"no comparison: fewer than two values of {along} can run here."]
    for same in plan.same[:_MOST_LINES]:
        shown = _short([_value(along, value) for value in same.values])
        texts.append(f"not compared: {same.benchmark}: {shown} are one experiment on this machine.")
    return texts


def _scaling(plan: PlannedStudy, scaling: Scaling) -> str:
    """What scales, or that nothing does because too few numbers of workers can run here."""
    text = f"{scaling.kind} scaling along {clean(scaling.along)}"
    is_open = any(one.is_open for one in plan.experiments)
    here = {
        str(point.parameters.get(scaling.along, point.given.get(scaling.along)))
        for point in plan.points
        if (point.refusal is None or is_open) and scaling.along in point.given
    }
    values = _axis_values(plan, scaling.along)
    if len(here) < 2:
        return f"no {text}: {len(here)} of its {len(values)} values can run here, and it needs two."
    return f"{text}."


def _figures(plan: PlannedStudy, group: Sequence[PlannedExperiment]) -> list[str]:
    """The figures that are compared in a group: those that all its experiments have."""
    wanted = plan.study.compare.figures if plan.study.compare is not None else ()
    return [
        figure.name
        for figure in benchmark_named(group[0].experiment.benchmark).figures
        if (not wanted or figure.name in wanted)
        and (POWER in plan.study.probes or not is_of_power(figure))
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


def _short(shown: list[str]) -> str:
    if len(shown) <= _MOST_VALUES:
        return ", ".join(shown)
    return f"{', '.join(shown[: _MOST_VALUES - 1])}, ... {shown[-1]}"


_MOST_NAMES = 4


def jobs_text(planned: PlannedJobs, style: Style = PLAIN, *, verbose: bool = False) -> str:
    """The jobs with their times and node-hours, and the script of the first; `verbose`: what differs in each other."""
    is_of_several = len({job.system for job in planned.jobs}) > 1
    columns = ("benchmarks", "nodes", "expected", "time limit", "node-hours at most")
    rows = [["job", *["system"] * is_of_several, *columns]]
    for number, job in enumerate(planned.jobs, start=1):
        shown = few_names(job.benchmarks, _MOST_NAMES)
        times = (duration(job.expected_s), duration(job.limit_s), f"{job.node_hours:.3g}")
        rows.append([str(number), *[clean(job.system)] * is_of_several, shown, str(job.nodes), *times])
    title = f"{count(len(planned.jobs), 'job')} on {clean(planned.system)}, {planned.node_hours:.3g} node-hours at most"
    known = planned.machine_is_of_nodes
    machine = "the nodes, as an earlier job found them." if known else "this machine: the nodes are not known yet."
    lines = [style.paint(title, "heading"), style.table(rows, has_head=True)]
    lines += style.wrapped(f"planned for {machine}", "  ")
    first = planned.jobs[0].script.splitlines()
    for number, job in enumerate(planned.jobs if verbose else planned.jobs[:1], start=1):
        title = f"Script of job {number}" + ("" if verbose or len(planned.jobs) == 1 else " (-v: of each)")
        script = job.script.splitlines()
        if number > 1:
            title += f", as of job 1 but for {count(len(own := [one for one in script if one not in first]), 'line')}"
            script = own
        lines += ["", style.paint(title, "heading"), *(f"  {clean(line)}" for line in script)]
    return "\n".join(lines)
