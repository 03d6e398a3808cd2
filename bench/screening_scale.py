"""Time and memory of the screen and the page of a large cluster, made up in memory.

python bench/screening_scale.py [--nodes 4000 10000] [--rounds 3] [--page DIR] [-o FILE.json]

Each node has eight figures of six repeats, 30 facts, and messages with four others; 40 nodes are on a leaf switch. The
planted faults: two slow nodes, a slow link, a slow uplink, a node with less memory, one with another kernel, a link
with errors. Each round is its own process, so that its largest memory is known.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import live_machine, provenance, ready, write

from seatrial.analysis.screening.screen import screen_cluster
from seatrial.jobs.screen import JobRow
from seatrial.model.benchmark.benchmark import Better
from seatrial.model.machine.fact import FactValue
from seatrial.model.machine.links import LINK_COUNTERS
from seatrial.model.study.screen import Item, ItemFigure, LinkCount, PairFigure, ScreenInput
from seatrial.report.documents.history import screen_document
from seatrial.report.screen.article import cluster_page

FIGURES = (
    ("cpu.peak", "fma", "flop/s", 3.1e12, Better.HIGHER, 0.004),
    ("memory.stream", "copy", "B/s", 3.9e11, Better.HIGHER, 0.006),
    ("memory.stream", "scale", "B/s", 3.8e11, Better.HIGHER, 0.006),
    ("memory.stream", "add", "B/s", 4.1e11, Better.HIGHER, 0.006),
    ("memory.stream", "triad", "B/s", 4.1e11, Better.HIGHER, 0.006),
    ("memory.latency", "load", "s", 1.02e-7, Better.LOWER, 0.01),
    ("io.file", "write", "B/s", 2.2e9, Better.HIGHER, 0.015),
    ("io.file", "read", "B/s", 3.1e9, Better.HIGHER, 0.015),
)
REPEATS = 6
OF_SWITCH = 40
PARTNERS = 4


def made_up(n: int, seed: int = 1) -> ScreenInput:
    """The measurements of so many nodes, with the faults."""
    source = np.random.default_rng(seed)
    nodes = tuple(f"tera{k:05d}" for k in range(n))
    switch_of = {node: f"leaf{k // OF_SWITCH:03d}" for k, node in enumerate(nodes)}
    slow = {n // 3: 0.8, n // 2: 0.9}
    figures = []
    for benchmark, figure, unit, usual, better, spread in FIGURES:
        levels = source.normal(0.0, spread, n)
        if benchmark in ("cpu.peak", "memory.stream"):
            for k, share in slow.items():
                levels[k] += np.log(share)
        values = usual * np.exp(levels[:, None] + source.normal(0.0, 0.003, (n, REPEATS)))
        items = tuple(map(Item, nodes))
        figures.append(ItemFigure(benchmark, figure, unit, better, items, tuple(values.tolist())))  # type: ignore[arg-type]
    facts: dict[str, dict[str, FactValue]] = {
        node: {**{f"fact {k}": f"value {k}" for k in range(26)}, "memory": 512 << 30, "CPUs": 128, "kernel": "6.1.0-18"}
        for node in nodes
    }
    facts[nodes[n // 5]]["memory"] = 448 << 30
    facts[nodes[n // 7]]["kernel"] = "6.1.0-15"
    for node in nodes[: n // 4]:
        facts[node]["fact 3"] = "another value"
    counts = tuple(
        LinkCount(nodes[k], "mlx5_0 port 1", counter, by)
        for k, counter, by in ((n // 4, "symbol_error", 4711), (n // 4, "link_downed", 1), (7, "port_xmit_wait", 90210))
        if counter in LINK_COUNTERS
    )
    return ScreenInput(nodes, tuple(figures), _pairs(source, nodes), (), facts, switch_of, link_counts=counts)


def _pairs(source: np.random.Generator, nodes: tuple[str, ...]) -> tuple[PairFigure, ...]:
    """Messages of each node with some others, as a sampled tournament has them."""
    n = len(nodes)
    found: dict[tuple[str, str], float] = {}
    for _ in range(PARTNERS):
        order = source.permutation(n)
        for a, b in zip(order[::2].tolist(), order[1::2].tolist(), strict=False):
            share = 0.5 if n // 6 in (a, b) else 1.0
            if (a // OF_SWITCH == 3) != (b // OF_SWITCH == 3):
                share = min(share, 0.25)
            found[nodes[min(a, b)], nodes[max(a, b)]] = share
    shares = np.array(list(found.values()))[:, None] * np.exp(source.normal(0.0, 0.01, (len(found), REPEATS)))
    rates, times = (2.3e10 * shares).tolist(), (1.6e-6 * np.exp(source.normal(0.0, 0.01, shares.shape))).tolist()
    return (
        PairFigure("mpi.pairs", "latency", "s", Better.LOWER, tuple(found), tuple(times), {"at_once": n // 2}),
        PairFigure("mpi.pairs", "bandwidth", "B/s", Better.HIGHER, tuple(found), tuple(rates), {"at_once": n // 2}),
    )


def jobs(n: int) -> list[JobRow]:
    """A job for each node, and one for the links."""
    where, start, targets = "tera:compute", 1.79e9, "cpu.peak, memory.stream, memory.latency, io.file"
    waits = [60.0 + k % 900 for k in range(n)]
    rows = [
        JobRow(str(k), where, f"tera{k:05d}", 1, start, start + wait, start + wait + 70, "ended", targets)
        for k, wait in enumerate(waits)
    ]
    links = JobRow(str(n), where, "tera00000", n, start, start + 2000, start + 2200, "ended", "mpi.pairs")
    return [*rows, links]


def one_round(n: int, page: Path | None) -> dict[str, Any]:
    """Times of the parts, the largest resident memory, and what was named."""
    given = made_up(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = screen_cluster(given)
    screened_s = time.perf_counter() - start
    document = json.dumps(screen_document(found))
    documented_s = time.perf_counter() - start - screened_s
    html = cluster_page(found, jobs=jobs(n))
    paged_s = time.perf_counter() - start - screened_s - documented_s
    if page is not None:
        (page / f"cluster-{n}.html").write_text(html)
    return {
        "nodes": n,
        "screen_s": round(screened_s, 2),
        "document_s": round(documented_s, 2),
        "page_s": round(paged_s, 2),
        "most_MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "input_MiB": before // 1024,
        "document_MB": round(len(document) / 1e6, 2),
        "page_MB": round(len(html) / 1e6, 2),
        "named": list(dict.fromkeys(f"{one.kind} {one.what}" for one in found.odd)),
    }


def main() -> None:
    """Print and write a row for each number of nodes and round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, nargs="+", default=[4_000, 10_000])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--page", type=Path)
    parser.add_argument("-o", dest="output", type=Path)
    options = parser.parse_args()
    machine = live_machine()
    origin = provenance(machine, ready(machine, "cpu.peak", cores="one", precision="fp64"))
    rows = []
    for n in options.nodes:
        for _ in range(options.rounds):
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                rows.append(pool.apply(one_round, (n, options.page)))
    write("screening_scale", {**origin, "rows": rows}, options.output)


if __name__ == "__main__":
    main()
