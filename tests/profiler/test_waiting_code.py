"""Loops that only wait are distinguished by their code from loops that work, system calls by the number loaded for
them."""

from __future__ import annotations

import pytest

from seatrial.profiler import waiting_code
from seatrial.profiler.waiting_code import (
    CODE_BEFORE,
    Spot,
    main_returns,
    system_call_before,
    waiting_loop,
    waiting_loops,
)

FLAG = "8b05ce2d0000 39c2 74f6"
"""mov flag(%rip),%eax; cmp %eax,%edx; je: `while (flag == old);`"""
RELOADED = "488b442428 488b00 4c39e8 0f8d2affffff 488b442428 488b00 4c39e8 7ce2"
"""The address comes from the stack in each turn."""
PAUSED = "8b07 39d0 740c f390 83c101 39f1 75f1"
"""With a count of turns, and PAUSE between."""


def around(loop: str, at: int) -> bytes:
    """Code with the instruction at an index of the loop where samples have it."""
    code = bytes.fromhex(loop)
    return b"\xcc" * (CODE_BEFORE - at) + code + b"\xcc" * (CODE_BEFORE - len(code) + at)


@pytest.mark.parametrize(("loop", "at"), [(FLAG, 0), (FLAG, 6), (FLAG, 8), (RELOADED, 0), (RELOADED, 17), (PAUSED, 8)])
def test_a_loop_that_reads_the_same_memory_again_or_pauses_only_waits(loop: str, at: int) -> None:
    assert waiting_loop(around(loop, at)) is not None


@pytest.mark.parametrize(
    "loop",
    [
        "488b00 4885c0 75f8",  # mov (%rax),%rax; test; jne: a list is followed
        "488b1a 4889da 4885db 75f5",  # ... by a copy of the register
        "4883c001 803800 75f7",  # add $1,%rax; cmpb $0,(%rax); jne: strlen
        "8b07 39d0 740c 83c101 39f1 75f3",  # a count of turns without PAUSE: they may end by themselves
        "8b07 8906 39d0 75f8",  # it stores
        "f20f59c3 4839c1 75f7",  # mulsd: it computes
        "e800000000 85c0 75f7",  # it calls a function
        "f00fb116 75fa",  # lock cmpxchg: taken at once as a rule
        "39c1 75fc",  # it reads no memory
    ],
)
def test_a_loop_that_may_work_does_not(loop: str) -> None:
    assert waiting_loop(around(loop, 0)) is None


def test_a_loop_counts_if_it_was_seen_at_several_instructions_or_behind_its_pause() -> None:
    def spots(loop: str, **seen: int) -> list[Spot]:
        return [Spot("/app", 0x100 + int(at[1:]), count, around(loop, int(at[1:]))) for at, count in seen.items()]

    (found,) = waiting_loops(spots(FLAG, _6=298, _8=112))
    assert (found.module, found.offset, found.samples) == ("/app", 0x106, 410)
    assert waiting_loops(spots(FLAG, _6=298)) == []  # once through, waiting for memory
    assert waiting_loops(spots(FLAG, _6=5, _8=4)) == []  # chance
    assert waiting_loops(spots(PAUSED, _8=90, _0=20))
    assert waiting_loops(spots(PAUSED, _0=90, _2=20)) == []  # once through


def test_cut_code_says_nothing() -> None:
    for end in range(CODE_BEFORE + len(bytes.fromhex(RELOADED))):
        assert waiting_loop(around(RELOADED, 0)[:end]) is None


def test_without_a_decoder_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting_code, "_decoder", lambda: None)
    assert waiting_loop(around(FLAG, 0)) is None


def test_system_calls_are_known_by_the_number_loaded_for_them() -> None:
    mprotect = bytes.fromhex("b80a000000 0f05")
    assert system_call_before(b"\x90" * (CODE_BEFORE - len(mprotect)) + mprotect + b"\x90" * 64) == "mprotect"
    generic = bytes.fromhex("4889f8 4d89c8 0f05")  # syscall(2): the number is an argument
    assert system_call_before(b"\x90" * (CODE_BEFORE - len(generic)) + generic) == ""
    assert system_call_before(b"\x90" * CODE_BEFORE) == ""


def test_one_or_two_system_calls_are_named() -> None:
    found = main_returns({"openat": 20, "newfstatat": 18, "read": 2})
    assert found is not None and (found.names, found.samples) == ("openat and newfstatat", 40)
    assert main_returns({"mprotect": 7}) is None
    assert main_returns({"a": 10, "b": 9, "c": 9, "d": 9, "e": 9}) is None
    assert main_returns({}) is None
