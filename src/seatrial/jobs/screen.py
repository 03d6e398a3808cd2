"""Screen a cluster for its odd nodes, devices, links and switches: from results that are there, or measured on the
nodes of a batch system, with the same short trial on each node and then messages between them.

Each part is a command of `run --system`, so an interrupted screen goes on where it was, and nothing is measured twice.
"""

from __future__ import annotations

import math
import os
import pwd
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from seatrial.analysis.folder import contents_in
from seatrial.analysis.results import machines_of
from seatrial.analysis.screening.columns import natural
from seatrial.analysis.screening.inputs import folder_to_screen, screen_input
from seatrial.analysis.screening.screen import screen_cluster
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.jobs.batch.slurm import (
    limit_commands,
    nodes_command,
    read_idle,
    read_limits,
    read_nodes,
    read_topology,
    topology_command,
)
from seatrial.jobs.folder import JobFolder
from seatrial.jobs.queue import CLUSTER, Queue, QueueError, Where
from seatrial.jobs.request import Submission, measuring_s
from seatrial.jobs.screen_links import FEWEST_FOR_LINKS, LinkJobs, Tell, in_turn, is_accepted, like_nodes
from seatrial.jobs.submitted import Sent, run_in_jobs, submit_together
from seatrial.machine.live import discover_live
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.fabric import Fabric
from seatrial.model.spelling import count
from seatrial.model.study.screen import MARGIN, NoResult, OddKind, Screen
from seatrial.model.study.study import refuse_margin
from seatrial.model.units import duration
from seatrial.plan.points import Settings
from seatrial.plan.targets import with_declared
from seatrial.stats.interval import MINIMUM_REPEATS
from seatrial.store.folder import ResultsFolder

FEWEST_NODES = 2


def screen(
    folders: Sequence[str | Path],
    fabric: Fabric | None = None,
    margin: float = MARGIN,
    *,
    switch_of: Mapping[str, str] | None = None,
    not_apart: Iterable[tuple[str, str]] = (),
    missing: Sequence[str] = (),
    no_results: Sequence[NoResult] = (),
    with_later: bool = True,
) -> Screen:
    """The odd nodes, devices, links and switches in results of one cluster; nothing is measured.

    `folders` are results folders, of all nodes or of one node each; `fabric` tells which nodes share a switch.
    `switch_of` does so without a fabric; messages between nodes of `not_apart`, which share CPUs, are ignored.
    `missing` says what could not be measured, `no_results` which benchmarks gave no result and have no record. Without
    `with_later`, what was measured again is ignored. `margin`: nodes that differ from the others by less than this
    share are not named. Raises UsageError for a folder that is missing, and if there are results of fewer than two
    nodes.
    """
    refuse_margin(margin)
    if not folders:
        raise UsageError("no results folder given", "seatrial screen --from DIR, with the results of several nodes")
    measured = [folder_to_screen(Path(folder)) for folder in folders]
    of_nodes, ratio = places(fabric) if fabric is not None else (dict(switch_of or {}), None)
    given = screen_input(measured, of_nodes, ratio, _confirmed_s(folders))
    named = sorted({*given.nodes, *(one.node for one in no_results)}, key=natural)
    given = replace(given, nodes=tuple(named), no_results=(*given.no_results, *no_results))
    if len(given.nodes) < FEWEST_NODES:
        found = f"results of one node ({given.nodes[0]})" if given.nodes else "no results with the name of their node"
        raise UsageError(
            f"{found} cannot be screened: there is nothing to compare it with",
            f"measure at least {FEWEST_NODES} nodes into the same folder, or give --from for the folder of each",
        )
    if not with_later:
        given = replace(given, figures=tuple(replace(figure, later={}) for figure in given.figures))
    answer = screen_cluster(replace(given, not_apart=frozenset(not_apart)), margin)
    return replace(answer, not_screened=(*missing, *answer.not_screened))


def places(fabric: Fabric) -> tuple[dict[str, str], float | None]:
    """Node -> name of its leaf switch, and the designed oversubscription of leaf switches (None: not known)."""
    switch_of = {
        node: fabric.switch_by_id[switch].name or switch
        for switch, nodes in fabric.nodes_of_switch.items()
        for node in nodes
    }
    return switch_of, next((level.ratio for level in fabric.oversubscription if level.level == 1), None)


class JobRow(Frozen):
    """One job. Times are in seconds since 1970, None if not known; `state` is what its files say."""

    batch_id: str
    where: str
    host: str
    nodes: int
    submitted_s: float | None
    started_s: float | None
    ended_s: float | None
    state: str
    measured: str

    @property
    def wait_s(self) -> float | None:
        """How long it waited; clocks of hosts may differ, so never below 0."""
        return _between(self.submitted_s, self.started_s)

    @property
    def ran_s(self) -> float | None:
        """How long it ran."""
        return _between(self.started_s, self.ended_s)


def _between(first_s: float | None, then_s: float | None) -> float | None:
    return None if first_s is None or then_s is None else max(0.0, then_s - first_s)


def jobs_of(folders: Sequence[str | Path]) -> tuple[JobRow, ...]:
    """The jobs that measured into these folders, in order of submission. Raises StoreError."""
    rows = [_job_row(job) for folder in folders for job in JobFolder.all(ResultsFolder.existing(Path(folder)))]
    return tuple(sorted(rows, key=lambda row: row.submitted_s or 0.0))


def _confirmed_s(folders: Sequence[str | Path]) -> dict[str, list[tuple[float, float]]]:
    """Node -> when jobs measured it again because it was odd: from and until, by its clock."""
    found: dict[str, list[tuple[float, float]]] = {}
    for job in (job for folder in folders for job in JobFolder.all(ResultsFolder.existing(Path(folder)))):
        request, start = job.request, job.start()
        if request.get("confirms") and start is not None:
            ended_s = job.ended_s()  # in whole seconds, rounded down
            found.setdefault(start.host, []).append((start.time_s, math.inf if ended_s is None else ended_s + 1.0))
    return found


def _job_row(job: JobFolder) -> JobRow:
    request = job.request
    start, over = job.start(), job.over()
    targets, nodes = request.get("targets"), request.get("nodes")
    return JobRow(
        batch_id=job.batch_id or "",
        where=str(request.get("where", "")),
        host="" if start is None else start.host,
        nodes=nodes if isinstance(nodes, int) and nodes > 0 else 1,
        submitted_s=job.submitted_s or None,
        started_s=None if start is None else start.time_s,
        ended_s=job.ended_s(),
        state=job.phase().value if over is None else over.state,
        measured=", ".join(map(str, targets)) if isinstance(targets, list) else "",
    )


TRIAL = (Role.FMA_RATE, Role.MEMORY_BANDWIDTH, Role.LOAD_LATENCY, Role.FILE_RATE)
"""What is measured on every node."""
BUDGET_S = 60.0
"""For the trial of one node."""
LINKS_BUDGET_S = 120.0
"""For messages between nodes."""


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
    listed = queue.ask(nodes_command(where.options.queue or ""))
    (nodes, others), idle = read_nodes(listed), read_idle(listed)
    if not nodes:
        raise UsageError(f"{where.text} has no node that is up", "sinfo shows the states of its nodes")
    switch_of = _switches(queue, tell)
    trial = asked.targets or tuple(benchmark_of(role) for role in TRIAL)
    alone = [Where(where.place, where.batch, where.text, node) for node in nodes]

    def asked_of(names: Sequence[str], settings: Settings | None = None, **more: bool) -> Submission:
        usual_s = LINKS_BUDGET_S if settings else BUDGET_S
        return replace(asked, targets=tuple(names), settings=settings or {}, budget_s=asked.budget_s or usual_s, **more)

    def run(at: Where, names: Sequence[str], settings: Settings | None = None, **more: bool) -> Sent:
        # Of the links between nodes, the outcomes are needed, too.
        return run_in_jobs([at], asked_of(names, settings, **more), in_brief=settings is None)

    is_own = where.place.system.name == CLUSTER
    tell(f"screening {count(len(nodes), 'node')} of {where.text}: {', '.join(trial)}")
    each_s, links_s = _each_s(where, asked_of(trial)), asked.budget_s or LINKS_BUDGET_S
    tell(_lasting(len(nodes), len(trial), each_s, links_s, in_turn=is_own, with_links=with_links))
    missing = [f"{node}: {state} in Slurm" for node, state in others.items()]
    no_results: list[NoResult] = []
    names = with_declared(list(trial))
    most = 1 if is_own else _most_at_once(queue, where.options.qos, results)
    each = 1 if is_own or most is None else math.ceil(len(alone) / most)
    if each > 1:
        tell(f"Slurm accepts {count(most or 0, 'more job')} of this user: a job for up to {each} nodes, a step on each")
    alone.sort(key=lambda at: at.node not in idle)  # nodes that are free do not wait for others
    together = [alone[first : first + each] for first in range(0, len(alone), each)]

    def submit(group: Sequence[Where]) -> bool:
        if len(group) == 1:
            return is_accepted(run(group[0], trial, detach=True), where.batch)
        return submit_together(group, asked_of(trial)) is not None

    def measured(group: Sequence[Where]) -> list[tuple[Where, Sent]]:
        if len(group) > 1 and most == 1:
            submit(group)
        return [(at, run(at, trial)) for at in group]

    for _, results_of_group in in_turn(together, submit, measured, most):
        for at, sent in results_of_group:
            missing += [f"{at.node}: {why}" for why in sent.unmeasured]
            no_results += _no_results(at.node or "", names, sent)
    odd = _odd_nodes(results, margin)
    target_of = dict(zip(names, trial, strict=True))  # also of a benchmark in a file
    named = [(at, [target_of[name] for name in odd.get(at.node or "", ()) if name in target_of]) for at in alone]
    suspects = [(at, names) for at, names in named if names]
    if suspects:
        tell(f"measuring again what was odd: {', '.join(str(at.node) for at, _ in suspects)}")
    again = {at.node: names for at, names in suspects}
    for at, sent in in_turn(
        [at for at, _ in suspects],
        lambda at: is_accepted(run(at, again[at.node], detach=True, confirms=True), where.batch),
        lambda at: run(at, again[at.node], confirms=True),
        most,
    ):
        missing += [f"{at.node} again: {why}" for why in sent.unmeasured]
    machines = {machine.name: machine for machine in machines_of(contents_in(results, may_be_empty=True)).values()}
    linked, why_not = like_nodes(machines, nodes) if with_links else ([], {})
    missing += [f"link of {node}: {why}" for node, why in why_not.items()]
    # Nodes of our own cluster are on one machine: those with a CPU in common wait for each other.
    not_apart = [
        (a, b)
        for a, b in combinations(sorted(machines) if is_own else (), 2)
        if set(machines[a].allowed_cpus) & set(machines[b].allowed_cpus)
    ]
    if len(linked) >= FEWEST_FOR_LINKS:
        missing += LinkJobs(where, results, run, tell, most, tuple(not_apart)).measured(linked, switch_of)
    elif with_links:
        fewest = f"fewer than {FEWEST_FOR_LINKS} do not show which end is slow"
        missing.append(f"links between nodes: {count(len(linked), 'like node')}, and {fewest}")
    return screen(
        [results], margin=margin, switch_of=switch_of, not_apart=not_apart, missing=missing, no_results=no_results
    )


def _no_results(node: str, benchmarks: Sequence[str], sent: Sent) -> Iterator[NoResult]:
    """What gave no result on a node and has no record: benchmarks that were not started, all of a job that did not end
    by itself."""
    if sent.unfinished:
        why = "; ".join(outcome.reason for outcome in sent.unfinished)
        yield from (NoResult(node, benchmark, why) for benchmark in benchmarks)
    else:
        yield from (NoResult(node, benchmark, why) for benchmark, why in sent.not_started)


def _most_at_once(queue: Queue, qos: str | None, results: Path) -> int | None:
    """How many jobs into this folder Slurm accepts at once, at least one; None: it states no limit."""
    ours = [job.batch_id or "" for job in (JobFolder.all(ResultsFolder.existing(results)) if results.is_dir() else ())]
    try:
        user = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        user = str(os.geteuid())
    outputs = []
    for command in limit_commands(user, qos):
        try:
            outputs.append(queue.ask(command))
        except QueueError:  # such as sacctmgr without accounting
            outputs.append("")
    found = read_limits(outputs, ours)
    return None if found is None else max(1, found)


def _each_s(where: Where, asked: Submission) -> float:
    """How long a node is measured, as far as this machine shows it: the machines of the nodes are not known yet."""
    with asked.at(where) as command:
        return measuring_s(command, discover_live())


def _lasting(nodes: int, benchmarks: int, each_s: float, links_s: float, *, in_turn: bool, with_links: bool) -> str:
    """How long a screen takes, as far as it is known before anything is measured. What is named is measured six times,
    whatever a budget says (docs/adr/0031)."""
    turn = (
        f"one after the other ({duration(nodes * each_s)})"
        if in_turn and nodes > 1
        else "all at once where they are free"
    )
    links = f", then at least {duration(links_s)} of messages" if with_links else ""
    return (
        f"about {duration(each_s)} on each node, {turn}{links}; longer where {count(MINIMUM_REPEATS, 'repeat')} of "
        f"{'each benchmark' if benchmarks > 1 else 'the benchmark'} take longer than on this machine"
    )


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


def _switches(queue: Queue, tell: Tell) -> dict[str, str]:
    """The switch of each node, if Slurm knows."""
    try:
        return read_topology(queue.ask(topology_command()))
    except QueueError as error:
        tell(f"the switches of nodes are not known: {error.message}")
        return {}
