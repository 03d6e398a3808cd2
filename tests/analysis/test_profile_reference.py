"""The measurements of a results folder that a profile is judged against: same hosts, same library, same ranks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from diagnosis.test_diagnosis import profile, rank
from made_up import made_up_machine
from profiler.made_up_tables import Call

from seatrial.analysis.profile_reference import judged_profile
from seatrial.model.machine.document import machine_document
from seatrial.model.results.record import Experiment, RepeatRecord
from seatrial.model.results.sample import Outcome, Sample
from seatrial.model.study.result import PerRepeat, RecordPlace
from seatrial.profiler.cause import Cause, Diagnosis, Signal
from seatrial.profiler.profile import Profile
from seatrial.store.contents import Contents

MACHINE = made_up_machine()
LIBRARY = "Open MPI v4.1.4"
PAIR = {"ranks": 2, "nodes": 1, "placement": "cores", "buffers": "host"}
MIB = 1 << 20


def measured(
    benchmark: str,
    series: str,
    values: Mapping[int, float],
    parameters: Mapping[str, object],
    hosts: tuple[str, ...] = ("node1", "node1"),
    library: str = LIBRARY,
) -> Contents:
    """One experiment with these seconds (of a bandwidth: B/s) by size."""
    experiment = Experiment(benchmark, dict(parameters), "", "", "m")
    is_rate = benchmark == "mpi.bandwidth"
    samples = tuple(
        Sample(
            series, k, 1.0 if is_rate else value, {"bytes": value} if is_rate else {"ops": 1.0}, point={"size_B": size}
        )
        for k, (size, value) in enumerate(values.items())
    )
    seen = {"host": hosts[0], "notes": {"mpi_version": f"{library}\nmore"}}
    if len(set(hosts)) > 1:
        seen["hosts"] = list(hosts)
    record = RepeatRecord(experiment.id, 0, 0, 1.0, 1.0, Outcome.ok(), samples, seen=seen)
    places = PerRepeat({experiment.id: {0: RecordPlace("records/x.jsonl", 1)}})
    return Contents(
        {experiment.id: experiment}, {experiment.id: (record,)}, places, {"m": machine_document(MACHINE)}, {}
    )


def together(*parts: Contents) -> Contents:
    merged = parts[0]
    for one in parts[1:]:
        merged = replace(
            merged,
            experiments={**merged.experiments, **one.experiments},
            records={**merged.records, **one.records},
            places=PerRepeat({**merged.places.by_experiment, **one.places.by_experiment}),
        )
    return merged


LATENCY = measured("mpi.latency", "one_way", {8: 1e-6, MIB: 2e-4}, PAIR)
BANDWIDTH = measured("mpi.bandwidth", "bandwidth", {8: 1e6, MIB: 1e10}, {**PAIR, "window": 64})
ACROSS = measured("mpi.latency", "one_way", {8: 5e-6, MIB: 1e-3}, {**PAIR, "nodes": 2}, ("node1", "node2"))
REDUCE = measured("mpi.allreduce", "time_max", {8: 3e-6, MIB: 1e-3}, {"ranks": 2, "nodes": 1, "call": "blocking"})


def receiving(size_B: int = 4 * MIB, hosts: tuple[str, str] = ("node1", "node1"), best_s: float = 2e-3) -> Profile:
    """Two ranks that send each other messages, bound by their transfer."""
    calls = [Call("MPI_Recv", 1000, size_B, 1.05 * best_s, best_s)]
    peers = [{1: (1000, 1000 * size_B, 1000, 1000 * size_B)}, {0: (1000, 1000 * size_B, 1000, 1000 * size_B)}]
    return profile(*(rank(n, 2, calls, host=hosts[n], peers=peers[n]) for n in range(2)))


def of(contents: Contents, judged: Profile, cause: Cause = Cause.TRANSFER) -> Diagnosis:
    return next(one for one in judged_profile(judged, contents).diagnoses if one.cause is cause)


def test_a_message_beyond_the_measured_sizes_is_judged_by_the_bandwidth() -> None:
    assert of(LATENCY, receiving(MIB)).value(Signal.REFERENCE) == pytest.approx(2e-4)
    found = of(together(LATENCY, BANDWIDTH), receiving())
    assert found.value(Signal.REFERENCE) == pytest.approx(2e-4 + 3 * MIB / 1e10)
    assert found.source == "mpi.latency (nodes=1, placement=cores) of this results folder"
    unknown = of(LATENCY, receiving())
    assert unknown.value(Signal.REFERENCE) is None and unknown.value(Signal.ALLOWED) == pytest.approx(
        4e-6 + 4 * MIB / 1e9
    )
    assert "1 GB/s" in unknown.source, "without the bandwidth, by constants"


def test_messages_between_hosts_are_judged_by_those_between_the_same_hosts() -> None:
    both = together(LATENCY, ACROSS)
    across = of(both, receiving(MIB, ("node1", "node2"), best_s=5e-3))
    assert across.value(Signal.REFERENCE) == pytest.approx(1e-3) and "nodes=2" in across.source
    elsewhere = of(both, receiving(MIB, ("node1", "node3"), best_s=5e-3))
    assert elsewhere.value(Signal.REFERENCE) is None


def test_collectives_are_judged_by_those_with_as_many_ranks() -> None:
    calls = [Call("MPI_Allreduce", 1000, MIB, 2.1e-3, 2e-3)]
    reducing = profile(*(rank(n, 2, calls) for n in range(2)))
    found = of(REDUCE, reducing)
    assert found.value(Signal.REFERENCE) == pytest.approx(1e-3)
    assert found.source == "mpi.allreduce (ranks=2, nodes=1) of this results folder"
    four = profile(*(rank(n, 4, calls, cpus=range(4), online=4) for n in range(4)))
    assert of(REDUCE, four).value(Signal.REFERENCE) is None


def test_measurements_with_another_library_or_on_another_host_are_not_used() -> None:
    for others in (
        measured("mpi.latency", "one_way", {8: 1e-6, MIB: 2e-4}, PAIR, library="MPICH 4.0"),
        measured("mpi.latency", "one_way", {8: 1e-6, MIB: 2e-4}, PAIR, hosts=("node9", "node9")),
    ):
        assert of(others, receiving(MIB)).value(Signal.REFERENCE) is None
