"""What a process used of the CPU, as the kernel counted it between two samples."""

from __future__ import annotations

from typing import Any

from seatrial.model.frozen import Frozen


class CpuUse(Frozen):
    """CPU time of a process during `wall_s` seconds; None where the kernel did not report it.

    `delay_s` is the time that its threads, summed, were ready to run without running. `throttled_s` is the time that
    the control group with the smallest quota was throttled, `throttled_share` the share of the quota's periods in which
    it was used up. `most_resident_B` is since the start of the process.
    """

    wall_s: float
    cpu_s: float | None
    delay_s: float | None
    voluntary: int | None
    involuntary: int | None
    minor_faults: int | None
    major_faults: int | None
    most_resident_B: int | None
    throttled_share: float | None
    throttled_s: float | None

    def counted(self) -> dict[str, Any]:
        """Only what this class counts, as keywords for a class that adds to it."""
        return {name: getattr(self, name) for name in _COUNTED}


_COUNTED = CpuUse.__struct_fields__
