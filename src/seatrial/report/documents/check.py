"""`seatrial.check/1`: findings and bindings as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seatrial.analysis.bindings import Binding
from seatrial.analysis.rank_layout import Layout
from seatrial.model.finding import Finding


def check_document(
    findings: Sequence[Finding], bindings: Sequence[Binding], layout: Layout | None = None
) -> dict[str, Any]:
    """The object that CONTRACT names, findings in their order; what is unknown is null.

    Beyond the contract: `loss` of a finding, `srun` and `mpich` of a binding, and `layouts` where one was asked for.
    """
    document: dict[str, Any] = {
        "schema": "seatrial.check/1",
        "findings": [_finding(finding) for finding in findings],
        "bindings": [_binding(binding) for binding in bindings],
    }
    if layout is not None:
        document["layouts"] = [_layout(layout)]
    return document


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "rule": finding.rule,
        "severity": finding.severity.value,
        "devices": list(finding.devices),
        "observation": finding.observation,
        "diagnosis": finding.diagnosis,
        "remedy": finding.remedy,
        "evidence": finding.evidence,
        "loss": finding.loss,
    }


def _binding(binding: Binding) -> dict[str, Any]:
    return {
        "device": binding.device,
        "cpus": None if binding.cpus is None else list(binding.cpus),
        "numa": binding.numa,
        "numactl": binding.numactl,
        "mpirun": binding.mpirun,
        "srun": binding.srun,
        "mpich": binding.mpich,
    }


def _layout(layout: Layout) -> dict[str, Any]:
    return {
        "ranks": len(layout.places),
        "how": layout.how,
        "places": [
            {
                "rank": place.rank,
                "device": place.gpu,
                "adapter": place.adapter,
                "numa": place.numa,
                "cpus": list(place.cpus),
            }
            for place in layout.places
        ],
        "mpirun": layout.mpirun,
        "srun": layout.srun,
        "mpich": layout.mpich,
        "rankfile": layout.rankfile,
    }
