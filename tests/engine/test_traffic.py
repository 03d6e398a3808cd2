"""Repeats whose messages did not pass the links of the nodes are invalid."""

from __future__ import annotations

from typing import Any, cast

from benchmarks.test_nodes import plan, with_nodes

from seatrial.engine.judge import messages_astray
from seatrial.engine.ready import Runnable
from seatrial.model.benchmark.program import Hello, ProgramRecord
from seatrial.model.results.sample import Sample


class Native:
    writes_record = True


def judged(*traffic: dict[str, Any], nodes: str = "2") -> str:
    hello = Hello("latency", "", "n1", hosts=("n1", "n2"))
    samples = (Sample("one_way", 0, 1.0, {"ops": 10.0}, point={"size_B": 1000}),)
    record = ProgramRecord(hello, samples, notes={"traffic": list(traffic)} if traffic else {})
    found = messages_astray(plan(with_nodes(2), "mpi.latency", nodes=nodes), cast(Runnable, Native()), record)
    return "" if found is None else found.reason


def node(host: str, sent_B: float, received_B: float) -> dict[str, Any]:
    return {"host": host, "sent_B": sent_B, "received_B": received_B}


def test_messages_over_the_link() -> None:
    assert judged(node("n1", 5400.0, 5400.0), node("n2", 5400.0, 5400.0)) == ""


def test_messages_through_memory() -> None:
    why = judged(node("n1", 5400.0, 5400.0), node("n2", 900.0, 700.0))
    assert why.startswith("traffic: the ranks on n2 sent and received 10 kB, but its interfaces counted 1.60 kB")


def test_a_program_that_does_not_count_does_not_pass() -> None:
    assert judged() == "traffic: the program did not count the bytes on the links of n1, n2"
    assert judged(node("n1", 5400.0, 5400.0)) == "traffic: the program did not count the bytes on the links of n2"
    assert "cannot be read" in judged({"host": "n1", "sent_B": "many"})


def test_adapters_that_cannot_be_counted_prove_nothing() -> None:
    assert judged(node("n1", 5400.0, 5400.0), {"host": "n2"}) == ""


def test_one_node_has_no_link() -> None:
    assert judged(nodes="1") == ""
