"""Why two sides differ in time, in sentences. All sentences about changes between sides are here."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from seatrial.model.breakdown import Breakdown, Change, ChangeDiagnosis, ChangeEvidence, ChangeSignal
from seatrial.report.units import show, show_percent


def change_lines(breakdown: Breakdown) -> list[str]:
    """The causes of a difference with their share of it, as sentences; empty if none was looked for."""
    lines = [f"{change_sentence(one)} ({show_percent(one.share)} of the difference)." for one in breakdown.diagnoses]
    return lines and [f"Why: {lines[0]}", *lines[1:]]


def change_sentence(one: ChangeDiagnosis) -> str:
    """The change and its evidence, as baseline -> candidate, without a full stop."""
    text = _SENTENCES[one.change](one)
    return f"{text[:1].upper()}{text[1:]}"


def _sides(one: ChangeDiagnosis, signal: ChangeSignal, words: Callable[[float], str], missing: str = "unknown") -> str:
    found = next((each for each in one.evidence if each.signal is signal), ChangeEvidence(signal, None, None))
    return " -> ".join(missing if value is None else words(value) for value in (found.baseline, found.candidate))


def _has(one: ChangeDiagnosis, signal: ChangeSignal) -> bool:
    """Whether a signal is known on both sides."""
    return any(each.signal is signal and None not in (each.baseline, each.candidate) for each in one.evidence)


def _seconds(value: float) -> str:
    return show(value, "s")


def _call(one: ChangeDiagnosis) -> str:
    if one.size_B is None:
        return one.call
    return f"{one.call} of {show(one.size_B, 'B', binary=one.size_B % 1024 == 0)}"


def _no_cpu(why: Callable[[ChangeDiagnosis], str]) -> Callable[[ChangeDiagnosis], str]:
    def words(one: ChangeDiagnosis) -> str:
        share = _sides(one, ChangeSignal.RUN_DELAY, lambda value: show_percent(min(1.0, value)))
        return (
            f"ranks were ready to run, but had no CPU, for {share} of their time: {why(one)}. Times in MPI include "
            "waiting for such ranks"
        )

    return words


def _quota(one: ChangeDiagnosis) -> str:
    quotas = _sides(one, ChangeSignal.QUOTA, lambda value: f"{value:.3g} CPUs", "none")
    return f"a CPU quota was used up (quota: {quotas})"


def _others(one: ChangeDiagnosis) -> str:
    cpus = _sides(one, ChangeSignal.OTHERS_CPUS, lambda value: f"{value:.2f} CPUs")
    return f"other processes took CPU time ({cpus})"


def _ranks(one: ChangeDiagnosis) -> str:
    middle = _sides(one, ChangeSignal.COMPUTING, _seconds)
    return f"{_sides(one, ChangeSignal.LONGEST_COMPUTING, _seconds)} for the slowest rank, {middle} for the middle one"


def _cpu_time(one: ChangeDiagnosis) -> str:
    if not _has(one, ChangeSignal.CPU_TIME):
        return ""
    return f", CPU time of a rank {_sides(one, ChangeSignal.CPU_TIME, _seconds)}"


def _computation(one: ChangeDiagnosis) -> str:
    return f"time outside MPI: {_sides(one, ChangeSignal.COMPUTING, _seconds)} per rank{_cpu_time(one)}"


def _blocked(one: ChangeDiagnosis) -> str:
    blocked = _sides(one, ChangeSignal.BLOCKED, _seconds)
    return (
        f"ranks are blocked outside MPI (input, output, sleep): {blocked} per rank neither running nor ready to run, "
        f"of {_sides(one, ChangeSignal.COMPUTING, _seconds)} outside MPI"
    )


def _imbalance(one: ChangeDiagnosis) -> str:
    who = "the slowest rank" if one.rank is None else f"rank {one.rank}"
    return f"the others wait for {who}: time outside MPI {_ranks(one)}"


def _per_call(one: ChangeDiagnosis) -> str:
    return f"{_sides(one, ChangeSignal.CALL_MEAN, _seconds, 'none')} per call on average"


def _calls(one: ChangeDiagnosis) -> str:
    counts = _sides(one, ChangeSignal.CALLS, lambda value: f"{value:.0f}", "0")
    return f"the number of calls, mostly {_call(one)}: {counts} per rank"


def _sizes(one: ChangeDiagnosis) -> str:
    return f"the size of messages: {_call(one)} on one side only, {_per_call(one)}"


def _cost(one: ChangeDiagnosis) -> str:
    shortest = _sides(one, ChangeSignal.CALL_SHORTEST, _seconds)
    return f"each call itself, mostly {_call(one)}: {shortest} for the shortest, {_per_call(one)}"


def _late(what: str) -> Callable[[ChangeDiagnosis], str]:
    def words(one: ChangeDiagnosis) -> str:
        shortest = _sides(one, ChangeSignal.CALL_SHORTEST, _seconds)
        return (
            f"{what}, mostly in {_call(one)}: {_per_call(one)}, {shortest} for the shortest. Time outside MPI does not "
            f"explain it: {_ranks(one)}"
        )

    return words


def _startup(one: ChangeDiagnosis) -> str:
    return f"startup and shutdown of MPI, mostly {one.call}: {_per_call(one)}"


def _not_known(one: ChangeDiagnosis) -> str:
    looked = [f"time outside MPI {_ranks(one)}"] if _has(one, ChangeSignal.COMPUTING) else []
    if one.call:
        looked.append(f"{_call(one)} {_per_call(one)}")
    if _has(one, ChangeSignal.RUN_DELAY):
        delay = _sides(one, ChangeSignal.RUN_DELAY, lambda value: show_percent(min(1.0, value)))
        looked.append(f"without a CPU {delay} of the time")
    seen = f" Looked at: {'; '.join(looked)}." if looked else " Records of this version of seatrial have more signals."
    return f"the rest is not known.{seen} `seatrial profile --wait 10` of each side separates waiting from transfer"


_SENTENCES: Mapping[Change, Callable[[ChangeDiagnosis], str]] = {
    Change.MORE_RANKS_THAN_CPUS: _no_cpu(lambda one: "more ranks or threads than CPUs"),
    Change.SAME_CPUS: _no_cpu(lambda one: "ranks are bound to the same CPUs"),
    Change.CPU_QUOTA: _no_cpu(_quota),
    Change.STEAL: _no_cpu(lambda one: "the hypervisor gave CPU time to others"),
    Change.OTHER_PROCESSES: _no_cpu(_others),
    Change.NO_CPU: _no_cpu(lambda one: "why is not known"),
    Change.COMPUTATION: _computation,
    Change.BLOCKED: _blocked,
    Change.IMBALANCE: _imbalance,
    Change.CALLS: _calls,
    Change.SIZES: _sizes,
    Change.LATENCY: _cost,
    Change.TRANSFER: _cost,
    Change.LATE_SENDER: _late("receives wait longer for their message"),
    Change.LATE_RECEIVER: _late("sends wait longer for their receiver"),
    Change.LATE_AT_COLLECTIVE: _late("ranks wait longer for the last one at collectives"),
    Change.STARTUP: _startup,
    Change.NOT_KNOWN: _not_known,
}
