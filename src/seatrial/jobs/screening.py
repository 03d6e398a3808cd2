"""Screen the nodes of a batch system: the same short trial on each node, then messages between them.

Each part is a command of `run --system`, so an interrupted screen goes on where it was, and nothing is measured twice.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from seatrial.analysis.folder import contents_in
from seatrial.analysis.results import machines_of
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.jobs.batch.slurm_nodes import nodes_command, read_nodes, read_topology, topology_command
from seatrial.jobs.queue import Queue, QueueError
from seatrial.jobs.request import Submission
from seatrial.jobs.screen import screen
from seatrial.jobs.submitted import Sent, run_in_jobs
from seatrial.jobs.where import CLUSTER, Where
from seatrial.model.benchmark.role import Role
from seatrial.model.machine.identity import unlike
from seatrial.model.machine.machine import Machine
from seatrial.model.spelling import count
from seatrial.model.study.screen import MARGIN, OddKind, Screen
from seatrial.plan.settings import Settings
from seatrial.plan.targets import with_declared

TRIAL = (Role.FMA_RATE, Role.MEMORY_BANDWIDTH, Role.LOAD_LATENCY, Role.FILE_RATE)
"""What is measured on every node."""
BUDGET_S = 60.0
"""For the trial of one node."""
LINKS_BUDGET_S = 120.0
"""For messages between nodes."""
_FEWEST_FOR_LINKS = 3

Tell = Callable[[str], None]


def screen_system(where: Where, asked: Submission, margin: float = MARGIN, *, with_links: bool = True) -> Screen:
    """Measure every node of a partition that is up, and the links between them; then screen all of it.

    The targets are the benchmarks of the trial, the budget is for that of a node, and for the messages; without
    `with_links`, no messages are measured. Nodes of our own cluster may share CPUs: each is measured alone. A node that
    is odd is measured again. Raises UsageError, QueueError, StoreError; KeyboardInterrupt passes through: the jobs go
    on, and so does the same command.
    """
    tell, results = asked.tell, asked.results
    if where.batch.name != "slurm":
        raise UsageError(
            f"screen --system works with Slurm, and {where.text} uses {where.batch.name}",
            "measure each node with `run`, and give the results folders: seatrial screen --from DIR",
        )
    queue = Queue(where.batch, os.environ)
    nodes, others = read_nodes(queue.ask(nodes_command(where.options.queue or "")))
    if not nodes:
        raise UsageError(f"{where.text} has no node that is up", "sinfo shows the states of its nodes")
    switch_of = _switches(queue, tell)
    trial = asked.targets or tuple(benchmark_of(role) for role in TRIAL)
    alone = [Where(where.place, where.batch, where.text, node) for node in nodes]

    def run(at: Where, names: Sequence[str], settings: Settings | None = None, **more: bool) -> Sent:
        usual_s = LINKS_BUDGET_S if settings else BUDGET_S
        part = replace(asked, targets=tuple(names), settings=settings or {}, budget_s=asked.budget_s or usual_s, **more)
        return run_in_jobs([at], part)

    tell(f"screening {count(len(nodes), 'node')} of {where.text}: {', '.join(trial)}")
    if where.place.system.name != CLUSTER:
        for at in alone:
            run(at, trial, detach=True)
    missing = [f"{node}: {state} in Slurm" for node, state in others.items()]
    for at in alone:
        sent = run(at, trial)
        missing += [f"{at.node}: {why}" for why in sent.unmeasured]
    odd = _odd_nodes(results, margin)
    target_of = dict(zip(with_declared(list(trial)), trial, strict=True))  # also of a benchmark in a file
    named = [(at, [target_of[name] for name in odd.get(at.node or "", ()) if name in target_of]) for at in alone]
    suspects = [(at, names) for at, names in named if names]
    if suspects:
        tell(f"measuring again what was odd: {', '.join(str(at.node) for at, _ in suspects)}")
    if where.place.system.name != CLUSTER:
        for at, names in suspects:
            run(at, names, detach=True, confirms=True)
    for at, names in suspects:
        sent = run(at, names, confirms=True)
        missing += [f"{at.node} again: {why}" for why in sent.unmeasured]
    machines = {machine.name: machine for machine in machines_of(contents_in(results, may_be_empty=True)).values()}
    linked, why_not = _like_nodes(machines, nodes) if with_links else ([], {})
    missing += [f"link of {node}: {why}" for node, why in why_not.items()]
    # Nodes of our own cluster are on one machine: those with a CPU in common wait for each other.
    is_own = where.place.system.name == CLUSTER
    not_apart = [
        (a, b)
        for a, b in combinations(sorted(machines) if is_own else (), 2)
        if set(machines[a].allowed_cpus) & set(machines[b].allowed_cpus)
    ]
    if len(linked) >= _FEWEST_FOR_LINKS:
        at = Where(where.place, where.batch, where.text, ",".join(linked))
        # Pairs at once that share CPUs would show the scheduler.
        is_loaded = _has_shared_uplinks(linked, switch_of) and not not_apart
        for loaded in ({}, {"at_once": "all"}) if is_loaded else ({},):
            settings: Settings = {"nodes": len(linked), "ranks": len(linked), **loaded}
            try:
                sent = run(at, [benchmark_of(Role.RANK_PAIRS)], settings)
                missing += [f"links between nodes: {why}" for why in sent.unmeasured]
            except UsageError as error:
                missing.append(f"links between nodes: {error.message}")
    elif with_links:
        fewest = f"fewer than {_FEWEST_FOR_LINKS} do not show which end is slow"
        missing.append(f"links between nodes: {count(len(linked), 'like node')}, and {fewest}")
    return screen([results], margin=margin, switch_of=switch_of, not_apart=not_apart, missing=missing)


def _odd_nodes(results: Path, margin: float) -> dict[str, list[str]]:
    """The benchmarks in which each node was odd at first, also if it was not when it was measured again."""
    try:
        found = screen([results], margin=margin, with_later=False)
    except UsageError:  # nothing was measured on two nodes
        return {}
    odd: dict[str, list[str]] = {}
    for one in found.odd:
        if one.kind in (OddKind.NODE, OddKind.DEVICE) and one.benchmark:
            odd[one.nodes[0]] = sorted({*odd.get(one.nodes[0], ()), one.benchmark})
    return odd


def _has_shared_uplinks(nodes: Sequence[str], switch_of: Mapping[str, str]) -> bool:
    """Whether nodes share uplinks: then pairs are also measured all at once. Many nodes always are."""
    members = Counter(switch_of[node] for node in nodes if node in switch_of)
    return len(members) > 1 and max(members.values()) > 1


def _like_nodes(machines: Mapping[str, Machine], nodes: Sequence[str]) -> tuple[list[str], dict[str, str]]:
    """The largest group of nodes that are alike, in their order, and what the others have otherwise: a program with
    ranks runs on like nodes only."""
    groups: list[list[str]] = []
    for node in nodes:
        if node not in machines:
            continue
        group = next((own for own in groups if not unlike(machines[node], machines[own[0]])), None)
        if group is None:
            groups.append([node])
        else:
            group.append(node)
    largest = max(groups, key=len, default=[])
    others = [node for group in groups for node in group if group is not largest]
    why_not = {node: ", ".join(unlike(machines[node], machines[largest[0]])) for node in others}
    return largest, {**why_not, **{node: "its machine is not known" for node in nodes if node not in machines}}


def _switches(queue: Queue, tell: Tell) -> dict[str, str]:
    """The switch of each node, if Slurm knows."""
    try:
        return read_topology(queue.ask(topology_command()))
    except QueueError as error:
        tell(f"the switches of nodes are not known: {error.message}")
        return {}
