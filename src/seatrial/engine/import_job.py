"""What a text says about its job completes the parameters of the results in it; what contradicts them is a caution."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.benchmark.benchmark import Benchmark
from seatrial.model.benchmark.parameter import UNKNOWN, Value
from seatrial.model.benchmark.program import NODES, RANKS
from seatrial.model.results.imported import ImportedExperiment, ImportedFile, JobFact


def with_job(
    benchmark: Benchmark, found: ImportedExperiment, content: ImportedFile, settings: Mapping[str, str]
) -> ImportedExperiment:
    """The experiment with the parameters that the job of its text states and neither the results nor the user (in
    `settings`) do; with a remark on each that contradicts the results, which is not used."""
    if found.is_ours:
        return found
    notes = {**found.notes, "command": content.command} if content.command else found.notes
    known = {parameter.name for parameter in benchmark.parameters}
    parameters, remarks, from_job = dict(found.parameters), list(found.remarks), {}
    started = next((fact.value for fact in content.job if fact.name == RANKS), None)
    for fact in content.job:
        if fact.name == NODES and parameters.get(RANKS, started) != started:
            continue  # some of the ranks took part: on which nodes is unknown
        stated = parameters.get(fact.name, UNKNOWN)
        if fact.name not in known:
            continue
        if stated != UNKNOWN and _contradicts(fact, stated, parameters):
            remarks.append(
                f"line {fact.line} ({fact.text}) states {fact.name}={fact.value}, but the results state {stated}: "
                "the results count, and the line may be of another run"
            )
            return replace(found, notes=found.notes, remarks=tuple(remarks))
        if stated == UNKNOWN and fact.name not in settings and (value := _value(benchmark, fact)) is not None:
            from_job[fact.name] = value
    if _is_impossible({**parameters, **from_job}):
        return replace(found, notes=notes, remarks=tuple(remarks))
    if from_job:
        notes = {**notes, "from_the_job": sorted(from_job)}
    return replace(found, parameters={**parameters, **from_job}, notes=notes, remarks=tuple(remarks))


def _value(benchmark: Benchmark, fact: JobFact) -> Value | None:
    """The value of a fact as the parameter has it; None if it cannot have it."""
    try:
        return benchmark.parameter(fact.name).value_of(str(fact.value))
    except UsageError:
        return None


def _contradicts(fact: JobFact, stated: Value, parameters: Mapping[str, Value]) -> bool:
    """Whether a fact and the results cannot both be true. Fewer ranks than were started may have taken part, and a
    program may start more threads than one per process."""
    if not isinstance(stated, int) or not isinstance(fact.value, int):
        return str(fact.value) != str(stated)
    if fact.name == RANKS:
        groups = parameters.get("groups")
        return stated * (groups if isinstance(groups, int) else 1) > fact.value
    return stated != fact.value


def _is_impossible(parameters: Mapping[str, Value]) -> bool:
    """Whether there are more nodes than ranks: then the job is not that of the results."""
    ranks, nodes = parameters.get(RANKS), parameters.get(NODES)
    return isinstance(ranks, int) and isinstance(nodes, int) and nodes > ranks
