"""MPI programs with a planted cause of lost time, under `seatrial profile`, with each MPI library."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from causes.case import BOTH, QUIET_ONLY, Bench, Case, Said, planted
from causes.libraries import LIBRARIES, Library, built
from causes.loads import quota, spinners

SOURCE = Path(__file__).with_name("profiles.c")
NO_LOSS = frozenset({"computation", "startup"})
"""Where the time of a working program goes; startup is true of every short one."""


@dataclass(frozen=True)
class Planted:
    """A step of the program, and the causes that are right. `cpus` restricts all ranks; `spins` names CPUs with a
    spinner; `quota` is a CPU quota of a control group. CPUs are counted among those that this process may use."""

    name: str
    step: str
    right: frozenset[str] = frozenset()
    ranks: int = 2
    cpus: tuple[int, ...] = ()
    spins: tuple[int, ...] = ()
    quota: float | None = None
    seconds: float | None = None
    is_quick: bool = False


PLANTED = (
    Planted("one rank computes four times as long", "imbalance", planted("imbalance"), is_quick=True),
    Planted("one rank computes longer, with messages", "imbalance-p2p", planted("imbalance")),
    Planted("ranks compute in turn", "late-sender", planted("late-sender"), is_quick=True),
    Planted("the receiver comes late", "late-receiver", planted("late-receiver", "imbalance")),
    Planted("rank 0 writes and synchronises files", "serial-io", planted("serial-io"), is_quick=True),
    Planted("8 B messages by the million", "message-rate", planted("message-rate", "latency"), is_quick=True),
    Planted("exchanges of 4 MiB", "transfer", planted("transfer")),
    Planted("all-reduce in the inner loop", "small-collectives", planted("latency", "message-rate")),
    Planted("rank 0 sleeps", "sleeping", planted("blocked-rank")),
    Planted("another rank is late in each step", "turns", planted("late-at-collective")),
    Planted("four ranks on two CPUs", "balanced", planted("more-ranks-than-cpus"), ranks=4, is_quick=True),
    Planted("four ranks on two CPUs that exchange", "transfer", planted("more-ranks-than-cpus"), ranks=4),
    Planted("both ranks on one CPU", "balanced", planted("ranks-on-the-same-cpus"), cpus=(0,)),
    Planted("a spinner on one CPU", "computing", planted("other-processes"), spins=(1,)),
    Planted("a quota of 0.6 CPUs", "balanced", planted("cpu-quota"), quota=0.6),
    Planted("even work", "balanced", is_quick=True),
    Planted("mostly computation", "computing"),
    Planted("even work for longer", "balanced", seconds=6.0),
)


def _cases() -> Iterator[Case]:
    for library in LIBRARIES:
        for one in PLANTED:
            yield Case(
                "profiles",
                one.name,
                lambda bench, one=one, library=library: _profiled(bench, one, library),
                right=one.right,
                allowed=NO_LOSS - one.right,
                variant=library.name,
                loads=QUIET_ONLY if one.spins or one.quota else BOTH,
                is_quick=one.is_quick,
                seconds=one.seconds,
                needs_cpus=2,
            )


def _profiled(bench: Bench, one: Planted, library: Library) -> Said:
    command = [*library.launcher(one.ranks), str(built(library, SOURCE)), one.step, str(bench.seconds)]
    if one.cpus:
        command = ["taskset", "-c", ",".join(str(bench.cpus[k]) for k in one.cpus), *command]
        if library.name == "Open MPI":
            command[command.index("-n") : command.index("-n")] = ["--bind-to", "none"]
    with contextlib.ExitStack() as stack:
        prefix = stack.enter_context(quota(one.quota)) if one.quota is not None else []
        stack.enter_context(spinners([bench.cpus[k] for k in one.spins]))
        document = bench.seatrial(
            "profile", "--results", str(bench.folder / "results"), "--format", "json", "--", *prefix, *command
        )
    diagnoses = document.get("diagnoses", [])
    causes = tuple((one["cause"], one["share"]) for one in diagnoses)
    return Said(causes, " ".join(one["said"] for one in diagnoses))


CASES = tuple(_cases())
