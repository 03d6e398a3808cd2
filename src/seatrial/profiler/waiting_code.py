"""Whether code that is sampled often only waits: a loop that cannot end by itself, and the system call that a thread
comes back from.

A loop of x86-64 that only loads, compares and branches, at addresses that it does not change, ends when another thread,
process or device writes what it reads; so does one that pauses between (PAUSE, Intel SDM vol. 2: "spin-wait loop
hint"). Whatever else a loop has, such as a store, arithmetic or a call, makes it one that may work: then nothing is
said, as on other processors. Encodings: Intel SDM vol. 2, chapter 2 and appendix A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from seatrial.model.frozen import Frozen

CODE_BEFORE = 64
"""Bytes of code before a sampled address; `native/code_samples.h`."""
_MOST_INSTRUCTIONS = 32
_ADDRESSES = frozenset((0x8D,))  # LEA
_LOADS = frozenset((0x8A, 0x8B, 0x63, 0x1B6, 0x1B7, 0x1BE, 0x1BF))  # MOV, MOVSXD, MOVZX, MOVSX
_TESTS = frozenset((0x38, 0x39, 0x3A, 0x3B, 0x84, 0x85))  # CMP, TEST
_MOVES = frozenset((0x88, 0x89))  # MOV to a register
_MASKS = frozenset((0x20, 0x21, 0x22, 0x23))  # AND of registers, ...
_COUNTS = frozenset((0x00, 0x01, 0x02, 0x03, 0x28, 0x29, 0x2A, 0x2B))  # ... ADD, SUB
_CLEARS = frozenset((0x30, 0x31, 0x32, 0x33))  # XOR of a register with itself
_IMMEDIATE = {0x80: 1, 0x81: 4, 0x83: 1, 0xF6: 1, 0xF7: 4, 0xC0: 1, 0xC1: 1}
_SHORT_WITH_AL = {0x3C: 1, 0x3D: 4, 0xA8: 1, 0xA9: 4, 0x24: 1, 0x25: 4}  # CMP, TEST, AND of AL or EAX
_AND, _CMP, _TEST, _ADD, _SUB = 4, 7, 0, 0, 5
_RSP, _NO_BASE = 4, 5


class Instruction(Frozen):
    """`target` of a branch. `reads` memory at an address made of the registers `base`; `writes`: the register that
    changes; `copies`: to the value of this register, `is_new`: to one without its own. `counts`: by what it was."""

    length: int
    target: int | None = None
    is_branch: bool = False
    is_pause: bool = False
    reads: bool = False
    counts: bool = False
    base: frozenset[int] = frozenset()
    writes: int | None = None
    copies: int | None = None
    is_new: bool = False


def decoded(code: bytes, at: int) -> Instruction | None:
    """The instruction at an index of the code; None if it is not among those that a waiting loop may have."""
    try:
        return _decoded(code, at)
    except IndexError:
        return None


def _decoded(code: bytes, start: int) -> Instruction | None:
    at, rex, is_word, is_repeated = start, 0, False, False
    while code[at] in (0x66, 0xF3, 0x2E, 0x3E):
        is_word, is_repeated = is_word or code[at] == 0x66, is_repeated or code[at] == 0xF3
        at += 1
    if code[at] & 0xF0 == 0x40:
        rex = code[at]
        at += 1
    opcode = code[at]
    at += 1
    if opcode == 0x0F:
        opcode = 0x100 | code[at]
        at += 1
    if opcode == 0x90 and not rex:
        return Instruction(at - start, is_pause=is_repeated)
    if opcode & 0xF0 == 0x70 or opcode == 0xEB:
        return _branch(code, start, at, 1)
    if opcode & 0x1F0 == 0x180 or opcode == 0xE9:
        return _branch(code, start, at, 4)
    if opcode in _SHORT_WITH_AL:
        size = 2 if is_word and _SHORT_WITH_AL[opcode] == 4 else _SHORT_WITH_AL[opcode]
        return Instruction(at + size - start, writes=0 if opcode in (0x24, 0x25) else None)
    if opcode & 0xF8 == 0xB8 and opcode < 0x100:  # MOV register, number
        size = 8 if rex & 8 else 2 if is_word else 4
        return Instruction(at + size - start, writes=opcode & 7 | (rex & 1) << 3, is_new=True)
    return _with_operand(code, start, at, opcode, rex, is_word=is_word)


def _branch(code: bytes, start: int, at: int, size: int) -> Instruction | None:
    if at + size > len(code):
        return None
    distance = int.from_bytes(code[at : at + size], "little", signed=True)
    return Instruction(at + size - start, target=at + size + distance, is_branch=True)


def _with_operand(code: bytes, start: int, at: int, opcode: int, rex: int, *, is_word: bool) -> Instruction | None:
    """An instruction with a ModR/M byte."""
    mode, field, low = code[at] >> 6, code[at] >> 3 & 7, code[at] & 7
    register, operand = field | (rex & 4) << 1, low | (rex & 1) << 3
    at += 1
    base: set[int] = set()
    if mode != 3:
        at, base = _address(code, at, mode, low, rex)
    is_memory = mode != 3
    size = _IMMEDIATE.get(opcode, 0)
    if opcode in (0xF6, 0xF7) and field != _TEST:
        return None
    length = at + (2 if is_word and size == 4 else size) - start
    if opcode == 0x11F:  # NOP
        return Instruction(length)
    if opcode in _LOADS:
        copied = None if is_memory else operand
        return Instruction(length, reads=is_memory, base=frozenset(base), writes=register, copies=copied, is_new=True)
    if opcode in _TESTS or (opcode in (0x80, 0x81, 0x83) and field == _CMP) or opcode in (0xF6, 0xF7):
        return Instruction(length, reads=is_memory, base=frozenset(base))
    if is_memory:
        return Instruction(length, counts=True, writes=register) if opcode in _ADDRESSES else None
    if opcode & 0x1F0 == 0x190:  # SETcc
        return Instruction(length, writes=operand)
    if opcode in _MOVES:
        return Instruction(length, writes=operand, copies=register, is_new=True)
    if opcode in (0x80, 0x81, 0x83) and field == _AND:
        return Instruction(length, writes=operand)
    if opcode in _CLEARS and register == operand:
        return Instruction(length, writes=operand, is_new=True)
    if opcode in _MASKS:
        return Instruction(length, writes=register if opcode & 2 else operand)
    if opcode in _COUNTS or (opcode in (0x80, 0x81, 0x83) and field in (_ADD, _SUB)):
        return Instruction(length, counts=True, writes=register if opcode & 2 and opcode < 0x80 else operand)
    if opcode in (0xFE, 0xFF) and field <= 1:  # INC, DEC
        return Instruction(length, counts=True, writes=operand)
    return None


def _address(code: bytes, at: int, mode: int, low: int, rex: int) -> tuple[int, set[int]]:
    """Behind the address of an operand in memory, and the registers that it is made of."""
    base: set[int] = set()
    displacement = {0: 0, 1: 1, 2: 4}[mode]
    if low == _RSP:  # with SIB byte
        index, low = code[at] >> 3 & 7 | (rex & 2) << 2, code[at] & 7
        at += 1
        if index != _RSP:
            base.add(index)
    if mode == 0 and low == _NO_BASE:
        displacement = 4  # an address in the code, or a number
    else:
        base.add(low | (rex & 1) << 3)
    return at + displacement, base


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
