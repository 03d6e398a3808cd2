"""The limit of device memory traffic: the rate of the memory as reported by the driver."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.model.benchmark.parameter import CACHES_TIMES, Params
from seatrial.model.machine.limit import Basis, Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.sample import Sample


def memory_limit(touched_B: Callable[[Params], float]) -> Callable[[Machine, Params, Sequence[Sample]], Limit]:
    """2 transfers in each cycle of the memory's clock x width of its bus, for each device; `touched_B` is how much one
    run reads and writes again and again, on each device or, where they share one problem (TP), on all together.

    The driver reports the clock and the width (CUDA: attributes MEMORY_CLOCK_RATE and GLOBAL_MEMORY_BUS_WIDTH); OpenCL
    reports neither.
    """

    def limit(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
        facts = samples[0].extra.get("device")
        if not isinstance(facts, dict) or not facts.get("memory_clock_Hz") or not facts.get("memory_bus_bits"):
            return Limit.unknown("B/s", "the driver reports no clock or bus width of the device's memory")
        clock_Hz, bits, count = facts["memory_clock_Hz"], facts["memory_bus_bits"], facts.get("devices", 1)
        cache_B = facts.get("cache_bytes", 0)
        on_each_B = touched_B(params) / (count if params.get("mode") == "TP" else 1)
        if on_each_B < CACHES_TIMES * cache_B:
            return Limit.unknown("B/s", f"the data may come from the device's cache of {cache_B / 2**20:g} MiB")
        derivation = f"2 x {clock_Hz / 1e9:g} GHz x {bits} bit / 8" + (f" x {count} devices" if count > 1 else "")
        return Limit(2 * clock_Hz * bits / 8 * count, "B/s", derivation, Basis.PHYSICAL)

    return limit
