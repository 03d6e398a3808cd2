"""Screens of made-up clusters: each planted fault is named, and nothing else."""

from __future__ import annotations

import random
import shlex
from dataclasses import replace

import pytest
from analysis.made_up_fleets import Planted, fleet
from made_up import facts, made_up_machine

from seatrial.analysis.screening.inputs import with_like_pairs
from seatrial.analysis.screening.screen import drain, facts_of_node, facts_that_differ, screen_cluster
from seatrial.model.machine.document import machine_document
from seatrial.model.study.screen import FALSE_ALARM_RATE, Item, LinkCount, ScreenInput

SHAPES = ((4, 4), (4, 2), (8, 8), (8, 4), (8, 2), (16, 4))
FAULTS = (
    ("a CPU quota of 80 %", Planted(quota={"n2": 0.8}), ("node", "n2")),
    ("a link at half rate", Planted(link={"n2": 0.5}), ("link", "n2 - s1")),
    ("a slow pair", Planted(pair={("n1", "n3"): 0.5}), ("link", "n1 - n3")),
    ("less memory", Planted(facts={"n2": {"memory": 16 << 30}}), ("node", "n2")),
)


def named(given: ScreenInput) -> set[tuple[str, str]]:
    return {(one.kind.value, one.what) for one in screen_cluster(given).odd}


@pytest.mark.parametrize(("n", "of_switch"), SHAPES)
def test_nothing_is_named_where_nothing_is_odd(n: int, of_switch: int) -> None:
    source = random.Random(n)
    assert [named(fleet(source, n, of_switch)) for _ in range(5)] == [set()] * 5


@pytest.mark.parametrize(("n", "of_switch"), SHAPES)
@pytest.mark.parametrize(("planted", "expected"), [fault[1:] for fault in FAULTS], ids=[fault[0] for fault in FAULTS])
def test_each_planted_fault_is_named_and_nothing_else(
    n: int, of_switch: int, planted: Planted, expected: tuple[str, str]
) -> None:
    assert named(fleet(random.Random(1), n, of_switch, planted)) == {expected}


@pytest.mark.parametrize(
    ("n", "of_switch", "expected"),
    [(4, 2, "s1 or s2"), (8, 4, "s1 or s2"), (8, 2, "s1"), (16, 4, "s1"), (8, 8, None)],
)
def test_a_slow_uplink_is_named_where_other_uplinks_show_it(n: int, of_switch: int, expected: str | None) -> None:
    found = named(fleet(random.Random(2), n, of_switch, Planted(uplink={"s1": 0.25})))
    assert found == ({("switch", expected)} if expected else set())


def test_an_uplink_as_slow_as_designed_is_not_odd() -> None:
    given = fleet(random.Random(2), 8, 4, Planted(uplink={"s1": 0.25, "s2": 0.25}))
    assert named(given) == {("switch", "s1 or s2")}
    assert named(replace(given, oversubscription=4.0)) == {("switch", "s1 or s2")}  # one pair at a time is not shared


def test_two_faults_at_once() -> None:
    planted = Planted(quota={"n2": 0.8}, link={"n3": 0.5})
    assert named(fleet(random.Random(3), 8, 4, planted)) == {("node", "n2"), ("link", "n3 - s1")}


@pytest.mark.parametrize(("later", "is_named"), [(0.8, True), (0.78, True), (1.0, False), (0.98, False), (1.25, False)])
def test_an_odd_node_that_was_measured_again_must_be_odd_again(later: float, is_named: bool) -> None:
    source = random.Random(5)
    given = fleet(source, 8, 8, Planted(quota={"n5": 0.8}))
    (place,) = (k for k, node in enumerate(given.nodes) if node == "n5")
    usual = fleet(source, 8, 8, Planted(quota={"n5": later}))
    both = zip(given.figures, usual.figures, strict=True)
    figures = tuple(replace(first, later={place: second.values[place]}) for first, second in both)
    found = screen_cluster(replace(given, figures=figures))
    assert {one.what for one in found.odd} == ({"n5"} if is_named else set())
    again = {(one.what, one.ratio < 0.85) for one in found.not_seen_again if one.figure == "fma"}
    assert again == (set() if is_named else {("n5", True)})
    assert not is_named or "when measured again" in found.odd[0].why


def test_what_was_not_odd_at_first_is_not_odd_by_what_was_measured_later() -> None:
    given = fleet(random.Random(6), 8, 8)
    figures = tuple(replace(one, later={2: [value * 0.5 for value in one.values[2]]}) for one in given.figures)
    assert not screen_cluster(replace(given, figures=figures)).odd


def test_an_odd_one_says_by_how_much_how_surely_and_what_to_do() -> None:
    (odd, *_) = screen_cluster(fleet(random.Random(4), 8, 8, Planted(quota={"n5": 0.8}))).odd
    assert (odd.what, odd.benchmark, odd.figure, odd.nodes) == ("n5", "cpu.peak", "fma", ("n5",))
    assert odd.ratio == pytest.approx(0.8, abs=0.03) and odd.usual == pytest.approx(1e11, rel=0.03)
    assert 0.99 < odd.sureness <= 1 and odd.false_alarm_rate == FALSE_ALARM_RATE
    assert odd.remedy.startswith("scontrol update nodename=n5 state=drain reason=")


def test_a_link_as_slow_as_its_node_is_the_node() -> None:
    found = screen_cluster(fleet(random.Random(5), 8, 8, Planted(quota={"n2": 0.8}, link={"n2": 0.8}))).odd
    assert {one.what for one in found} == {"n2"} and any("its link is slow" in one.why for one in found)


def test_two_models_of_nodes_are_classes_and_not_odd() -> None:
    half = {f"n{k}": 0.8 for k in range(1, 9)}
    planted = Planted(quota=half, facts={node: {"CPU model": "older"} for node in half})
    given = fleet(random.Random(6), 16, 4, planted)
    found = screen_cluster(given)
    assert found.odd == ()
    (classes,) = [one for one in found.classes if one.figure == "fma"]
    assert set(classes.minority) == set(half) and classes.ratio == pytest.approx(0.8, abs=0.02)
    assert classes.differ_in == ("CPU model",)


def test_an_odd_one_within_a_class_is_found() -> None:
    half = {f"n{k}": 0.8 for k in range(1, 13)}
    found = named(fleet(random.Random(7), 24, 24, Planted(quota={**half, "n3": 0.5, "n20": 0.8})))
    assert ("node", "n3") in found


def test_a_device_is_named_with_its_node() -> None:
    given = fleet(random.Random(8), 8, 8)
    items = tuple(Item(f"n{k // 4 + 1}", f"GPU {k % 4}") for k in range(32))
    source = random.Random(9)
    values = tuple([(0.7 if k == 6 else 1.0) * source.gauss(1e13, 1e11) for _ in range(6)] for k in range(32))
    gpus = replace(given.figures[0], benchmark="gpu.max-flops", figure="fma", items=items, values=values)
    assert named(replace(given, figures=(gpus,))) == {("device", "GPU 2 of n2")}


def test_facts_that_differ_name_who_is_rare() -> None:
    kinds = {f"n{k}": {"kernel": "6.1" if k else "5.10", "microcode": "0x1" if k % 2 else "0x2"} for k in range(8)}
    kernel, microcode = facts_that_differ(kinds)
    assert kernel.fact == "kernel" and kernel.odd == ("n0",) and kernel.values[0].value == "6.1"
    assert microcode.fact == "microcode" and microcode.odd == ()  # half of them


def test_memory_that_differs_by_what_firmware_keeps_is_equal() -> None:
    assert facts_that_differ({f"n{k}": {"memory": (64 << 30) + k * 4096} for k in range(4)}) == ()


def test_a_fact_that_a_node_does_not_state_differs() -> None:
    (found,) = facts_that_differ({"a": {"driver": "550"}, "b": {"driver": "550"}, "c": {}})
    assert found.odd == ("c",) and found.values[1].value is None


def test_a_pcie_link_that_is_narrower_is_the_device() -> None:
    rates = {f"n{k}": {"gpu-1 link rate": 8e9 if k == 2 else 16e9} for k in range(5)}
    (odd,) = screen_cluster(ScreenInput(tuple(rates), facts=rates)).odd
    assert (odd.kind, odd.what, odd.ratio, odd.sureness) == ("device", "gpu-1 of n2", 0.5, 1.0)


def test_two_nodes_cannot_be_told_apart() -> None:
    found = screen_cluster(fleet(random.Random(10), 2, 2, Planted(quota={"n2": 0.8})))
    assert found.odd == () and any("of fewer than 3, none is the odd one" in text for text in found.not_screened)
    assert any("which end is slow cannot be said" in text for text in found.not_screened)


def test_a_quota_and_a_limit_of_memory_count_as_what_a_node_has() -> None:
    document = machine_document(replace(made_up_machine(), facts=facts(cgroup_cpu_limit=0.8, memory_present=64 << 30)))
    assert facts_of_node(document)["CPUs"] == 0.8 and facts_of_node(document)["memory"] == 64 << 30
    limited = machine_document(
        replace(made_up_machine(), facts=facts(memory_present=64 << 30, cgroup_memory_limit=2 << 30))
    )
    assert facts_of_node(limited)["CPUs"] == 2 and facts_of_node(limited)["memory"] == 2 << 30


def test_messages_between_nodes_that_share_cpus_are_ignored() -> None:
    given = fleet(random.Random(11), 4, 4, Planted(pair={("n1", "n3"): 0.01}))
    assert named(given) == {("link", "n1 - n3")}
    assert named(replace(given, not_apart=frozenset({("n3", "n1"), ("n2", "n4")}))) == set()


def test_a_link_that_counted_errors_is_named_and_congestion_is_only_listed() -> None:
    counts = (
        LinkCount("n2", "mlx5_0 port 1", "symbol_error", 4000),
        LinkCount("n2", "mlx5_0 port 1", "link_downed", 1),
        LinkCount("n3", "mlx5_0 port 1", "symbol_error", 2),
        *(LinkCount(f"n{k}", "mlx5_0 port 1", "port_xmit_wait", 90_000) for k in range(1, 9)),
    )
    given = replace(fleet(random.Random(12), 8, 8), link_counts=counts)
    found = screen_cluster(given)
    assert {(one.kind.value, one.what) for one in found.odd} == {("link", "n2 - s1")}
    errors = {one.figure: one for one in found.odd}
    assert set(errors) == {"mlx5_0 port 1 link_downed", "mlx5_0 port 1 symbol_error"}
    damaged = errors["mlx5_0 port 1 symbol_error"]
    assert "damaged" in damaged.why and "cable" in damaged.remedy and (damaged.value, damaged.usual) == (4000, 0)
    assert found.link_counts == counts
    everywhere = tuple(LinkCount(f"n{k}", "mlx5_0 port 1", "link_downed", 1) for k in range(1, 9))
    assert screen_cluster(replace(given, link_counts=everywhere)).odd == ()


def test_the_nodes_of_a_slow_switch_do_not_hide_each_other() -> None:
    """A rack of 40 among 1,200 nodes is slow, and so is one node elsewhere."""
    source = random.Random(13)
    nodes = [f"n{k}" for k in range(1200)]
    values = tuple([(0.8 if k < 40 or k == 700 else 1.0) * source.lognormvariate(0, 0.005)] for k in range(1200))
    one = fleet(source, 4, 4).figures[0]
    figure = replace(one, items=tuple(map(Item, nodes)), values=values)
    assert named(ScreenInput(tuple(nodes), (figure,))) == {("node", f"n{k}") for k in (*range(40), 700)}


def test_a_pair_without_samples_in_one_repeat_is_screened_by_the_others() -> None:
    whole, without = {("n1", "n2"): 1.0, ("n1", "n3"): 2.0}, {("n1", "n2"): 1.0}
    assert with_like_pairs([whole, without, whole]) == [whole, whole]
    assert with_like_pairs([without, whole, without]) == [without, whole, without], "few would be left"
    assert with_like_pairs([without, without]) == [without, without]


def test_what_gave_no_figure_is_said() -> None:
    found = screen_cluster(replace(fleet(random.Random(14), 8, 8), failed=("n3: io.file was timed out",)))
    assert found.odd == () and found.not_screened == ("n3: io.file was timed out",)


def test_shared_uplinks_are_compared_with_each_other_where_the_design_is_not_known() -> None:
    """All pairs at once share uplinks that are half as fast as their nodes together."""
    shared = Planted(uplink={f"s{k}": 0.5 for k in range(1, 5)})
    given = fleet(random.Random(15), 16, 4, shared)
    loaded = replace(given, pairs=tuple(replace(one, parameters={"at_once": 8}) for one in given.pairs))
    assert named(loaded) == set()
    assert named(replace(loaded, oversubscription=2.0)) == set()
    assert {kind for kind, _ in named(replace(loaded, oversubscription=1.0))} == {"switch"}


def test_the_command_for_a_node_is_one_command_whatever_its_name_is() -> None:
    for node in ("n1; rm -rf /", "$(touch x)", "n1' reason='x", "n1\nreboot"):
        words = shlex.split(drain(node, f"{node} differs from the others"))
        assert words == [
            *("scontrol", "update", f"nodename={node}", "state=drain"),
            f"reason=seatrial: {node} differs from the others",
        ]
