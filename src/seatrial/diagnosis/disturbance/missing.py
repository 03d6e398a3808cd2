"""Whether the programs of repeats had the CPUs that they asked for, and what else used CPUs meanwhile: what qualifies
every answer first (docs/adr/0063)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.diagnosis.cpu import LEAST_DELAY, cpus_words, others_words, steal_words
from seatrial.diagnosis.disturbance.cause import no_cpu
from seatrial.diagnosis.disturbance.diagnose import cpu_causes
from seatrial.diagnosis.disturbance.signals import Seen, Signals, signals
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.spelling import show_percent

_STEAL_IS_MUCH = 0.02
_MOST_REPEATS = 2000


def missing_cpu(seen: Sequence[Seen], who: str) -> NoCpu | None:
    """Whether the programs of these repeats were ready to run without a CPU; None also if too little is known."""
    return missing_and_beside(seen, who)[0]


def missing_and_beside(seen: Sequence[Seen], who: str) -> tuple[NoCpu | None, str]:
    """`missing_cpu`, and what else used CPUs during these repeats, if it was much; "" if it was not, or is unknown."""
    some = seen[:: len(seen) // _MOST_REPEATS + 1]  # of very many evenly spaced ones: shares are the same
    known = signals(some)
    return (None, "") if known is None else (no_cpu(tuple(cpu_causes(known)), who), _beside(known, some, who))


def missing_of_repeat(seen: Seen, who: str) -> NoCpu | None:
    """The same of one repeat, however short it is: to be added up over many; None if it did not wait for a tenth."""
    counted = ((seen.get("used"), "leader_delay_s"), (seen.get("looks"), "delay_s"))
    delays_s = [part.get(name) or 0.0 for part, name in counted if isinstance(part, Mapping)]
    wall_s = seen.get("program_s") or 0.0
    if max(delays_s, default=0.0) < LEAST_DELAY * wall_s or not wall_s:
        return None  # most of the many records of a fleet
    known = signals([seen], least_s=0.0)
    if known is None or known.wall_s <= 0 or (known.delay_share or 0.0) < LEAST_DELAY:
        return None
    return no_cpu(tuple(cpu_causes(known)), who)


_LEAST_NEIGHBOUR = 0.5
"""CPUs of others from which on they take a noticeable part of the memory bandwidth, however many CPUs are idle: one
neighbour cost a triad of one thread a fifth on a node of few CPUs."""
_MEMORY = "memory."


def _beside(known: Signals, some: Sequence[Seen], benchmark: str) -> str:
    """Memory bandwidth is shared by all CPUs of a socket: where that is measured, half a CPU is much."""
    if known.window_s and known.steal_s is not None and known.steal_s >= _STEAL_IS_MUCH * known.window_s:
        return steal_words(f"{show_percent(known.steal_s / known.window_s)} of the CPU time")
    cpus = len(known.busy_s or known.allowed)
    if known.window_s and known.others_s is not None:
        share = known.others_s / known.window_s
        of_memory = benchmark.startswith(_MEMORY) and share * cpus >= _LEAST_NEIGHBOUR
        if not cpus or not (share >= LEAST_DELAY or of_memory):
            return ""
        said = others_words(f"{share * cpus:.2g}", cpus_words(cpus))
        return f"{said}, and may take memory bandwidth, which all CPUs share" if of_memory else said
    load = max((value for one in some if isinstance(value := one.get("load_1m"), float)), default=0.0)
    return f"the load average was {load:.1f} on {cpus_words(cpus)}" if cpus and load > cpus + 1 else ""
