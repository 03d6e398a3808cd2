"""Messages between the nodes of a screen, in jobs: between all nodes that are alike; where these have no result,
between two nodes at a time, until it is known with which nodes there are no messages."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from seatrial.analysis.screening.inputs import folder_to_screen, tried_pairs, was_tried
from seatrial.analysis.screening.silent import next_pairs, silent_nodes
from seatrial.benchmarks import benchmark_of
from seatrial.errors import UsageError
from seatrial.jobs.batch.system import BatchSystem
from seatrial.jobs.following import REFUSED
from seatrial.jobs.queue import Where
from seatrial.jobs.submitted import Sent
from seatrial.model.benchmark.benchmark import Role
from seatrial.model.frozen import Frozen
from seatrial.model.machine.identity import unlike
from seatrial.model.machine.machine import Machine
from seatrial.model.study.screen import NodePair
from seatrial.plan.points import Settings

FEWEST_FOR_LINKS = 3

Tell = Callable[[str], None]


class LinkJobs(Frozen):
    """Jobs that measure messages. `run` measures benchmarks with settings on nodes, `most` is how many jobs may be
    submitted at once (None: no limit is known), nodes of `not_apart` share CPUs."""

    where: Where
    results: Path
    run: Callable[..., Sent]
    tell: Tell
    most: int | None
    not_apart: tuple[NodePair, ...] = ()

    def measured(self, nodes: Sequence[str], switch_of: Mapping[str, str]) -> list[str]:
        """Measure between these nodes; what could not be."""
        missing, has_failed = self._together(nodes)
        if not has_failed:
            # Pairs at once that share CPUs would show the scheduler.
            is_loaded = _has_shared_uplinks(nodes, switch_of) and not self.not_apart
            return missing + (self._together(nodes, at_once="all")[0] if is_loaded else [])
        silent = self._two_at_a_time(nodes)
        left = [node for node in nodes if node not in silent]
        if FEWEST_FOR_LINKS <= len(left) < len(nodes):
            missing += self._together(left)[0]
        return missing

    def _together(self, nodes: Sequence[str], **loaded: str) -> tuple[list[str], bool]:
        """Measure between all of them; what could not be, and whether it was tried and had no result."""
        settings: Settings = {"nodes": len(nodes), "ranks": len(nodes), **loaded}
        try:
            sent = self.run(self._at(nodes), [benchmark_of(Role.RANK_PAIRS)], settings)
        except UsageError as error:
            return [f"links between nodes: {error.message}"], False
        results = () if sent.result is None else sent.result.experiments
        has_failed = any(was_tried(one.outcome) and not one.outcome.is_ok for one in results)
        return [f"links between nodes: {why}" for why in sent.unmeasured], has_failed

    def _two_at_a_time(self, nodes: Sequence[str]) -> set[str]:
        """Measure pairs of nodes; the nodes with which there are no messages."""
        self.tell("messages between all nodes together had no result: two nodes at a time are measured")
        tried = self._tried(nodes)
        while pairs := next_pairs(nodes, tried, self.not_apart):
            for _ in in_turn(
                [self._at(pair) for pair in pairs],
                lambda at: is_accepted(self._between(at, detach=True), self.where.batch),
                self._between,
                self.most,
            ):
                pass
            before, tried = tried, self._tried(nodes)
            if tried.keys() == before.keys():  # the jobs did not come to measure
                break
        return {one.node for one in silent_nodes(tried)[0]}

    def _tried(self, nodes: Sequence[str]) -> dict[NodePair, str]:
        found = tried_pairs([folder_to_screen(self.results)])
        return {pair: why for pair, why in found.items() if set(pair) <= set(nodes)}

    def _between(self, at: Where, **more: bool) -> Sent:
        settings: Settings = {"node_placement": (at.node or "").replace(",", "+"), "ranks": 2}
        return self.run(at, [benchmark_of(Role.RANK_PAIRS)], settings, **more)

    def _at(self, nodes: Sequence[str]) -> Where:
        return Where(self.where.place, self.where.batch, self.where.text, ",".join(nodes))


_Node = TypeVar("_Node")
_Result = TypeVar("_Result")


def in_turn(
    nodes: Sequence[_Node],
    submit: Callable[[_Node], bool],
    wait: Callable[[_Node], _Result],
    most: int | None,
) -> Iterator[tuple[_Node, _Result]]:
    """Measure each node, or nodes that share a job: what `wait` gives for each, in order. At most `most` jobs are
    submitted before the first of them has ended (None: no limit is known), and fewer from when on `submit` says that
    one was refused only for now."""
    left, submitted = deque(nodes), deque[_Node]()
    while left or submitted:
        while left and (most is None or len(submitted) < max(1, most)):
            if most != 1 and not submit(left[0]) and submitted:
                most = len(submitted)
                break
            submitted.append(left.popleft())
        at = submitted.popleft()
        yield at, wait(at)


def is_accepted(sent: Sent, batch: BatchSystem) -> bool:
    """Whether no job was refused because the user has as many as the site allows."""
    ends = [over for job in sent.jobs if (over := job.over()) is not None and over.state == REFUSED]
    return not any(batch.refused_for_now(over.reason) for over in ends)


def _has_shared_uplinks(nodes: Sequence[str], switch_of: Mapping[str, str]) -> bool:
    """Whether nodes share uplinks: then pairs are also measured all at once. Many nodes always are."""
    members = Counter(switch_of[node] for node in nodes if node in switch_of)
    return len(members) > 1 and max(members.values()) > 1


def like_nodes(machines: Mapping[str, Machine], nodes: Sequence[str]) -> tuple[list[str], dict[str, str]]:
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
    return largest, {**why_not, **{node: "its machine is unknown" for node in nodes if node not in machines}}
