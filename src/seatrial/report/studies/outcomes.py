"""Text about the outcomes of a study's experiments."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.model.figure_result import ExperimentResult
from seatrial.report.units import count


def outcome_counts(results: Sequence[ExperimentResult]) -> str:
    """The number of experiments per outcome: "11 of 12 experiments succeeded, 1 failed"."""
    states: dict[str, int] = {}
    for result in results:
        states[result.outcome.state.value] = states.get(result.outcome.state.value, 0) + 1
    ok = states.pop("ok", 0)
    rest = "".join(f", {number} {state.replace('_', ' ')}" for state, number in states.items())
    return f"{ok} of {count(len(results), 'experiment')} succeeded{rest}"
