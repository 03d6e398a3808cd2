"""Which fabric a program needs, and where it stops to scale: one study over the links and nodes of a virtual cluster.

The program (fabric_scaling/timed_steps.c) waits in place of computing, since two cores cannot scale four nodes, and
exchanges real messages. Each node counts the bytes on its links; a repeat with fewer than the payload is invalid.

Expected from the rates of the links, with 0.2 s of computing per step on one rank, and 2 MiB that each rank sends and
receives per step: on 10gbit the program scales to 4 nodes, on 1gbit to 2, and on 100mbit one node is the fastest.

    python bench/fabric_scaling.py [--budget 4min] [-o docs/results/fabric_scaling.json]

Needs root, Slurm and Open MPI. Exits with 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from clusters import own_cluster
from common import live_machine, machine_provenance, write

HERE = Path(__file__).resolve().parent / "fabric_scaling"
ORDER = ("10gbit", "1gbit", "100mbit")
EFFICIENT_TO = {"10gbit": 4.0, "1gbit": 2.0, "100mbit": 1.0}
_MOST_NODES = 4.0
_MOST_BESIDE = 1.15
"""Headers, acknowledgements and the messages of launcher and barriers, over the payload."""


def main() -> None:
    """Run the study on its own cluster, and compare its answers with what is expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", default="4min")
    parser.add_argument("-o", "--output", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, own_cluster("--nodes", "4", "--link", "1gbit") as cluster:
        work = Path(folder)
        (work / "seatrial-benchmarks").mkdir()
        for name in ("timed-steps.yaml", "timed_steps.c"):
            shutil.copy(HERE / name, work / "seatrial-benchmarks")
        shutil.copy(HERE / "study.yaml", work)
        words = [sys.executable, "-m", "seatrial", "run", "study.yaml", "--budget", options.budget, "--format", "json"]
        done = cluster.on_nodes(4, *words, cwd=work)
        if not done.stdout:
            raise SystemExit(f"the study ended with {done.returncode}")
        document = json.loads(done.stdout)
    answers = answers_of(document)
    failures = differences(answers)
    made = {"provenance": machine_provenance(live_machine()), **answers, "failures": failures}
    write("fabric_scaling", made, options.output)
    sys.exit(1 if failures else 0)


def answers_of(document: Mapping[str, Any]) -> dict[str, Any]:
    """Steps, scaling and bytes by link, from the results of the study."""
    points: dict[str, dict[float, dict[str, Any]]] = {}
    efficient_to: dict[str, float | None] = {}
    for one in document["study"]["scaling"]:
        link, figure = one["parameters"]["cluster.link"], one["figure"]
        if figure == "step":
            efficient_to[link] = one["efficient_to"]
        for point in one["points"]:
            kept = points.setdefault(link, {}).setdefault(point["workers"], {})
            kept[figure] = point["value"]
            if figure == "step":
                kept |= {name: point[name] for name in ("ci95", "n_repeats", "speedup", "efficiency")}
    largest = {link: by_nodes[_MOST_NODES].get("step") for link, by_nodes in points.items() if _MOST_NODES in by_nodes}
    return {
        "order_on_4_nodes": sorted((link for link in largest if largest[link]), key=lambda link: largest[link] or 0.0),
        "efficient_to": efficient_to,
        "points": points,
        "answer": document["study"].get("answer"),
        "hosts": sorted({host for one in document["experiments"] for host in one.get("hosts", [])}),
        "not_ok": [f"{one['outcome']}: {one['reason']}" for one in document["experiments"] if one["outcome"] != "ok"],
    }


def differences(answers: Mapping[str, Any]) -> list[str]:
    """What differs from what is expected."""
    found = list(answers["not_ok"])
    if tuple(answers["order_on_4_nodes"]) != ORDER:
        found.append(f"order of the fabrics: {', '.join(answers['order_on_4_nodes'])}")
    for link, most in EFFICIENT_TO.items():
        seen = answers["efficient_to"].get(link)
        if seen != most:
            found.append(f"{link}: efficient to {seen} nodes instead of {most:g}")
        for nodes, one in answers["points"].get(link, {}).items():
            least, beyond = one.get("least_counted"), one.get("most_counted")
            if least is None or beyond is None or not 1.0 <= least <= beyond < _MOST_BESIDE:
                found.append(f"{link}, {nodes:g} nodes: the links carried {least} to {beyond} times the payload")
    return found


if __name__ == "__main__":
    main()
