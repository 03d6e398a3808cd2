"""NCCL Inspector (plugin of NCCL and RCCL): JSON lines, one object for each collective and rank, versions 4 and 5.

Size, time and the two bandwidths of a line depend on each other (ext-profiler/inspector of NCCL): files that contradict
themselves are refused. The time of a collective is that of its slowest rank.
"""

from __future__ import annotations

from statistics import median

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, read_object
from seatrial.applications.reading.text import read_lines
from seatrial.errors import ParseError
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile

_TOOL = "nccl-inspector"
_SLACK = 0.005
"""Bandwidths are computed from times in whole microseconds, in some versions before rounding."""

_BY_RANK = ("ReduceScatter", "AllGather")
"""Collectives whose size may be stated as that of the part of one rank; bandwidths are those of all parts together."""

_Key = tuple[str, int, int, int]


def read(data: bytes) -> ImportedFile:
    """One experiment for each collective, size, number of ranks and nodes. Raises ParseError for a line that is
    damaged or contradicts itself."""
    lines = [line for line in read_lines(data, _TOOL) if line.text.strip() and not line.text.lstrip().startswith("#")]
    if lines and not any(line.text.lstrip().startswith("{") for line in lines):
        raise lines[0].error("not a JSON object: the file of Inspector has one on each line, with `coll_perf`")
    found: dict[_Key, dict[tuple[str, int], float]] = {}
    factors: dict[_Key, float] = {}
    for line in lines:
        try:
            key, call, time_s, factor = _collective(read_object(line.text.encode(), _TOOL))
        except ParseError as error:
            raise line.error(error.why) from error
        if abs(factors.setdefault(key, factor) - factor) > _SLACK * factor:
            raise line.error("bus and algorithm bandwidth have another ratio than on the lines before")
        times = found.setdefault(key, {})
        times[call] = max(times.get(call, 0.0), time_s)
    if not found:
        raise ParseError(_TOOL, None, "", "no line with `coll_perf`")
    return ImportedFile(
        "NCCL Inspector", "", tuple(_experiment(key, times, factors[key]) for key, times in found.items())
    )


def _collective(line: JsonObject) -> tuple[_Key, tuple[str, int], float, float]:
    """What it is, which call of which communicator, its time in seconds, and bus over algorithm bandwidth."""
    header, perf = line.object("header"), line.object("coll_perf")
    size_B, ranks, nodes = perf.whole("coll_msg_size_bytes"), header.whole("n_ranks"), header.whole("nnodes")
    number, name = perf.whole("coll_sn"), perf.text("coll")
    if not size_B or not ranks or not nodes or number is None or name is None:
        raise line.error("coll, coll_sn, coll_msg_size_bytes, n_ranks or nnodes is missing")
    time_s = perf.number("coll_exec_time_us") / 1e6
    algorithm, bus = perf.number("coll_algobw_gbs") * 1e9, perf.number("coll_busbw_gbs") * 1e9
    if not time_s or not algorithm:
        raise perf.error("a collective without a time or bandwidth")
    whole_B = [size_B * share for share in ((1, ranks) if name in _BY_RANK else (1,))]
    slack = (_SLACK + 1e-6 / time_s) * algorithm
    size_B = next((whole for whole in whole_B if abs(whole / time_s - algorithm) <= slack), 0)
    if not size_B:
        raise perf.error(f"{whole_B[-1]} B in {time_s * 1e6:.0f} us are not {algorithm / 1e9:g} GB/s")
    share = (ranks - 1) / ranks
    expected = {"AllReduce": 2 * share, "AllGather": share, "ReduceScatter": share}.get(name)
    if expected and abs(bus / algorithm - expected) > _SLACK * expected:
        raise perf.error(
            f"the bus bandwidth is {bus / algorithm:.4g} times the algorithm bandwidth, not {expected:.4g}"
        )
    return (name, size_B, ranks, nodes), (header.text("id") or "", number), time_s, bus / algorithm


def _experiment(key: _Key, times: dict[tuple[str, int], float], factor: float) -> ImportedExperiment:
    name, size_B, ranks, nodes = key
    samples = [figures.time_sample("time", time_s, i=i) for i, time_s in enumerate(times.values())]
    middle = size_B / median(times.values())
    samples += [figures.rate_sample("algbw", middle), figures.rate_sample("busbw", middle * factor)]
    parameters: dict[str, Value] = {"op": name, "size_B": size_B, "ranks": ranks, "nodes": nodes}
    return ImportedExperiment("imported.nccl-inspector", tuple(samples), parameters, {"collectives": len(times)})


IMPORTED = figures.imported(
    "nccl-inspector",
    "NCCL Inspector",
    "How fast were the collective operations of a job between its GPUs?",
    (
        figures.text("op", "collective, as NCCL names it"),
        figures.size("size_B", "bytes of the operation, the parts of all ranks together"),
        *figures.counts(ranks="GPUs of the communicator", nodes="nodes"),
    ),
    (
        figures.time("time", "of one collective on its slowest rank that is in the file"),
        figures.rate("algbw", "B/s", "bytes of the operation over its median time"),
        figures.rate("busbw", "B/s", "minimum bytes that each link must move, over the median time"),
    ),
)

READER = figures.Reader("nccl-inspector", read)
