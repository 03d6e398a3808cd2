"""Whether code that is sampled often only waits: a loop that cannot end by itself, and the system call that a thread
comes back from.

A loop of x86-64 that only loads, compares and branches, at addresses that it does not change, ends when another thread,
process or device writes what it reads; so does one that pauses between (PAUSE, Intel SDM vol. 2: "spin-wait loop
hint"). Whatever else a loop has, such as a store, arithmetic or a call, makes it one that may work: then nothing is
said, as on other processors. Capstone decodes the instructions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from seatrial.model.frozen import Frozen

CODE_BEFORE = 64
"""Bytes of code before a sampled address; `native/code_samples.h`."""
_MOST_INSTRUCTIONS = 32
_LONGEST = 15
"""Bytes of an instruction."""
_LOADS = frozenset({"mov", "movabs", "movzx", "movsx", "movsxd"})
_TESTS = frozenset({"cmp", "test"})
_COUNTS = frozenset({"add", "sub", "inc", "dec", "lea"})
_OTHERS = frozenset({"and", "nop", "pause"})
_PARTS = re.compile(r"[er]?([abcd])[xlh]|[er]?(bp|sp|si|di)l?|(r\d+)[dwb]?")
"""Names of a register and of its parts."""


class Instruction(Frozen):
    """`target` of a branch. `reads` memory at an address made of the registers `base`; `writes`: the register that
    changes; `copies`: to the value of this register, `is_new`: to one without its own. `counts`: by what it was."""

    length: int
    target: int | None = None
    is_pause: bool = False
    reads: bool = False
    counts: bool = False
    base: frozenset[str] = frozenset()
    writes: str | None = None
    copies: str | None = None
    is_new: bool = False


@cache
def _decoder() -> Any:
    """Capstone for x86-64; None where it is not installed: it has no wheel for some processors."""
    try:
        import capstone
    except ImportError:
        return None
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    return decoder


def decoded(code: bytes, at: int) -> Instruction | None:
    """The instruction at an index of the code; None if it is not among those that a waiting loop may have."""
    decoder = _decoder()
    one = None if decoder is None else next(decoder.disasm(code[at : at + _LONGEST], at, 1), None)
    if one is None:
        return None
    from capstone import CS_AC_WRITE, CS_GRP_BRANCH_RELATIVE, CS_GRP_CALL
    from capstone.x86 import X86_OP_IMM, X86_OP_MEM, X86_OP_REG

    name, operands = str(one.mnemonic), list(one.operands)
    if one.group(CS_GRP_BRANCH_RELATIVE) and not one.group(CS_GRP_CALL) and operands[0].type == X86_OP_IMM:
        return Instruction(one.size, target=operands[0].imm)
    is_known = name in _LOADS | _TESTS | _COUNTS | _OTHERS or (name.startswith("set") and len(operands) == 1)
    is_cleared = name == "xor" and len(operands) == 2 and operands[0].reg == operands[1].reg
    if not (is_known or is_cleared):
        return None
    if name in ("nop", "pause"):
        return Instruction(one.size, is_pause=name == "pause")
    memory = next((each.mem for each in operands if each.type == X86_OP_MEM), None)
    changed = [each for each in operands if each.access & CS_AC_WRITE]
    if any(each.type != X86_OP_REG for each in changed):
        return None  # it stores
    if memory is not None and name not in _LOADS | _TESTS | {"lea"}:
        return None
    base = () if memory is None else (memory.base, memory.index)
    source = operands[1] if name in _LOADS and operands[1].type == X86_OP_REG else None
    return Instruction(
        one.size,
        reads=memory is not None and name != "lea",
        counts=name in _COUNTS,
        base=frozenset(_register(one, each) for each in base if each and one.reg_name(each) != "rip"),
        writes=_register(one, changed[0].reg) if changed else None,
        copies=None if source is None else _register(one, source.reg),
        is_new=name in _LOADS or is_cleared,
    )


def _register(one: Any, number: int) -> str:
    """The register that it is a part of: "a" for al, ax, eax and rax."""
    name = str(one.reg_name(number))
    found = _PARTS.fullmatch(name)
    return name if found is None else next(filter(None, found.groups()))


class Loop(Frozen):
    """A loop that only waits, from `begin` to `end` as indices of the code. `pauses`: behind its PAUSEs."""

    begin: int
    end: int
    pauses: frozenset[int] = frozenset()


def waiting_loop(code: bytes, at: int = CODE_BEFORE) -> Loop | None:
    """The innermost loop around an index of the code, if it only waits."""
    here = at
    for _ in range(_MOST_INSTRUCTIONS):
        one = decoded(code, here)
        if one is None:
            return None
        here += one.length
        if one.target is not None and 0 <= one.target <= at:
            return _waiting(code, one.target, here, at)
    return None


def _waiting(code: bytes, begin: int, end: int, at: int) -> Loop | None:
    body: list[Instruction] = []
    starts = []
    here = begin
    while here < end:
        one = decoded(code, here)
        if one is None:
            return None
        starts.append(here)
        body.append(one)
        here += one.length
    if here != end or at not in starts:
        return None
    pauses = frozenset(start + one.length for start, one in zip(starts, body, strict=True) if one.is_pause)
    if not pauses and not (_reads_the_same(body) and any(one.reads for one in body)):
        return None
    return Loop(begin, end, pauses)


def _reads_the_same(body: Sequence[Instruction]) -> bool:
    """Whether each turn reads the same addresses: without counts, and without an address that the turn before changed,
    such as `p = p->next`."""
    carried = {one.writes for one in body if one.writes is not None}
    for one in body:
        if one.counts or one.base & carried:
            return False
        if one.is_new and one.writes is not None:
            is_old = one.copies is not None and one.copies in carried
            carried = carried | {one.writes} if is_old else carried - {one.writes}
    return True


class Spot(Frozen):
    """A sampled address: in the file `module`, at `offset` there ("" and the address itself: in none), the code from
    CODE_BEFORE bytes before it, and how often it was seen."""

    module: str
    offset: int
    samples: int
    code: bytes


class Waiting(Frozen):
    """A loop that only waits: its first sampled instruction, and how often it was seen there."""

    module: str
    offset: int
    samples: int


_LEAST_SAMPLES = 10
_LEAST_OF_OTHERS = 2
_LEAST_PAUSED = 0.2


def waiting_loops(spots: Sequence[Spot]) -> list[Waiting]:
    """The waiting loops that were seen, most samples first. Each was seen at several of its instructions, and behind
    its PAUSE if it has one: code that is passed once also takes long at one that waits for memory."""
    found: dict[tuple[str, int], tuple[Loop, dict[int, int]]] = {}
    for spot in spots:
        loop = waiting_loop(spot.code)
        if loop is not None:
            begin = spot.offset + loop.begin - CODE_BEFORE
            _, seen = found.setdefault((spot.module, begin), (_shifted(loop, begin - loop.begin), {}))
            seen[spot.offset] = seen.get(spot.offset, 0) + spot.samples
    made = []
    for (module, _), (loop, seen) in found.items():
        total = sum(seen.values())
        if total < _LEAST_SAMPLES:
            continue
        if loop.pauses:
            is_seen = sum(seen.get(at, 0) for at in loop.pauses) >= _LEAST_PAUSED * total
        else:
            is_seen = total - max(seen.values()) >= _LEAST_OF_OTHERS
        if is_seen:
            made.append(Waiting(module, min(seen), total))
    return sorted(made, key=lambda one: -one.samples)


def _shifted(loop: Loop, by: int) -> Loop:
    return Loop(loop.begin + by, loop.end + by, frozenset(at + by for at in loop.pauses))


_SYSTEM_CALL = b"\x0f\x05"
_NUMBER = 0xB8  # MOV EAX, number
_MOST_BETWEEN = 24
_CALLS: Mapping[int, str] = {
    **{0: "read", 1: "write", 2: "open", 3: "close", 4: "stat", 5: "fstat", 6: "lstat", 7: "poll", 8: "lseek"},
    **{9: "mmap", 10: "mprotect", 11: "munmap", 12: "brk", 13: "rt_sigaction", 14: "rt_sigprocmask"},
    **{15: "rt_sigreturn", 16: "ioctl", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev", 21: "access"},
    **{22: "pipe", 23: "select", 24: "sched_yield", 25: "mremap", 26: "msync", 27: "mincore", 28: "madvise"},
    **{32: "dup", 33: "dup2", 34: "pause", 35: "nanosleep", 36: "getitimer", 38: "setitimer", 39: "getpid"},
    **{40: "sendfile", 41: "socket", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg"},
    **{47: "recvmsg", 56: "clone", 57: "fork", 58: "vfork", 59: "execve", 61: "wait4", 62: "kill", 63: "uname"},
    **{72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync", 76: "truncate", 77: "ftruncate", 78: "getdents"},
    **{79: "getcwd", 80: "chdir", 82: "rename", 83: "mkdir", 84: "rmdir", 85: "creat", 86: "link", 87: "unlink"},
    **{88: "symlink", 89: "readlink", 90: "chmod", 96: "gettimeofday", 98: "getrusage", 100: "times"},
    **{102: "getuid", 110: "getppid", 186: "gettid", 200: "tkill", 201: "time", 202: "futex"},
    **{203: "sched_setaffinity", 204: "sched_getaffinity", 217: "getdents64", 228: "clock_gettime"},
    **{230: "clock_nanosleep", 232: "epoll_wait", 233: "epoll_ctl", 234: "tgkill", 257: "openat", 262: "newfstatat"},
    **{263: "unlinkat", 267: "readlinkat", 269: "faccessat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait"},
    **{
        285: "fallocate",
        295: "preadv",
        296: "pwritev",
        302: "prlimit64",
        309: "getcpu",
        318: "getrandom",
        332: "statx",
    },
    **{435: "clone3", 437: "openat2", 439: "faccessat2", 447: "memfd_secret"},
}
"""Numbers of system calls on x86-64 (arch/x86/entry/syscalls/syscall_64.tbl of Linux)."""


def system_call_before(code: bytes, at: int = CODE_BEFORE) -> str:
    """The system call that returns to an index of the code, by the number that is loaded for it; "" if that is not
    found."""
    if code[at - 2 : at] != _SYSTEM_CALL:
        return ""
    for back in range(7, _MOST_BETWEEN):
        here = at - back
        if here >= 0 and code[here] == _NUMBER:
            name = _CALLS.get(int.from_bytes(code[here + 1 : here + 5], "little"))
            if name is not None:
                return name
    return ""


_LEAST_RETURNS = 8
_MOST_RETURNS = 0.6
_SECOND = 0.5


class Returns(Frozen):
    """The system calls, one or two of them as text, that threads were mostly seen to come back from: a part `share` of
    `samples`."""

    names: str
    share: float
    samples: float


def main_returns(calls: Mapping[str, float]) -> Returns | None:
    """Of samples behind system calls, by name; None if they are few, or of many calls. Only a few of a hundred samples
    in the kernel are seen there, so they say which calls take the time, and not how much of it."""
    total = sum(calls.values())
    names = sorted(calls, key=lambda one: -calls[one])
    named = [one for one in names[:2] if calls[one] >= _SECOND * calls[names[0]]]
    share = sum(calls[one] for one in named) / total if total else 0.0
    return Returns(" and ".join(named), share, total) if total >= _LEAST_RETURNS and share >= _MOST_RETURNS else None
