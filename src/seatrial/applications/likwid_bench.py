"""likwid-bench (LIKWID, RRZE Erlangen): the text of one run, 3.0 to 5.4.

Cycles are those of the time stamp counter. Cycles, clock and time, and work, time and rate depend on each other
(bench/likwid-bench.c of LIKWID), so a damaged number is detected.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.applications.reading import figures
from seatrial.applications.reading.log import Found, Log
from seatrial.applications.reading.text import Pattern, is_product
from seatrial.model.benchmark.benchmark import Better, Figure
from seatrial.model.benchmark.parameter import Params, Value
from seatrial.model.benchmark.quotients import WorkRate
from seatrial.model.machine.limit import Limit
from seatrial.model.machine.machine import Machine
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample
from seatrial.model.spelling import half_unit

_TOOL = "likwid-bench"
_BANNER = Pattern("LIKWID MICRO BENCHMARK")
_TEST = Pattern(r"Test: (\w{1,60})")
_THREADS = Pattern(r"Using ([0-9]{1,6}) threads")
_GROUPS = Pattern(r"Using ([0-9]{1,6}) work groups")
_DOMAIN = Pattern(r"Allocate: Process running on (?:hwthread|core) [0-9]{1,6} \(Domain (\w{1,12})\).{0,100}")
_THREAD = Pattern(r"Group: [0-9]{1,6} Thread [0-9]{1,6} Global Thread ([0-9]{1,6}) running on .{1,200}")
_ERROR = Pattern(r"(?:ERROR|Error)\b.{0,300}")
_VALUES = {
    "cycles": Pattern(r"Cycles:\s+(\S{1,30})"),
    "clock": Pattern(r"Cycle Clock:\s+(\S{1,30})"),
    "cpu_clock": Pattern(r"CPU Clock:\s+(\S{1,30})"),
    "time": Pattern(r"Time:\s+(\S{1,30}) sec"),
    "iterations": Pattern(r"Iterations per thread:\s+(\S{1,30})"),
    "size": Pattern(r"Size(?: \(Byte\))?:\s+(\S{1,30})"),
    "flop": Pattern(r"Number of Flops:\s+(\S{1,30})"),
    "Mflops": Pattern(r"MFlops/s:\s+(\S{1,30})"),
    "moved": Pattern(r"Data volume \(Byte\):\s+(\S{1,30})"),
    "MBps": Pattern(r"MByte/s:\s+(\S{1,30})"),
    "per_update": Pattern(r"Cycles per update:\s+(\S{1,30})"),
    "per_line": Pattern(r"Cycles per cacheline:\s+(\S{1,30})"),
}
_NEEDED = ("cycles", "time", "size", "MBps", "per_update")
_PER_LINE = (8, 16, 32, 64)
"""Elements in a cache line of 64 B."""
_IN_CACHE = 4.0
"""A working set of less than this many times the last-level caches is not one in memory (as STREAM asks for)."""


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if the output is cut off, has two runs, or contradicts itself."""
    log = Log(_TOOL, data)
    log.refuse(_ERROR, "likwid-bench reports an error")
    banner = log.banner(_BANNER, "LIKWID MICRO BENCHMARK")
    test, threads = log.only(_TEST, "line `Test:`"), log.only(_THREADS, "line `Using N threads`")
    found = {name: log.at_most_one(pattern, pattern.text.partition(":")[0]) for name, pattern in _VALUES.items()}
    values = {name: one for name, one in found.items() if one is not None}
    if missing := [name for name in _NEEDED if name not in values]:
        raise log.not_ended(f"there is no line with {_VALUES[missing[0]].text.partition(':')[0]}")
    count = threads.whole(1, "the number of threads")
    ran = {one.whole(1, "a thread", least=0) for one in log.found(_THREAD)}
    if ran and ran != set(range(count)):
        raise threads.error(f"{count} threads, but lines of {len(ran)}: damaged, or cut off")
    _check(values)
    parameters: dict[str, Value] = {"kernel": test.text(1), "threads": count}
    parameters["size_B"] = values["size"].whole(1, "the size")
    if (groups := log.at_most_one(_GROUPS, "line `Using N work groups`")) is not None:
        parameters["groups"] = groups.whole(1, "the number of work groups")
    above = log.found(_DOMAIN, log.lines[: banner.line.number])  # those below are of the next run
    if domains := dict.fromkeys(one.text(1) for one in above):
        parameters["domains"] = ",".join(sorted(domains))
    notes = {"iterations": values["iterations"].text(1)} if "iterations" in values else {}
    experiment = ImportedExperiment("imported.likwid-bench", tuple(_samples(values)), parameters, notes)
    return ImportedFile(_TOOL, "", (experiment,))


def _check(values: dict[str, Found]) -> None:
    """Raise ParseError if cycles are not clock x time, or a rate x time not its work."""
    time = values["time"].printed(1, "the time")
    clock = values.get("clock") or values.get("cpu_clock")
    stated = [("clock", "cycles", 1.0, values["cycles"], clock)]
    stated += [
        (rate, work, 1e6, values[work], values[rate])
        for rate, work in (("MBps", "moved"), ("Mflops", "flop"))
        if work in values and rate in values
    ]
    for name, work, unit, amount, rate in stated:
        if rate is None:
            continue
        done = amount.number_or_zero(1, work) / unit
        speed = rate.number_or_zero(1, name)
        if not is_product(done, (speed, half_unit(rate.match[1])), (time.value, time.error)):
            raise rate.error(f"{rate.match[1]} for {values['time'].match[1]} s are not {amount.text(0)}")
    update, of_line = values["per_update"].printed(1, "the cycles"), values.get("per_line")
    if of_line is not None:
        printed = of_line.printed(1, "the cycles")
        if not any(update.scaled(float(elements)).agrees(printed) for elements in _PER_LINE):
            raise of_line.error(f"the cycles of a cache line are not a multiple of {values['per_update'].match[1]}")
    if all(name in values for name in ("iterations", "moved")) and "(Byte)" in values["size"].text(0):
        passes, size = values["iterations"].whole(1, "the iterations"), values["size"].whole(1, "the size")
        if passes * size != values["moved"].whole(1, "the data volume"):
            raise values["moved"].error(f"{passes} iterations over {size} B move another volume")


def _samples(values: dict[str, Found]) -> list[Sample]:
    samples = [values["MBps"].printed(1, "the rate").rate_sample("bandwidth", 1e6)]
    if "Mflops" in values and values["Mflops"].number_or_zero(1, "the rate of operations"):
        samples.append(values["Mflops"].printed(1, "the rate of operations").rate_sample("flops", 1e6))
    samples.append(values["per_update"].printed(1, "the cycles").rate_sample("cycles"))
    return samples


def _memory(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    """The peak that the user gave; that of the memory only if the working set is not in the caches."""
    given = figures.given_limit("B/s")(machine, params, samples)
    caches_B = machine.last_level_cache_bytes(machine.pus) if machine.pus else None
    size_B = params.get("size_B")
    if given.value is not None or caches_B is None or not isinstance(size_B, int):
        return given
    if size_B < _IN_CACHE * caches_B:
        return Limit.unknown("B/s", f"the working set is less than {_IN_CACHE:.0f} times the last-level caches")
    return figures.memory_limit()(machine, params, samples)


def _flops(machine: Machine, params: Params, samples: Sequence[Sample]) -> Limit:
    precision = "fp32" if "_sp" in str(params.get("kernel")) else "fp64"
    return figures.flops_limit(precision)(machine, params, samples)


IMPORTED = figures.imported(
    "likwid-bench",
    "likwid-bench",
    "What did a kernel of likwid-bench reach on its working set?",
    (
        figures.text("kernel", "the test, as `likwid-bench -a` lists it"),
        figures.size("size_B", "working set: all vectors of all threads"),
        figures.text("domains", "where the vectors are (N: node, S0: socket 0, M0: NUMA node 0)"),
        *figures.counts(threads="threads", groups="work groups"),
    ),
    (
        figures.rate("bandwidth", "B/s", "bytes that the kernel loads and stores, without write-allocates", _memory),
        figures.rate("flops", "flop/s", "floating-point operations of the kernel", _flops),
        Figure(
            "cycles",
            "1",
            Better.LOWER,
            WorkRate("amount"),
            "cycles of the time stamp counter for each update, all threads together",
            is_secondary=True,
        ),
    ),
)

READER = figures.Reader("likwid-bench", read, (_BANNER.text,))
