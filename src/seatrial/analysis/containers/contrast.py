"""What a container changes between two sides: its facts, and the causes of slower figures."""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.analysis.containers.costs import container_costs
from seatrial.analysis.containers.facts import container_facts
from seatrial.analysis.fairness.side import SideFacts
from seatrial.model.breakdown import Breakdown
from seatrial.model.comparison import Comparison
from seatrial.model.container_contrast import ContainerContrast


def container_contrast(
    baseline: SideFacts,
    candidate: SideFacts,
    comparisons: Sequence[Comparison],
    breakdowns: Sequence[Breakdown],
) -> ContainerContrast | None:
    """The contrast of two sides; None if both run outside of containers, or in equal ones."""
    facts = container_facts(baseline, candidate)
    if not any(fact.is_unlike for fact in facts):
        return None
    costs = container_costs(comparisons, breakdowns, (baseline.records, candidate.records))
    return ContainerContrast(facts, costs)
