"""iperf3: its JSON (`--json`), of TCP and UDP, 3.0 to 3.18.

What was received counts; a remark has the segments that were sent again, and the datagrams that were lost. Rate, time
and bytes depend on each other, so a damaged number is detected (iperf_api.c, iperf_print_results).
"""

from __future__ import annotations

from seatrial.applications.reading import figures
from seatrial.applications.reading.json_text import JsonObject, read_object
from seatrial.applications.reading.runs import JSON_BEGIN
from seatrial.model.benchmark.parameter import Value
from seatrial.model.results.imported import ImportedExperiment, ImportedFile
from seatrial.model.results.sample import Sample

_TOOL = "iperf3"


def read(data: bytes) -> ImportedFile:
    """One run. Raises ParseError if it did not end, reports an error, or contradicts itself."""
    document = read_object(data, _TOOL, "start", "end")
    if "start" not in document or "end" not in document:
        raise document.error("no `start` and `end`: not the JSON of iperf3, or cut off")
    start, end = document.object("start"), document.object("end")
    if error := document.text("error"):
        raise document.error(f"iperf3 reports an error: {error[:200]}")
    test = start.object("test_start") if "test_start" in start else JsonObject(_TOOL, "test_start", {})
    protocol = (test.text("protocol") or "TCP").lower()
    parameters: dict[str, Value] = {"protocol": protocol}
    for name, key in (("streams", "num_streams"), ("block_B", "blksize"), ("reverse", "reverse")):
        if (value := test.whole(key)) is not None:
            parameters[name] = value
    for key in ("connecting_to", "accepted_connection"):
        if key in start:
            parameters["role"] = "client" if key == "connecting_to" else "server"
    samples, remarks = _results(end, protocol)
    date = start.object("timestamp").number("timesecs") if "timestamp" in start else None
    version = (start.text("version") or "").removeprefix("iperf ").split(" ")[0]
    experiment = ImportedExperiment("imported.iperf3", tuple(samples), parameters, remarks=remarks)
    return ImportedFile(_TOOL, version, (experiment,), date_s=date)


def _results(end: JsonObject, protocol: str) -> tuple[list[Sample], tuple[str, ...]]:
    sent = end.object("sum_sent") if "sum_sent" in end else None
    received = end.object("sum_received") if "sum_received" in end else None
    total = received or (end.object("sum") if "sum" in end else None) or sent
    if total is None:
        raise end.error("no sum: the run did not end")
    for one in filter(None, (sent, received, total)):
        _check(one, _SAME if protocol == "tcp" else _OF_BOTH_ENDS)
    rate = total.number("bits_per_second") / 8
    if rate == 0:
        raise total.error("nothing was received")
    samples = [figures.rate_sample("bandwidth", rate)]
    remarks: list[str] = []
    if sent is not None and "retransmits" in sent and (again := sent.number("retransmits")):
        remarks.append(f"{again:.0f} TCP segments were sent again")
    loss = end.object("sum") if "sum" in end else total
    if protocol == "udp" and "lost_packets" in loss and "packets" in loss:
        lost, packets = loss.number("lost_packets"), loss.number("packets")
        if packets and lost:
            remarks.append(f"{lost:.0f} of {packets:.0f} datagrams were lost")
    if "cpu_utilization_percent" in end:
        cpu = end.object("cpu_utilization_percent")
        used = {name: cpu.number(f"{name}_total") for name in ("host", "remote") if f"{name}_total" in cpu}
        if busy := [f"{name} {share:.0f} %" for name, share in used.items() if share > _BUSY]:
            remarks.append(f"iperf3 used most of one CPU ({', '.join(busy)}): the CPU may limit the rate")
    return samples, tuple(remarks)


_BUSY = 90.0
"""Percent of one CPU: until 3.16 one thread serves all streams."""


_SAME = 1e-4
_OF_BOTH_ENDS = 0.01
"""The sum of UDP may have the bytes of one end and the time of the other."""


def _check(total: JsonObject, off: float) -> None:
    """Raise ParseError if rate x time is not the bytes."""
    if not all(key in total for key in ("bytes", "seconds", "bits_per_second")):
        return
    moved, seconds, rate = (total.number(key) for key in ("bytes", "seconds", "bits_per_second"))
    if seconds and abs(rate * seconds - 8 * moved) > off * 8 * moved + 8:
        raise total.error(f"{rate:.0f} bit/s for {seconds:g} s are not {moved:.0f} B")


IMPORTED = figures.imported(
    "iperf3",
    "iperf3",
    "What did iperf3 measure between two hosts?",
    (
        figures.text("protocol", "tcp, udp or sctp"),
        figures.text("role", "the end that wrote the file: client or server"),
        *figures.counts(streams="parallel streams", reverse="1: the server sent"),
        figures.size("block_B", "bytes of a write"),
    ),
    (figures.rate("bandwidth", "B/s", "bytes received per second, all streams together"),),
)

READER = figures.Reader("iperf3", read, (JSON_BEGIN,), is_from_documentation=True)
