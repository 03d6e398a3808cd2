"""Rules about the state of NVIDIA GPUs as `nvidia-smi -q` prints it: lost, slowed down, limited, with memory errors.

What a field means is from nvidia-smi(1). Thresholds: GCM (gpu-cluster-monitoring) takes more than 10 retired pages for
critical, Azure's node health checks 20,000,000 corrected errors. Counters have an age: volatile ones were counted since
the driver was loaded, aggregate ones in the life of the GPU.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial.analysis.rules.devices import gpus, spans
from seatrial.analysis.rules.finding import (
    Case,
    Subject,
    cite_best,
    finding,
    is_false,
    is_true,
    listed,
    rule,
    warning,
)
from seatrial.model.machine.fact import Aim, Facts, Finding, Severity
from seatrial.model.machine.machine import Device, Machine
from seatrial.model.spelling import show

_LESS = 0.99
_AT_LIMIT = 0.95
_MANY_PAGES = 10
_MANY_CORRECTED = 20_000_000
_BUSY = 0.1


def is_busy(facts: Facts) -> bool:
    """Whether a GPU was at work when its state was read, so that idling does not explain a slow link."""
    used, state = facts.number("utilization"), facts.text("performance_state")
    return is_false(facts, "clocks_idle") and state in ("P0", "P1", "P2") and used is not None and used >= _BUSY


@rule(Subject.GPU_STATE)
def gpu_lost(case: Case) -> Iterator[Finding]:
    """Fires if the driver has lost a GPU, or asks for a reset."""
    lost = _having(case.machine, "is_lost")
    if lost:
        yield _of(
            "gpu-lost", Severity.ERROR, lost, ("is_lost",),
            "The driver does not reach {}: GPU is lost.",
            "It has left the bus. Programs do not see it, and lists of metrics have fewer rows. Why is not in the "
            "text.",
            "Look for its XID in `sudo dmesg | grep -i xid`, then reboot; if it is lost again, reseat or replace it",
        )  # fmt: skip
    asks = [
        gpu
        for gpu in gpus(case.machine)
        if is_true(gpu.facts, "reset_required") or (gpu.facts.text("recovery_action") or "none") != "none"
    ]
    if asks:
        yield _of(
            "gpu-reset-required", Severity.WARNING, asks, ("reset_required", "recovery_action"),
            "The driver asks for a recovery of {}.",
            "An error that the driver does not recover from by itself; programs on the GPU may fail until then.",
            "Drain the node, then do what the driver asks for: `sudo nvidia-smi --gpu-reset -i INDEX`, or reboot",
        )  # fmt: skip


_SLOWED = {
    "slowed_by_heat": "the hardware lowers the clocks by half or more, because of a temperature",
    "slowed_by_power_brake": "the power brake is asserted from outside, such as by the power supplies of the server",
    "slowed_by_driver_for_heat": "the driver lowers the clocks, because of a temperature",
    "slowed_by_hardware": "the hardware lowers the clocks, because of heat, the power brake or its power",
}
"""Reasons for lower clocks; the last is named only if none of the others is."""


@rule(Subject.GPU_STATE)
def gpu_slowed(case: Case) -> Iterator[Finding]:
    """Fires if a GPU was slowed down when its state was read; a note if only earlier slowdowns are known."""
    cards = gpus(case.machine)
    named: set[str] = set()
    for fact, means in _SLOWED.items():
        slow = [gpu for gpu in cards if is_true(gpu.facts, fact) and gpu.id not in named]
        named |= {gpu.id for gpu in slow}
        if slow:
            yield _of(
                "gpu-slowed-down", Severity.WARNING, slow, (fact, "temperature_C", "power_draw"),
                "{} was slowed down when its state was read." if len(slow) == 1
                else "{} were slowed down when their state was read.",
                f"By its own statement {means}. Rates of programs are lower by as much as the clocks, and vary.",
                "Check airflow, fans, heat sinks and power supplies of the node, then read it under load: "
                "`nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER`",
            )  # fmt: skip
    times = ("slowed_by_heat_time", "slowed_by_power_brake_time", "slowed_by_driver_for_heat_time")
    earlier = [g for g in cards if g.id not in named and any((g.facts.number(name) or 0) > 0 for name in times)]
    if earlier:
        yield _of(
            "gpu-was-slowed", Severity.INFO, earlier, times,
            "{} counted time with clocks lowered for heat or the power brake, at an unknown moment.",
            "The times add up since the driver was loaded, which may be long ago; the state that was read is not "
            "slowed.",
            "Read the counters before and after a run under load: `nvidia-smi -q -d PERFORMANCE`",
        )  # fmt: skip


@rule(Subject.GPU_STATE)
def gpu_hot(case: Case) -> Iterator[Finding]:
    """Fires if a GPU is at or above the temperature at which it is slowed down."""
    hot = [gpu for gpu in gpus(case.machine) if _is_hot(gpu.facts)]
    if hot:
        yield _of(
            "gpu-hot", Severity.WARNING, hot, ("temperature_C", "temperature_slowdown_C", "temperature_margin_C"),
            "{} reached the temperature at which the hardware lowers the clocks.",
            "Its rates are then lower than those of cooler GPUs. The cause of the heat is not in the text.",
            "Compare with the other GPUs of the node under the same load; check airflow, fans and heat sinks",
        )  # fmt: skip


def _is_hot(facts: Facts) -> bool:
    now, limit = facts.number("temperature_C"), facts.number("temperature_slowdown_C")
    margin = facts.number("temperature_margin_C")
    return (now is not None and limit is not None and 0 < limit <= now) or (
        margin is not None and margin <= 0 and now is not None and now > margin
    )


@rule(Subject.GPU_STATE)
def gpu_power_limit(case: Case) -> Iterator[Finding]:
    """Fires if a GPU may draw less than its default; a note if it draws what it may."""
    low: dict[tuple[float, float], list[Device]] = {}
    capped: list[Device] = []
    for gpu in gpus(case.machine):
        limit, usual = gpu.facts.number("power_limit"), gpu.facts.number("power_limit_default")
        draw = gpu.facts.number("power_draw")
        if limit and usual and limit < _LESS * usual:
            low.setdefault((limit, usual), []).append(gpu)
        elif is_true(gpu.facts, "power_capped") and limit and draw and draw >= _AT_LIMIT * limit:
            capped.append(gpu)
    for (limit, usual), cards in low.items():
        yield warning(
            "gpu-power-limit",
            devices=cards,
            observation=f"The power limit of {spans(gpu.id for gpu in cards)} is {show(limit, 'W')}, below the "
            f"default of {show(usual, 'W')}.",
            diagnosis="Work that needs more power runs at lower clocks. The limit may be intended (power budget of the "
            "rack, a quieter machine).",
            remedy=f"If it is not intended: `sudo nvidia-smi -pl {usual:g}`; else state the limit with each figure, "
            "and compare GPUs with the same limit only",
            evidence=_cited(cards, ("power_limit", "power_limit_default")),
            aims=tuple(Aim("power_limit", usual, gpu.id) for gpu in cards),
        )
    if capped:
        yield _of(
            "gpu-power-capped", Severity.INFO, capped, ("power_draw", "power_limit"),
            "{} drew as much power as the limit allows when the state was read.",
            "That is normal under full load. Clocks then follow the power, so rates vary with temperature and from "
            "card to card.",
            "Record power and clocks during the run: `nvidia-smi --query-gpu=power.draw,clocks.sm --format=csv -l 1`",
        )  # fmt: skip


@rule(Subject.GPU_STATE)
def gpu_memory_errors(case: Case) -> Iterator[Finding]:
    """Fires if a GPU counted errors that ECC could not correct, or a great many that it could."""
    cards = gpus(case.machine)
    recent = [gpu for gpu in cards if (gpu.facts.number("ecc_uncorrectable_volatile") or 0) > 0]
    worn = [gpu for gpu in cards if is_true(gpu.facts, "sram_threshold_exceeded")]
    old = [
        gpu
        for gpu in cards
        if gpu not in recent and gpu not in worn and (gpu.facts.number("ecc_uncorrectable_aggregate") or 0) > 0
    ]
    corrected = [gpu for gpu in cards if (gpu.facts.number("ecc_correctable_volatile") or 0) >= _MANY_CORRECTED]
    look = "Look for XIDs in `sudo dmesg | grep -i xid`, reset the GPU and test its memory (`dcgmi diag -r 3`)"
    for devices, severity, fact, observation, diagnosis, remedy in (
        (
            worn, Severity.ERROR, "sram_threshold_exceeded",
            "The uncorrectable errors in the SRAM of {} exceeded the threshold of the driver.",
            "On-chip memory has no spare rows. The driver sets this mark when such errors came too often.",
            "Take the GPU out of use, and ask the vendor for a replacement with the output of `nvidia-smi -q`",
        ),
        (
            recent, Severity.WARNING, "ecc_uncorrectable_volatile",
            "{} counted memory errors that ECC could not correct, since the driver was loaded.",
            "Each one ends the programs that use the page. When they occurred within that time is not in the text.",
            f"{look}; if the count grows, take the GPU out of use",
        ),
        (
            old, Severity.INFO, "ecc_uncorrectable_aggregate",
            "{} counted memory errors that ECC could not correct, in the life of the GPU; none since the driver was "
            "loaded.",
            "They may be years old. What was done since (rows remapped, pages retired) is in other fields.",
            "Watch whether the number grows: `nvidia-smi -q -d ECC`",
        ),
        (
            corrected, Severity.WARNING, "ecc_correctable_volatile",
            f"{{}} counted {_MANY_CORRECTED:,} corrected memory errors or more, since the driver was loaded.",
            "Corrected errors do not change results, but so many come from a failing part.",
            look,
        ),
    ):  # fmt: skip
        if devices:
            yield _of("gpu-memory-errors", severity, devices, (fact,), observation, diagnosis, remedy)


@rule(Subject.GPU_STATE)
def pages_retired(case: Case) -> Iterator[Finding]:
    """Fires if pages of a GPU's memory are retired: a warning if one is pending, or there are more than 10."""
    cards = gpus(case.machine)
    pending = _having(case.machine, "page_retirement_pending")
    many = [gpu for gpu in cards if gpu not in pending and _pages(gpu.facts) > _MANY_PAGES]
    few = [gpu for gpu in cards if gpu not in (*pending, *many) and _pages(gpu.facts) > 0]
    counts = ("retired_pages_correctable", "retired_pages_uncorrectable")
    if pending:
        yield _of(
            "gpu-memory-pages", Severity.WARNING, pending, ("page_retirement_pending", *counts),
            "The retirement of memory pages of {} is pending.",
            "The bad page stays in use until the GPU is reset.",
            "When the GPU is free, reset it: `sudo nvidia-smi --gpu-reset -i INDEX`, or reboot",
        )  # fmt: skip
    for devices, severity, means in (
        (many, Severity.WARNING, f"More than {_MANY_PAGES}: cluster monitors (GCM) call that critical; 64 pages can be "
         "retired at most."),
        (few, Severity.INFO, "The pages are no longer in use; figures are not affected."),
    ):  # fmt: skip
        if devices:
            yield _of(
                "gpu-memory-pages", severity, devices, counts,
                "Memory pages of {} were retired, in the life of the GPU.",
                means,
                "Watch whether the number grows: `nvidia-smi -q -d PAGE_RETIREMENT`; if it does, test the GPU's memory",
            )  # fmt: skip


def _pages(facts: Facts) -> float:
    return sum(facts.number(f"retired_pages_{kind}correctable") or 0.0 for kind in ("", "un"))


@rule(Subject.GPU_STATE)
def gpu_fabric(case: Case) -> Iterator[Finding]:
    """Fires if a GPU behind NVSwitches has not joined the NVLink fabric."""
    out = [
        gpu
        for gpu in gpus(case.machine)
        if (gpu.facts.text("fabric_state") or "completed") not in ("completed", "n/a", "not supported")
        or (gpu.facts.text("fabric_status") or "success") not in ("success", "n/a")
    ]
    if out:
        yield _of(
            "gpu-fabric-not-ready", Severity.WARNING, out, ("fabric_state", "fabric_status"),
            "{} has not joined the NVLink fabric." if len(out) == 1 else "{} have not joined the NVLink fabric.",
            "The fabric manager configures the switches and the GPUs; until then programs start without NVLink, or "
            "fail with `system not yet initialized`. Why it has not is not in the text.",
            "`systemctl status nvidia-fabricmanager` and its log; its version must be that of the driver",
        )  # fmt: skip


@rule(Subject.GPU_STATE)
def gpu_settings(case: Case) -> Iterator[Finding]:
    """Notes on persistence mode, and on modes that change at the next reset."""
    cards = gpus(case.machine)
    off = [gpu for gpu in cards if is_false(gpu.facts, "persistence_mode")]
    if off:
        yield _of(
            "gpu-persistence-off", Severity.INFO, off, ("persistence_mode",),
            "Persistence mode is off for {}.",
            "When no program uses the GPU, the driver unloads its state: the next program waits for it, which takes "
            "seconds, and power limits and clocks that were set are lost.",
            "`sudo nvidia-smi -pm 1`, or run nvidia-persistenced; exclude the first start from timings",
        )  # fmt: skip
    for mode, named in (("ecc_mode", "ECC"), ("mig_mode", "MIG")):
        differ = [gpu for gpu in cards if _changes(gpu.facts, mode)]
        if differ:
            yield _of(
                "gpu-mode-pending", Severity.INFO, differ, (mode, f"{mode}_pending"),
                f"The {named} mode of {{}} will change at the next reset.",
                "Figures before and after are of different settings.",
                "Reset the GPUs or reboot before you measure",
            )  # fmt: skip


def _changes(facts: Facts, mode: str) -> bool:
    modes = {facts.text(mode), facts.text(f"{mode}_pending")}
    return None not in modes and len(modes) == 2


def _having(machine: Machine, fact: str) -> list[Device]:
    return [gpu for gpu in gpus(machine) if is_true(gpu.facts, fact)]


def _of(
    name: str, severity: Severity, devices: Sequence[Device], facts: Sequence[str], observation: str, diagnosis: str,
    remedy: str,
) -> Finding:  # fmt: skip
    """A finding about these GPUs, which `observation` names at "{}"; `facts` are its evidence."""
    return finding(
        name,
        severity=severity,
        devices=devices,
        observation=observation.format(spans(gpu.id for gpu in devices)),
        diagnosis=diagnosis,
        remedy=remedy,
        evidence=_cited(devices, facts),
    )


def _cited(devices: Sequence[Device], facts: Sequence[str]) -> str:
    return listed(
        f"{gpu.id}: {', '.join(cited)}"
        for gpu in devices
        if (cited := [text for name in facts if (text := cite_best(gpu.facts, name))])
    )
