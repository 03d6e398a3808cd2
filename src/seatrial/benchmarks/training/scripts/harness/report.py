"""The samples, checks and notes that follow from what all processes of a run saw, whatever the framework.

Steps of several processes end together, since they exchange gradients: the time of a step is that of the slowest.
`found` has for each process: first_digests, start_s, first_s, warm_s, was_steady, total_s, steps_s, waits_s, local_s
(steps without the exchange; empty for one process), made (see Training), gradient_error, loss_values, fingerprint,
result, is_bound, host, memory_B, device_B, saved_s, saved_B, and `data`: what is known of its data set, if it reads
one.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from harness.record import Record

_LAST = 5
Found = Sequence[Mapping[str, Any]]


def write_found(record: Record, found: Found, settings: Mapping[str, Any]) -> None:
    """Add all of it to the record."""
    steps = len(found[0]["steps_s"])
    items = settings["batch"] * settings["accumulate"] * len(found)
    slowest = [max(each) for each in zip(*(one["steps_s"] for one in found), strict=True)]
    work = {
        "items": float(steps * items * settings["units"]),
        "per_device": float(steps * items * settings["units"] / len(found)),
        "flop": steps * items * settings["item_flop"],
        "steps": float(steps),
        "wait_s": max(sum(one["waits_s"]) for one in found),
    }
    record.sample("training", max(one["total_s"] for one in found), work, {"counts": settings["counts"]})
    if settings["data"] != "device":
        record.sample("waiting", max(one["total_s"] for one in found), {"wait_s": work["wait_s"]})
    for elapsed_s in slowest:
        record.sample("step", elapsed_s, {"steps": 1.0})
    for each in zip(*(one["made"] for one in found), strict=True):
        made_s, cpu_s = (sum(part) / len(each) for part in zip(*each, strict=True))
        record.sample("input_pipeline", made_s, {"cpu_s": cpu_s})
    record.sample("first_step", max(one["first_s"] for one in found))
    record.sample("start", max(one["start_s"] for one in found))
    if len(found) > 1:
        local_s = [max(each) for each in zip(*(one["local_s"] for one in found), strict=True)]
        own_s = [median(one["local_s"]) for one in found]
        apart = {"local_s": median(local_s), "own_s": max(own_s), "others_s": median(own_s)}
        record.sample("exchange", median(slowest), apart)
    if any(one["saved_B"] for one in found):
        saved = {"bytes": float(sum(one["saved_B"] for one in found))}
        record.sample("checkpoint", max(one["saved_s"] for one in found), saved)
    for name in ("memory_B", "device_B"):
        if largest := max(one[name] for one in found):
            record.sample(name, max(one["total_s"] for one in found), {"bytes": float(largest)})
    _check(record, found, settings)
    record.note("warmup", {"steps": len(found[0]["warm_s"]), "steady": found[0]["was_steady"]})
    record.note("fingerprint", _most(one["fingerprint"] for one in found))
    record.note("processes", [_process(one) for one in found])
    if data := found[0]["data"]:
        record.note("data", data)
    record.note("loss", [_rounded(value) for value in _losses(found)])


def _check(record: Record, found: Found, settings: Mapping[str, Any]) -> None:
    losses = _losses(found)
    at_end = losses[settings["task_steps"] - _LAST : settings["task_steps"]]
    digests = [one for process in found for one in process["first_digests"]]
    record.check("processes", len(found))
    record.check("moved_processes", sum(not one["is_bound"] for one in found))
    record.check("loss_at_start", losses[0])
    record.check("loss_not_finite", sum(not math.isfinite(value) for value in losses))
    record.check("loss_at_end", sum(at_end) / len(at_end) if at_end else math.nan)
    record.check("repeated_items", len(digests) - len(set(digests)))
    in_memory = [one["data"].get("in_memory", 0.0) for one in found]
    record.check("cached_data", max(share for share in (0.0, *in_memory) if share != "unknown"))
    if len(found) == 1:  # nothing to compare with
        return
    record.check("gradient_error", max(one["gradient_error"] for one in found))
    for name in ("result", "fingerprint"):
        usual = _most(one[name] for one in found)
        others = [number for number, one in enumerate(found) if one[name] != usual]
        record.check(f"{name}s_differ", len(others))
        if others:
            where = [f"process {number} on {found[number]['host']}" for number in others]
            record.note(f"{name}s_differ", where)


def _losses(found: Found) -> list:
    """The mean of all processes, for each step."""
    return [sum(each) / len(found) for each in zip(*(one["loss_values"] for one in found), strict=True)]


def _process(one: Mapping[str, Any]) -> Mapping[str, Any]:
    shown = {"host": one["host"], "wait_s": _rounded(sum(one["waits_s"])), "memory_B": one["memory_B"]}
    own = {"own_step_s": one["local_s"], "input_batch_s": [made_s for made_s, _ in one["made"]]}
    return {**shown, **{name: _rounded(median(each_s)) for name, each_s in own.items() if each_s}}


def _most(values: Any) -> Any:
    return Counter(values).most_common(1)[0][0]


def _rounded(value: float) -> Any:
    return float(f"{value:.6g}") if math.isfinite(value) else None
