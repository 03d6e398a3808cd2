"""The JSON of a machine: the round trip, and what is refused."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from published_schemas import check

from seatrial.errors import UsageError
from seatrial.model.machine.document import machine_document, machine_from_document
from seatrial.model.machine.fact import Fact, FactKind, Facts
from seatrial.model.machine.identity import machine_identity
from seatrial.model.machine.limit import Basis, Limit, dram_bandwidth
from seatrial.model.machine.machine import (
    Affinity,
    Device,
    DeviceKind,
    Link,
    Machine,
    Memory,
    NamedLimit,
    Path,
    PeerAccess,
    Population,
    SocketMemory,
)
from seatrial.model.units import UNITS

_TEXT = st.text(max_size=12)
_NAMES = st.text(min_size=1, max_size=12)
_NUMBERS = st.one_of(st.integers(-(2**53), 2**53), st.floats(allow_nan=False, allow_infinity=False))
_FACT = st.builds(
    Fact,
    st.one_of(_TEXT, _NUMBERS, st.booleans()),
    _NAMES,
    st.sampled_from(FactKind),
    st.one_of(st.none(), st.sampled_from(UNITS)),
    st.booleans(),
)
_FACTS = st.builds(Facts, st.dictionaries(_NAMES, st.lists(_FACT, min_size=1, max_size=3).map(tuple), max_size=4))
_RATE = st.one_of(st.none(), st.floats(1.0, 1e12))
_LIMIT = st.one_of(
    st.builds(Limit.unknown, st.sampled_from(UNITS), _TEXT),
    st.builds(dram_bandwidth, st.integers(1, 24), st.just(4800.0)),
)
_COUNT = st.one_of(st.none(), st.integers(1, 24))
_NODE = st.one_of(st.none(), st.integers(0, 9))
_NAME = st.one_of(st.none(), _NAMES)
_ALIASES = st.lists(_NAMES, max_size=2).map(tuple)
_CPUS = st.lists(st.integers(0, 9), max_size=3).map(tuple)
_CLASS = st.sampled_from(["NV", "PIX", "SYS", None])
_DEVICE = st.builds(Device, _NAMES, st.sampled_from(DeviceKind), _TEXT, _NAME, _NODE, _NAME, _ALIASES, _FACTS)
_SOCKET = st.builds(SocketMemory, _COUNT, _COUNT, st.integers(0, 24), st.integers(0, 2**45), _RATE, _RATE)
_SOCKETS = st.lists(_SOCKET, max_size=2).map(tuple)
_MACHINES = st.builds(
    Machine,
    name=_TEXT,
    devices=st.lists(_DEVICE, max_size=3).map(tuple),
    facts=_FACTS,
    links=st.lists(st.builds(Link, _NAMES, _NAMES, _NAMES, _RATE, _RATE, _NAMES, _RATE), max_size=2).map(tuple),
    paths=st.lists(st.builds(Path, _NAMES, _NAMES, _CLASS, _NODE), max_size=2).map(tuple),
    affinity=st.lists(st.builds(Affinity, _NAMES, st.one_of(st.none(), _CPUS), _NODE), max_size=2).map(tuple),
    p2p=st.lists(st.builds(PeerAccess, _NAMES, _NAMES, st.just("OK"), st.none()), max_size=2).map(tuple),
    memory=st.builds(Memory, st.sampled_from(Population), _TEXT, _LIMIT, _SOCKETS),
    limits=st.lists(st.builds(NamedLimit, _NAMES, _LIMIT), max_size=2).map(tuple),
    allowed_cpus=_CPUS,
    sources=st.lists(_NAMES, max_size=2).map(tuple),
    unread=st.lists(_TEXT, max_size=2).map(tuple),
)  # fmt: skip


@given(_MACHINES)
def test_round_trip(machine: Machine) -> None:
    text = json.dumps(machine_document(machine), allow_nan=False)
    document = json.loads(text)
    check(document, "machine-1")
    back = machine_from_document(document)
    assert back == machine
    assert machine_identity(back) == machine_identity(machine)
    assert json.dumps(machine_document(back), allow_nan=False) == text


@pytest.mark.parametrize("confirmed", [True, False])
def test_an_unconfirmed_limit_stays_so(confirmed: bool) -> None:
    limit = Limit(1.5e9, "B/s", "hearsay", Basis.PHYSICAL, confirmed)
    machine = Machine("x", memory=Memory(peak=limit), limits=(NamedLimit("dram.bandwidth", limit),))
    document = json.loads(json.dumps(machine_document(machine)))
    assert document["limits"][0].get("confirmed", True) is document["memory"]["peak"].get("confirmed", True)
    back = machine_from_document(document)
    assert back == machine
    assert back.memory.peak.confirmed is confirmed


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"schema": "seatrial.machine/2"},
        {"schema": "seatrial.machine/1"},
        {**machine_document(Machine("x")), "devices": [{}]},
        {**machine_document(Machine("x")), "name": 7},
        {**machine_document(Machine("x")), "memory": {"verdict": "splendid"}},
        {**machine_document(Machine("x")), "facts": {"a": [{"value": None}]}},
        {
            **machine_document(Machine("x")),
            "limits": [{"name": "a", "value": 1, "unit": "m", "derivation": "", "basis": "physical"}],
        },
    ],
)
def test_an_invalid_document_is_refused(document: dict[str, object]) -> None:
    with pytest.raises(UsageError):
        machine_from_document(document)


def test_a_number_that_json_cannot_represent_is_refused() -> None:
    with pytest.raises(ValueError, match="not a number"):
        machine_document(Machine("x", links=(Link("a", "b", "pcie", float("nan"), None, "s"),)))


def test_identity() -> None:
    def machine(**facts: tuple[Fact, ...]) -> str:
        return machine_identity(Machine("x", facts=Facts(facts)))

    plain = machine()
    assert machine(load=(Fact(3.0, "s", volatile=True),)) == plain
    assert machine(pipes=(Fact(2, "book", FactKind.ASSERTED),)) == plain
    assert machine(privileges=(Fact("root", "s"),)) == plain
    assert machine(kernel=(Fact("6.1", "s"),)) != plain
    assert machine(kernel=(Fact("6.1", "book", FactKind.ASSERTED),)) == plain, "documents do not identify"
    assert machine(kernel=(Fact("6.1", "s"),)) == machine(kernel=(Fact("6.1", "t"), Fact("6.2", "u")))
    assert machine_identity(Machine("y")) != plain
    assert machine_identity(Machine("x", allowed_cpus=(0,))) != plain
    assert machine_identity(Machine("x", unread=("z",), sources=("q",))) == plain


_GIB = 1 << 30


def _with_memory(usable: float, online: int | None = None) -> str:
    facts = {"memory_total": (Fact(usable, "MemTotal", unit="B"),)}
    if online is not None:
        facts["memory_online"] = (Fact(online, "blocks", unit="B"),)
    return machine_identity(Machine("x", facts=Facts(facts)))


def test_memory_blocks_identify_a_machine_and_usable_memory_does_not() -> None:
    assert _with_memory(62 * _GIB, 64 * _GIB) == _with_memory(30 * _GIB, 64 * _GIB), "a balloon"
    assert _with_memory(62 * _GIB, 64 * _GIB) != _with_memory(62 * _GIB, 72 * _GIB)


@pytest.mark.parametrize("installed", [n * size for n in (1, 2, 3, 4, 6, 8, 12, 16, 24) for size in (16, 32, 64, 96)])
def test_without_blocks_some_megabytes_do_not_change_the_identity_and_a_module_does(installed: int) -> None:
    for share_of_the_kernel in (0.016, 0.02, 0.025):
        usable = installed * (1 - share_of_the_kernel) * _GIB
        assert len({_with_memory(usable + jitter) for jitter in (-30e6, -1e6, 0, 1e6, 30e6)}) == 1
        assert _with_memory(usable * 15 / 16) != _with_memory(usable), "a module of 16"


@given(st.integers(1, 2**50))
def test_any_size_has_an_identity(size: int) -> None:
    assert _with_memory(size) == _with_memory(size)
