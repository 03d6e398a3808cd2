"""Rules about the training of networks: a process that is late in each step, and processors that compute other bits."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from seatrial.analysis.rules.finding import (
    FINGERPRINT,
    Case,
    Subject,
    error,
    finite_numbers,
    listed,
    noted,
    rule,
    warning,
)
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fact import Finding
from seatrial.model.spelling import count, show

_LATE = 1.1
"""A process is late whose own step takes this times as long as that of the others."""
_MOST_OF_REPEATS = 0.5
_FEWEST_REPEATS = 3


class _Late(Frozen):
    """A process that is late in most repeats: in how many of all, its seconds, those of the others, its hosts."""

    number: int
    repeats: str
    own_s: float
    others_s: float
    hosts: str


def _late(repeats: Sequence[Mapping[str, Any]], key: str) -> _Late | None:
    """The process whose time under `key` in the notes is longer than that of the others in most repeats."""
    late: dict[int, list[tuple[float, float, str]]] = defaultdict(list)
    for repeat in repeats:
        if (found := _latest(repeat, key)) is not None:
            late[found[0]].append(found[1:])
    number = max(late, key=lambda one: len(late[one]), default=None)
    if number is None or len(late[number]) <= max(_FEWEST_REPEATS - 1, _MOST_OF_REPEATS * len(repeats)):
        return None
    own_s, others_s = median(one[0] for one in late[number]), median(one[1] for one in late[number])
    hosts = listed(sorted({one[2] for one in late[number]}))
    return _Late(number, f"{len(late[number])} of {count(len(repeats), 'repeat')}", own_s, others_s, hosts)


@rule(Subject.STEADINESS)
def process_is_late(case: Case) -> Iterator[Finding]:
    """Fires if the same process needs longer than the others for its own part of a step, in most repeats."""
    for name, _, repeats in noted(case, FINGERPRINT):
        if (late := _late(repeats, "own_step_s")) is None:
            continue
        yield warning(
            "process-is-late",
            observation=f"{name}: process {late.number} on {late.hosts} takes {show(late.own_s, 's')} for its own part "
            f"of a step, without the exchange of gradients; the others take {show(late.others_s, 's')}.",
            diagnosis="All processes wait for it in every step. Whether its CPUs or device are slower, or others use "
            "them, or its data come late, was not separated.",
            remedy=f"Run it with the processes on other CPUs or nodes: if the delay stays with {late.hosts}, look "
            "there; `seatrial screen` compares nodes",
            evidence=(late.repeats,),
        )


@rule(Subject.INPUT)
def input_pipeline_is_late(case: Case) -> Iterator[Finding]:
    """Fires if the workers of the same process need longer for a batch than those of the others, in most repeats."""
    for name, _, repeats in noted(case, FINGERPRINT):
        if (late := _late(repeats, "input_batch_s")) is None:
            continue
        yield warning(
            "input-pipeline-is-late",
            observation=f"{name}: the workers of process {late.number} on {late.hosts} take {show(late.own_s, 's')} "
            f"for a batch, those of the others {show(late.others_s, 's')}.",
            diagnosis="If its batches are then not ready in time, all processes wait (`data_wait`). Whether its CPUs "
            "or its storage are slower was not separated.",
            remedy="Measure the input pipeline by itself, without a network, on that node and on another",
            evidence=(late.repeats,),
        )


def _latest(notes: Mapping[str, Any], key: str) -> tuple[int, float, float, str] | None:
    """The process that is late, its time, that of the others, and its host; None if none is."""
    processes = notes.get("processes")
    if not isinstance(processes, list) or not all(isinstance(one, Mapping) for one in processes):
        return None
    each = finite_numbers(one.get(key) for one in processes)
    if len(each) != len(processes) or len(each) < 2:
        return None
    number = max(range(len(each)), key=each.__getitem__)
    others_s = median(each[:number] + each[number + 1 :])
    if each[number] < _LATE * others_s:
        return None
    return number, each[number], others_s, str(processes[number].get("host"))


@rule(Subject.OUTCOMES)
def fingerprints_differ(case: Case) -> Iterator[Finding]:
    """Fires if repeats of one experiment computed other bits than most in a deterministic run."""
    for name, _, repeats in noted(case, FINGERPRINT):
        prints = Counter(str(repeat["fingerprint"]) for repeat in repeats)
        if len(prints) == 1:
            continue
        usual, times = prints.most_common(1)[0]
        others = [repeat for repeat in repeats if repeat["fingerprint"] != usual]
        hosts = sorted({str(repeat["host"]) for repeat in others if repeat["host"]})
        every = {str(repeat["host"]) for repeat in repeats if repeat["fingerprint"] == usual}
        yield error(
            "fingerprints-differ",
            observation=f"{name}: a short deterministic run gave other bits in {len(others)} of "
            f"{count(len(repeats), 'repeat')}" + (f", on {listed(hosts)}." if hosts else "."),
            diagnosis="Library, threads and settings are the same, so a processor, a device or memory computed "
            "something else, or an operation is not deterministic."
            + ("" if every & set(hosts) else " It was only seen on the named hosts."),
            remedy="Repeat it on the named hosts alone (--again); if the bits differ again, take the host out of use "
            "and run the maker's diagnostics",
            evidence=(
                f"{usual}: {count(times, 'repeat')}",
                *(f"{one}: {n}" for one, n in prints.items() if one != usual),
            ),
        )
