"""The words for missing CPUs, once: for profiles, repeats, comparisons and rules."""

from __future__ import annotations

NOT_KNOWN = "why is not known"
RANKS_WAIT = "Times in MPI include waiting for such ranks"


def cpus_words(value: float) -> str:
    """A number of CPUs."""
    return "1 CPU" if value == 1 else f"{value:.3g} CPUs"


def ready_words(who: str, share: str, *, are_several: bool = False) -> str:
    """Who was ready to run without a CPU, and for which share: "60 % of its time"."""
    return f"{who} {'were' if are_several else 'was'} ready to run, but had no CPU, for {share}"


def quota_words(cpus: float, periods: str) -> str:
    """That a quota was used up in a share of its periods."""
    return f"a CPU quota of {cpus_words(cpus)} was used up in {periods} of its periods"


def steal_words(taken: str) -> str:
    """That the hypervisor took CPU time: "60 % of the CPU time"."""
    return f"the hypervisor gave {taken} to other guests (steal)"


def others_words(used: str, of: str = "") -> str:
    """That other processes used CPUs, of those that are named."""
    return f"other processes used {used}{f' of {of}' if of else ''}"


def raise_quota(cpus: float, instead: str) -> str:
    """What to do about a quota."""
    now = f"cpu.max of its control group; now {cpus_words(cpus)}"
    return f"Raise the CPU quota of the job or container ({now}), or {instead}"


def use_own_host(do: str) -> str:
    """What to do about steal."""
    return f"{do} on a host whose CPUs are not shared with other virtual machines"


def stop_others(host: str = "") -> str:
    """What to do about other processes."""
    return f"Stop the other processes{f' on {host}' if host else ''} (`top` shows them)"
