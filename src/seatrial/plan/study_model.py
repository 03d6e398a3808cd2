"""The keys of a study file; `study_file` checks what their values mean for the benchmarks that it names."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal

from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.study.study import DEFAULT_MARGIN, MOST_REPEATS, RepeatPolicy
from seatrial.model.units import parse_seconds, parse_share
from seatrial.plan.file_model import (
    Kind,
    Model,
    Spot,
    default,
    either,
    listed,
    model,
    named,
    one_of,
    optional,
    prose,
    required,
    scalar,
    text,
    whole,
)
from seatrial.stats.interval import MINIMUM_REPEATS

_MOST_PARTIAL_SETS = 1000
_MOST_REFERENCES = 100
_LONGEST_NAME = 200
_PARTIAL_SETS = f"a list of partial parameter sets, such as {{threads: 4}}; at most {_MOST_PARTIAL_SETS}"
_PARTIAL_SET = "a partial parameter set, such as {threads: 4}"
_AXIS = "the name of an axis"
_FIGURE = "the name of a figure, or of a benchmark with one main figure"


def _name(spot: Spot) -> str:
    """A clearer message for `study: 2024`."""
    if spot.node.is_scalar and not isinstance(spot.node.value, str | None):
        raise spot.refuse(f"{spot.node.shown()} is not text", f"write it in quotes: study: '{spot.node.written}'")
    return _STUDY_NAME.read(spot)


def _share(spot: Spot, _: float | str) -> float:
    """A share strictly between 0 and 1, given as a number or as text such as "2%"."""
    try:
        return parse_share(spot.node.written)
    except UsageError as error:
        raise spot.refuse(f"{spot.node.shown()} is not a share between 0 and 1", error.todo) from None


def _budget(spot: Spot, budget_s: float) -> float:
    if budget_s <= 0:
        raise spot.refuse(f"{spot.node.value!r} is not a valid time", "give more than 0, such as 5min")
    return budget_s


def _axes(item: Kind[Any], least: int = 0, **limits: Any) -> Kind[dict[str, Any]]:
    """A mapping of names of axes."""
    return named(item, least=least, propertyNames={"minLength": 1, "maxLength": _LONGEST_NAME}, **limits)


_STUDY_NAME = text(pattern="[A-Za-z0-9_-]{1,100}", least=0, most=None)
_NAME = text(most=_LONGEST_NAME)
_SCALAR: Kind[bool | float | str | None] = scalar(bool, int, float, str, NoneType)
_VALUE = either(_SCALAR, listed(_SCALAR))
_SHARE_TEXT: Kind[float | str] = scalar(float, str)
_SHARE = Kind(
    _SHARE_TEXT.then(_share).read,
    {
        "anyOf": [
            {"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1},
            {"type": "string", "pattern": r"^ *[0-9.]+ *%? *$"},
        ]
    },
)
_STRENGTH: Kind[Literal["strong", "weak"]] = one_of("strong", "weak")
_BUDGET = scalar(str, pattern=r"^ *[0-9.]+(e[+-]?[0-9]+)? *(ns|us|µs|ms|s|sec|min|h|d) *$", examples=["5min", "90s"])


class CompareModel(Model):
    """Compares the values of an axis with its baseline."""

    along = required(_AXIS, _NAME)
    baseline = default("a value of that axis (default: its first value)", _VALUE, None, None)
    margin = default("a share between 0 and 1, such as 2%", _SHARE, DEFAULT_MARGIN, "2%")
    equivalence = optional(
        "in place of margin, for the verdict `equivalent`: a share between 0 and 1, such as 2%", _SHARE
    )
    figures = default("a list of figures, such as [triad]; empty: all", listed(_NAME.accepting(_FIGURE)), (), [])


class ScalingModel(Model):
    """How figures change with a numeric axis."""

    kind = required("strong (fixed work) or weak (work grows with the axis)", _STRENGTH)
    along = required("the name of a numeric axis", _NAME)


class BestOfModel(Model):
    """A sweep for the best value of a figure."""

    over = required("a list of axes", listed(_NAME.accepting(_AXIS), 1))
    figure = required(_FIGURE, _NAME)
    at_most = optional(
        "figures with the largest values that a contender may have, such as {mean_power: 300W}",
        named(scalar(str, int, float), least=1, most=100),
    )


class RepeatModel(Model):
    """When to stop repeating."""

    precision = default(
        "a share between 0 and 1, such as 1%: half the width of the interval, relative to the median",
        _SHARE,
        RepeatPolicy().precision,
        "1%",
    )
    budget = default(
        "a time with a unit, such as 5min, for the whole study",
        _BUDGET.parsed(parse_seconds).then(_budget),
        RepeatPolicy().budget_s,
        "5min",
    )
    max = default(
        f"an integer from {MINIMUM_REPEATS} to {MOST_REPEATS}: the most repeats of one experiment",
        whole(MINIMUM_REPEATS, MOST_REPEATS),
        RepeatPolicy().maximum,
        RepeatPolicy().maximum,
    )


class StudyModel(Model):
    """A question, the experiments that answer it, and how they are evaluated."""

    accepts = "a mapping: study, question, benchmarks, then axes, compare and so on"

    study = required("the study's name, text: letters, digits, - and _ (at most 100)", Kind(_name, _STUDY_NAME.schema))
    question = required("text: the question that the study answers", prose(10_000))
    benchmarks = required(
        f"a mapping of benchmarks to their parameters, such as `{benchmark_of(Role.MEMORY_BANDWIDTH)}: "
        "{threads: all}`",
        named(
            named(either(_SCALAR, listed(_VALUE)).accepting("a value, or a list of values (an axis)"))
            .or_null()
            .accepting("a mapping of parameters to values, such as {threads: all}, or {} for the defaults"),
            least=1,
        ),
    )
    axes = optional(
        "a mapping of parameters, or of parts of the environment, to lists of values",
        _axes(
            listed(_VALUE.accepting("a value: text, a number, true or false"), 1).accepting(
                "a list of values, such as [1, 2]"
            )
        ),
    )
    exclude = optional(
        _PARTIAL_SETS,
        listed(_axes(_VALUE.accepting("a value of that axis"), 1).accepting(_PARTIAL_SET), most=_MOST_PARTIAL_SETS),
    )
    include = optional(
        _PARTIAL_SETS,
        listed(
            _axes(_VALUE.accepting("a value of that parameter"), 1).accepting(_PARTIAL_SET), most=_MOST_PARTIAL_SETS
        ),
    )
    zip = optional(
        "a list of lists of axes, such as [[threads, array_B]]; the axes of one list advance together",
        listed(listed(_NAME.accepting(_AXIS), 2).accepting("a list of at least two axes")),
        (),
    )
    compare = optional(
        "the name of an axis, or a mapping such as {along: nontemporal, baseline: false, margin: 2%}",
        either(_NAME, model(CompareModel)),
    )
    scaling = optional("a mapping such as {kind: strong, along: threads}", model(ScalingModel))
    best_of = optional("a mapping such as {over: [record_B], figure: read}", model(BestOfModel))
    repeat = optional("a mapping such as {precision: 1%, budget: 5min, max: 100}", model(RepeatModel))
    probes = optional(
        "a list of probes: mpi, io, power", listed(one_of("mpi", "io", "power").accepting("mpi, io or power")), ()
    )
    references = optional(
        f"a list of published values to show beside the results, at most {_MOST_REFERENCES}; `seatrial list "
        "--references` has their ids",
        listed(_NAME.accepting("the id of a published value, such as s7.triad"), most=_MOST_REFERENCES),
        (),
    )
