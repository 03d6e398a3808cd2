"""Whether the programs of repeats had the CPUs that they asked for, and what else used CPUs meanwhile: what qualifies
every answer first (docs/adr/0063). And what a program does itself that takes its time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from seatrial.diagnosis.cpu import LEAST_DELAY, cpus_words, others_words, steal_words
from seatrial.diagnosis.disturbance.cause import RepeatCause, no_cpu, remedy, sentence
from seatrial.diagnosis.disturbance.diagnose import cpu_causes, own_causes
from seatrial.diagnosis.disturbance.foreign import LEAST_NEIGHBOUR, ForeignLoad, comes_and_goes
from seatrial.diagnosis.disturbance.signals import Seen, Signals, signals
from seatrial.model.results.no_cpu import NoCpu
from seatrial.model.results.record import RepeatRecord
from seatrial.model.spelling import show_percent

_STEAL_IS_MUCH = 0.02
_MOST_REPEATS = 2000


def missing_cpu(seen: Sequence[Seen], who: str) -> NoCpu | None:
    """Whether the programs of these repeats were ready to run without a CPU; None also if too little is known."""
    known = signals(_some(seen))
    return None if known is None else no_cpu(tuple(cpu_causes(known)), who)


def missing_and_beside(repeats: Sequence[RepeatRecord], who: str) -> tuple[NoCpu | None, str, str]:
    """`missing_cpu`; what else used CPUs during these repeats, if it was much; and what the programs do themselves that
    takes most of their time, with what to do. "" if there is nothing, or it is unknown. The first two say which repeats
    had the load of other processes, where it came and went."""
    some = _some([one.seen for one in repeats])
    known = signals(some)
    if known is None:
        return None, "", ""
    of_memory = who.startswith(_MEMORY)
    load = None
    if known.window_s and (known.others_s or 0.0) >= _LEAST_OTHERS * known.window_s / _cpus(known):
        load = comes_and_goes(((one.repeat, one.t0, one.seen) for one in repeats), of_memory=of_memory)
    missing = no_cpu(tuple(cpu_causes(known)), who)
    if missing is not None and load is not None and missing.cause == RepeatCause.OTHER_PROCESSES.value:
        missing = replace(missing, why=load.said)
    return missing, _beside(known, some, load, of_memory=of_memory), _why(known)


def _why(known: Signals) -> str:
    own = max(own_causes(known), key=lambda one: one.share or 0.0, default=None)
    return "" if own is None else f"{sentence(own)} {remedy(own)}."


def _some(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Of very many repeats evenly spaced ones: shares are the same."""
    return seen[:: len(seen) // _MOST_REPEATS + 1]


def _cpus(known: Signals) -> int:
    return len(known.busy_s or known.allowed) or 1


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


_LEAST_OTHERS = 0.05
"""CPUs that other processes use, on average: fewer are not searched for when they came."""
_MEMORY = "memory."


def _beside(known: Signals, some: Sequence[Seen], comes: ForeignLoad | None, *, of_memory: bool) -> str:
    """Memory bandwidth is shared by all CPUs of a socket: where that is measured, half a CPU is much."""
    if known.window_s and known.steal_s is not None and known.steal_s >= _STEAL_IS_MUCH * known.window_s:
        return steal_words(f"{show_percent(known.steal_s / known.window_s)} of the CPU time")
    cpus = len(known.busy_s or known.allowed)
    if known.window_s and known.others_s is not None:
        share = known.others_s / known.window_s
        used = share * cpus if comes is None else comes.cpus
        takes_memory = of_memory and used >= LEAST_NEIGHBOUR
        if not cpus or not (comes is not None or share >= LEAST_DELAY or takes_memory):
            return ""
        said = others_words(f"{used:.2g}", cpus_words(cpus)) if comes is None else comes.said
        return f"{said}, and may take memory bandwidth, which all CPUs share" if takes_memory else said
    load = max((value for one in some if isinstance(value := one.get("load_1m"), float)), default=0.0)
    return f"the load average was {load:.1f} on {cpus_words(cpus)}" if cpus and load > cpus + 1 else ""
