"""Messages between the nodes of a virtual cluster, compared with OSU's benchmarks and iperf3: interleaved rounds.

All MPI programs of a round use the launcher, the nodes and the binding that seatrial uses for its own; their order
rotates. What each measures is described in mpi_rivals.py; iperf3 sends one TCP stream from node 1 to node 2 (its rate
is that of the payload, like that of the others). The best of the rounds is compared.

    python bench/cluster_rivals.py [--osu openmpi=DIR --osu mpich=DIR] [--iperf3 FILE] [--link 10gbit] [--rounds 12]
                                   [--mpi openmpi] [-o docs/results/cluster_rivals.json]

Goals: bandwidth of 1 MiB messages at least 0.95 of OSU's, or of iperf3's where OSU is absent; latency of 8 B at most
1.05 of OSU's. Needs root and Slurm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from clusters import own_cluster
from common import provenance, rival_provenance, write
from mpi_rivals import COMPARISONS, FailedError, Reading, compete, contest, mpi_paths, osu_program, shown, summary

from seatrial.environments.mpi import find_mpis
from seatrial.launch.allocation import machine_here

GOALS = {"ping-pong": 1.05, "bandwidth": 0.95}
_STREAM_S = 2


def main() -> None:
    """Make a cluster, and measure in a job on it."""
    options = _arguments()
    if options.inside is not None:
        measure(options)
        return
    with tempfile.TemporaryDirectory() as folder, own_cluster("--nodes", "2", "--link", options.link) as cluster:
        found = Path(folder) / "found.json"
        script = str(Path(__file__).resolve())
        done = cluster.on_nodes(2, sys.executable, script, *sys.argv[1:], "--inside", str(found))
        if done.returncode != 0:
            raise SystemExit(f"the job on the cluster ended with {done.returncode}")
        print(done.stdout)
        write("cluster_rivals", json.loads(found.read_text()), options.output)


def measure(options: argparse.Namespace) -> None:
    """All rounds, on the nodes of this job."""
    machine = machine_here()
    if machine.allocation is None or len(machine.allocation.nodes) < 2:
        raise SystemExit("this job has no two nodes that are alike")
    here, other = machine.allocation.names[:2]
    osu = mpi_paths(options.osu)
    document: dict[str, Any] = {"link": options.link, "nodes": [here, other]}
    chosen = [replace(one, goal=GOALS[one.name]) for one in COMPARISONS if one.name in GOALS]
    for mpi in find_mpis():
        if options.mpi and mpi.name not in options.mpi:
            continue
        contests = [contest(one, mpi.name, osu.get(mpi.name), None, machine) for one in chosen]
        for one in contests:
            one.absent.pop("imb", None)
            if one.comparison.name == "bandwidth" and options.iperf3 is not None:
                one.runners["iperf3"] = lambda: stream(options.iperf3, other)
        document.setdefault("provenance", provenance(machine, contests[0].item))
        results = [summary(one, of) for one, of in zip(contests, compete(contests, options.rounds), strict=True)]
        programs = {path for one in chosen if (path := osu_program(osu.get(mpi.name), one.osu.program)) is not None}
        document[mpi.name] = {
            "mpi": mpi.document(),
            "rivals": [rival_provenance(path) for path in sorted(programs)],
            "results": [_against_osu(result) for result in results],
        }
        for result in document[mpi.name]["results"]:
            print(shown(mpi.name, result), flush=True)
    options.inside.write_text(json.dumps(document))


def _against_osu(result: Mapping[str, Any]) -> dict[str, Any]:
    """The summary, with OSU as the rival wherever it ran: one TCP stream is another measure."""
    best, goal, rival = result["best"], result["goal"], "osu" if "osu" in result["best"] else "iperf3"
    if rival not in best or "seatrial" not in best:
        return dict(result)
    ratio = best["seatrial"] / best[rival]
    met = ratio >= goal if result["unit"] == "B/s" else ratio <= goal
    medians = result["median"]["seatrial"] / result["median"][rival]
    return {
        **result,
        "rival": rival,
        "ours_over_better": ratio,
        "ours_over_better_of_medians": medians,
        "met": met,
    }


def stream(program: Path, node: str) -> Reading:
    """The rate of one TCP stream from this node to the other."""
    on_other = ["srun", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={node}", "--cpu-bind=none"]
    with subprocess.Popen([*on_other, str(program), "-s", "-1"], stdout=subprocess.DEVNULL) as server:
        try:
            return _client([str(program), "-c", node, "-t", str(_STREAM_S), "-J"])
        finally:
            server.terminate()


def _client(command: Sequence[str]) -> Reading:
    """What the client measures; the server takes a moment to start."""
    until = time.monotonic() + 20.0
    while True:
        done = subprocess.run(command, capture_output=True, timeout=60.0, check=False)
        try:
            return Reading(float(json.loads(done.stdout)["end"]["sum_received"]["bits_per_second"]) / 8)
        except (ValueError, KeyError):
            if time.monotonic() > until:
                raise FailedError(f"iperf3: {done.stdout.decode('utf-8', 'replace')[-300:]}") from None
        time.sleep(0.2)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--osu", action="append", default=[], metavar="MPI=DIR", help="OSU's programs for this MPI")
    parser.add_argument("--iperf3", type=Path)
    parser.add_argument("--mpi", action="append", default=[], help="an MPI by name (default: all)")
    parser.add_argument("--link", default="10gbit")
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--inside", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
