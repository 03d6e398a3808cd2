"""Programs that were ready to run without a CPU: what qualifies their figures before anything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from seatrial.model.frozen import Frozen
from seatrial.model.json_shape import Hidden, Keywords, Text, key, published

NOT_JUDGED = "not judged"


@published("NoCpu")
class NoCpu(Frozen):
    """Programs that were ready to run, but had no CPU, and the main cause (docs/adr/0063).

    `share` is the part of their time, 0..1; None: how long is unknown. `cause` is one of `diagnosis.disturbance`,
    `why` says it without a full stop. `is_own`: they waited for each other, because they have more threads than CPUs.
    """

    who: Annotated[Text, "the benchmark, or the side of a comparison"]
    share: Annotated[float | None, Keywords(minimum=0, maximum=1), "of the time of the programs; null: not known"]
    cause: Text
    why: Hidden[str] = ""
    is_own: Annotated[bool, "the programs waited for each other: they have more threads than CPUs"] = False

    @property
    def span(self) -> str:
        """How long: "for 60 % of the time"."""
        return f"for {'part' if self.share is None else f'{self.share * 100:.0f} %'} of the time"

    @property
    def short(self) -> str:
        """Without the cause."""
        return f"{self.who} had no CPU {self.span}"

    @property
    @key
    def said(self) -> Text:
        """Such as "cpu.gemm had no CPU for 60 % of the time (other processes used 1.2 of the 2 CPUs)"."""
        return f"{self.short} ({self.why})"


def worst_of(found: Sequence[NoCpu]) -> NoCpu:
    """The one that missed most; first those that did not wait for themselves."""
    return max(found, key=lambda one: (not one.is_own, one.share or 0.0))


def no_cpu_sentence(found: Sequence[NoCpu], then: str, of: int = 0, noun: str = "experiment") -> str:
    """The first sentence of an answer about them, without a full stop; "" without any. `then` says what follows for
    the figures, unless the programs waited for themselves; `of` counts all that were measured."""
    if not found:
        return ""
    more = len(found) - 1
    counted = f"{more} more of {of} {noun}s" if of > more + 1 else f"{more} more {noun}{'s' if more > 1 else ''}"
    said = worst_of(found).said + (f", and {counted} had none for part of it" if more else "")
    return said if all(one.is_own for one in found) else f"{said}: {then}"
