"""The text of settings, facts and counts; numbers are tested with the page (tests/report/test_units.py)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.model.benchmark.parameter import Parameter
from seatrial.model.machine.fact import Fact, Facts
from seatrial.model.spelling import (
    count,
    cpu_list,
    label,
    plain,
    settings,
    show_fact,
    surrounding,
    workers_text,
    written,
)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("nontemporal", True, "true"),
        ("threads", 2, "2"),
        ("array_B", 128 << 20, "128MiB"),
        ("array_B", 1000, "1000B"),
        ("array_B", 0, "0B"),
        ("array_B", "auto", "auto"),
        ("precision", "fp64", "fp64"),
    ],
)
def test_settings_as_on_the_command_line(name, value, text):
    assert written(name, value) == text
    assert settings({name: value}) == f"{name}={text}"


@given(st.integers(0, 1 << 50))
def test_a_size_that_is_written_is_read_back_exactly(size):
    assert Parameter.size("a_B", 0, "").value_of(written("a_B", size)) == size


def test_labels():
    assert label("array_B", 64 << 10) == "array 64\N{NO-BREAK SPACE}KiB"
    assert label("nontemporal", False) == "nontemporal false" and label("precision", "fp64") == "precision fp64"


def test_cpu_lists_keep_the_order_they_are_given():
    assert cpu_list([0, 1, 2, 3, 8]) == "0-3,8" and cpu_list([2, 0, 1]) == "2,0-1" and cpu_list([]) == ""
    assert cpu_list([0, "?", 1]) == "0,?,1"


def test_counts():
    assert [count(n, "CPU") for n in (0, 1, 2, 1.0, 1.5)] == ["0 CPUs", "1 CPU", "2 CPUs", "1 CPU", "1.5 CPUs"]
    assert count(2, "vulnerability", "vulnerabilities") == "2 vulnerabilities"


def test_facts():
    assert show_fact("memory_total", Fact(24 << 30, "x", unit="B")) == "24 GiB"
    assert show_fact("numa_balancing", Fact(0, "x")) == "off" and show_fact("stepping", Fact(0, "x")) == "0"
    assert show_fact("boost", Fact(True, "x")) == "yes" and show_fact("kernel", Fact("6.1", "x")) == "6.1"


def test_any_value_of_a_record_in_one_line():
    assert plain({"a": [1, 2.5], "b": None, "c": True}) == "a 1 2.5; b unknown; c yes"


@pytest.mark.parametrize(("value", "name"), [("kvm", "kvm"), ("none", None), ("", None)])
def test_the_hypervisor_of_a_machine(value, name):
    assert surrounding(Facts({"hypervisor": (Fact(value, "x"),)}), "hypervisor") == name
    assert surrounding(Facts(), "hypervisor") is None


def test_one_worker_has_no_plural() -> None:
    assert [workers_text(name, 1) for name in ("threads", "processes")] == ["1 thread", "1 process"]
    assert workers_text("processes", 1, 2) == "1 and 2 processes"
