"""Generates the C source of the profiler's wrappers from the table of MPI functions.

Every function that returns an error code gets wrappers for `MPI_X` and `PMPI_X`: Fortran bindings call the first in one
of MPICH and Open MPI, and the second in the other; a thread-local depth selects the outermost call. So a call is
counted once; the wrappers of Fortran bindings only record the program's call site.

Frequently called functions have their body inlined in both wrappers, so that only MPI is called. The others share one
body, which reduces compile time; so do their Fortran bindings, by the number of arguments.
"""

from __future__ import annotations

from collections.abc import Sequence

from seatrial.profiler.capture.functions import Function, functions
from seatrial.profiler.merge.bound import is_poll
from seatrial.profiler.tables.traffic import Traffic, is_blocking_collective, traffic_of
from seatrial.profiler.trace.calls import Traced, traced

_OPENERS = {
    "MPI_Init": "seatrial_opened(); seatrial_agree_on_barriers();",
    "MPI_Init_thread": "seatrial_opened(); seatrial_agree_on_barriers();",
    "MPI_Session_init": "seatrial_opened_session(session);",
}
"""The calls that initialize MPI: before them there is no table."""

_OFTEN = frozenset(
    f"MPI_{name}"
    for name in (
        *("Probe", "Iprobe", "Parrived", "Pready", "Pready_list", "Pready_range", "Get_count", "Get_elements"),
        *("Request_get_status", "Test_cancelled", "Initialized", "Finalized", "Pack", "Unpack", "Reduce_local"),
        *("Comm_rank", "Comm_size", "Comm_get_attr", "Type_size", "Type_get_extent"),
        *("Win_flush", "Win_flush_all", "Win_flush_local", "Win_flush_local_all", "Win_sync", "Win_fence"),
        *("Win_lock", "Win_lock_all", "Win_unlock", "Win_unlock_all"),
        *("Win_post", "Win_start", "Win_complete", "Win_wait", "Win_test"),
    )
)
"""Functions that programs may call as often as they communicate, besides those that move data."""

_LEAVE_ASKING = "seatrial_leave_asking"  # Counts a call that asks if something is complete.

_UNITS = 8  # Translation units of the wrappers, which are compiled in parallel.

_OWN = ("unsigned place", "word site")
"""Parameters of a body after the call's arguments, which thus stay in their registers."""
_PLAIN = (*_OWN, "unsigned call", "word comm")

_NOT_WRAPPED = frozenset({"MPI_Pcontrol", "MPI_Get_version", "MPI_Get_library_version"})
"""The first takes any number and kind of arguments, for other tools; the others may be called before MPI_Init, and
their time does not count."""

_LOOKED_UP = frozenset({"MPI_Initialized", "MPI_Finalized"})
"""Programs look these up with dlsym to find out whether an MPI library is loaded, and which."""


def wrapped() -> tuple[tuple[int, Function], ...]:
    """The functions with wrappers, each with its number in slots. Timers, handle conversions, address arithmetic, and
    MPI_T, which may be called before MPI_Init, have none."""
    return tuple(
        (number, function)
        for number, function in enumerate(functions(), 1)
        if function.returns_error and function.name not in _NOT_WRAPPED and not function.name.startswith("MPI_T_")
    )


def fortran_names(function: Function) -> tuple[str, ...]:
    """The symbols of its Fortran bindings, with the underscore that gfortran, flang, ifx and nvfortran add: mpif.h and
    `use mpi`, `use mpi_f08` of Open MPI, and the two of MPICH, with and without buffer descriptors."""
    if not function.has_fortran:
        return ()
    lower = function.base.lower()
    if function.is_large:
        return (f"{lower}_f08ts_large_", f"{lower}_f08_large_", f"{lower}_c_f08_")
    return (f"{lower}_", f"{lower}_f08_", f"{lower}_f08ts_")


def is_often(function: Function) -> bool:
    """Whether its wrappers have the body inlined. Persistent requests are created rarely and started often; one more
    call is negligible compared with the time of file I/O."""
    if function.base.endswith("_init") or function.base.startswith(("MPI_File_", "MPI_Op_")):
        return False
    return traffic_of(function.base) != Traffic() or function.base in _OFTEN


def wrapper_texts() -> dict[str, str]:
    """Translation units of about equal size by file name, to be compiled with the profiler's headers on the include
    path."""
    wrappers = [(2 * place, call, function) for place, (call, function) in enumerate(wrapped())]
    bindings = list(enumerate(_bindings(), 2 * len(wrappers)))
    most = max(len(function.parameters) for _, function in wrapped()) + 6
    head = [
        '#include "wrapper.h"\n',
        *(f"typedef word (*function_{n})({_declared(['word'] * n)});" for n in range(most + 1)),
        *(f"word seatrial_plain_{n}({', '.join([*['word'] * n, *_PLAIN])});" for n in _plain_widths()),
        *(f"word seatrial_pass_{n}({', '.join([*['word'] * n, *_OWN])});" for n in _passed_widths()),
    ]
    shared = [*(_plain_body(n) for n in _plain_widths()), *(_pass_body(n) for n in _passed_widths())]
    units = {"tables.c": [*_tables(), *shared]}
    for i in range(_UNITS):
        dealt = sorted(wrappers, key=lambda one: (is_often(one[2]), _is_plain(one[2])))[i::_UNITS]
        units[f"wrappers_{i}.c"] = [
            *_of_width(4, "seatrial_narrow", [one for one in dealt if not one[2].is_large]),
            *_of_width(8, "seatrial_wide", [one for one in dealt if one[2].is_large]),
            *(_binding(place, name, function) for place, (name, function) in bindings[i::_UNITS]),
        ]
    return {name: "\n".join([*head, *parts, ""]) for name, parts in units.items()}


def _bindings() -> list[tuple[str, Function]]:
    return [(name, function) for _, function in wrapped() for name in fortran_names(function)]


def _of_width(width: int, number: str, wrappers: Sequence[tuple[int, int, Function]]) -> list[str]:
    """The wrappers of functions with counts of this width in bytes."""
    defined = f"\n#undef N\n#undef W\n#define N {number}\n#define W {width}\n"
    return [defined, *(_wrapper(call, place, function) for place, call, function in wrappers)]


def _tables() -> list[str]:
    names = [name for _, function in wrapped() for name in (function.name, f"P{function.name}")]
    names += [name for name, _ in _bindings()]
    return [
        "\nconst char* const seatrial_names[] = {" + ", ".join(f'"{name}"' for name in names) + "};",
        f"seatrial_function seatrial_found[{len(names)}];\n",
        *_unnamed(),
        *_by_name(),
    ]


def has_name(function: Function) -> bool:
    """Whether the wrapper may have the function's name (profiler/native/rebind.h)."""
    return not (function.is_newer or function.name in _LOOKED_UP)


def _unnamed() -> list[str]:
    """The table of wrappers that do not have the function's name, by that name."""
    wrappers = {
        name: function
        for _, function in wrapped()
        if not has_name(function)
        for name in (function.name, f"P{function.name}")
    }
    names = sorted(wrappers)
    declared = [
        f"word seatrial_unnamed_{name}({_declared(['word'] * len(wrappers[name].parameters))});" for name in names
    ]
    rows = [f'  {{"{name}", (seatrial_function)seatrial_unnamed_{name}}},' for name in names]
    count = f"const unsigned seatrial_unnamed_count = {len(names)};"
    return [*declared, "const struct seatrial_unnamed seatrial_unnamed[] = {", *rows, "};", count]


def _by_name() -> list[str]:
    """The table of the wrappers for programs that look functions up (profiler/native/dlsym.h), by name."""
    numbers = {
        name: (2 * place + layer, function)
        for place, (_, function) in enumerate(wrapped())
        if function.name not in _LOOKED_UP
        for layer, name in enumerate((function.name, f"P{function.name}"))
    }
    declared = [
        f"word {name}({_declared(['word'] * len(function.parameters))});"
        for name, (_, function) in numbers.items()
        if has_name(function)
    ]
    rows = [
        f'  {{"{name}", (seatrial_function){"" if has_name(function) else "seatrial_unnamed_"}{name}, {number}}},'
        for name, (number, function) in sorted(numbers.items())
    ]
    count = f"const unsigned seatrial_by_name_count = {len(rows)};"
    return [*declared, "const struct seatrial_by_name seatrial_by_name[] = {", *rows, "};", count]


def _declared(words: list[str]) -> str:
    return ", ".join(words) or "void"


def _entries(place: int, function: Function, names: list[str], body: str, more: Sequence[str] = ()) -> list[str]:
    """The MPI_ and PMPI_ functions that call the body."""
    words = _declared([f"word {name}" for name in names])
    kind = "SEATRIAL_EXPORT word " if has_name(function) else "word seatrial_unnamed_"
    return [
        f"{kind}{name}({words}) {{ return {body}({', '.join([*names, str(place + layer), 'SEATRIAL_SITE', *more])}); }}"
        for layer, name in enumerate((function.name, f"P{function.name}"))
    ]


def _is_plain(function: Function) -> bool:
    """Whether a call is counted and timed only."""
    is_recorded = traffic_of(function.base) != Traffic() or traced(function.base) is not None
    return not (is_recorded or is_often(function) or function.name in _OPENERS)


def _plain_widths() -> list[int]:
    """The numbers of arguments of plain functions."""
    return sorted({len(function.parameters) for _, function in wrapped() if _is_plain(function)})


def _plain_body(n: int) -> str:
    """The body of plain functions with n arguments."""
    names = [f"a{i}" for i in range(n)]
    kind = "comm == SEATRIAL_NO_COMM ? 0 : seatrial_comm_kind(comm)"
    head = f"word seatrial_plain_{n}({', '.join([*(f'word {name}' for name in names), *_PLAIN])}) {{"
    leave = f"  seatrial_leave(call, {kind}, 0, site, begin, end);"
    return "\n".join([head, _next(names), *_entering(names), "  }", *_timed(names), leave, "  return returned;", "}"])


def _wrapper(call: int, place: int, function: Function) -> str:
    """The body, and the two functions that call it."""
    names = [parameter.name for parameter in function.parameters]
    if _is_plain(function):
        more = [str(call), _comm(function) or "SEATRIAL_NO_COMM"]
        return "\n".join(_entries(place, function, names, f"seatrial_plain_{len(names)}", more))
    make = _opener if function.name in _OPENERS else _body
    how = "SEATRIAL_BODY" if is_often(function) else "SEATRIAL_ONE_BODY"
    words = ", ".join(_words(names))
    lines: list[str] = []
    for prefix, _, statements in _rare_bodies(call, function, names):
        lines += [f"SEATRIAL_ONE_BODY {prefix}_{function.name}({words}) {{", _next(names), *statements, "}"]
    lines += [f"{how} body_{function.name}({words}) {{", *make(call, function, names), "}"]
    return "\n".join([*lines, *_entries(place, function, names, f"body_{function.name}"), ""])


def _body(call: int, function: Function, names: list[str]) -> list[str]:
    recorded = None if is_often(function) else traced(function.base)
    given = ", ".join([*names, "place", "site"])
    return [
        _next(names),
        *(["  bool is_traced = false;"] if recorded is not None else []),
        *_entering(names, _comm(function) if is_blocking_collective(function.base) else None),
        *(["    is_traced = seatrial_is_traced();"] if recorded is not None else []),
        *(
            f"    if ({condition}) return {prefix}_{function.name}({given});"
            for prefix, condition, _ in _rare_bodies(call, function, names)
        ),
        "  }",
        *_counted(call, function, names, recorded, condition="if (is_traced) " if recorded is not None else ""),
    ]


def _next(names: list[str]) -> str:
    return f"  const function_{len(names)} next = (function_{len(names)})seatrial_next(place);"


def _comm(function: Function) -> str | None:
    """The name of the communicator argument of a call."""
    return next((p.name for p in function.parameters if p.kind == "comm" and not p.is_written and not p.is_array), None)


def _applies_operation(function: Function) -> bool:
    """Whether a call may apply a reduction operation of the program: not one-sided ones."""
    kinds = {parameter.kind for parameter in function.parameters}
    return "op" in kinds and "win" not in kinds and not function.base.startswith("MPI_Op_")


def _counted(
    call: int,
    function: Function,
    names: list[str],
    recorded: Traced | None = None,
    *,
    condition: str = "",
    is_split: bool = False,
) -> list[str]:
    """The call, and the statements that count it. `condition`: when it is recorded in the trace."""
    traffic = traffic_of(function.base)
    comm = _comm(function)
    leave = "seatrial_leave" if is_often(function) and recorded is None and not is_split else "seatrial_leave_slowly"
    leave = _LEAVE_ASKING if is_poll(function.base) else leave
    return [
        *(["  const uint64_t entered = seatrial_asks();"] if leave == _LEAVE_ASKING else []),
        *([f"  {traffic.before}"] if traffic.before else []),
        *(["  const uint64_t operated = seatrial_operated;"] if _applies_operation(function) else []),
        *_timed(names, comm if is_split else None),
        *_after(call, function, recorded, condition, is_split, leave),
        "  return returned;",
    ]


def _after(
    call: int, function: Function, recorded: Traced | None, condition: str, is_split: bool, leave: str
) -> list[str]:
    traffic, comm = traffic_of(function.base), _comm(function)
    kind = "0" if comm is None else f"seatrial_comm_kind({comm})"
    statements = traffic.after
    if recorded is not None and recorded.statements:
        statements = f"{statements} {condition}{{ {recorded.statements} }}".strip()
    bytes_ = "bytes" if statements else "0"
    failed = traffic.failed
    if traffic.counts_peers:  # after a failed call the communicator must not be queried
        statements = f"kind = seatrial_set_communicator({comm}); {statements}"
        failed = f"kind = {kind}; {failed}"
        kind = "kind"
    after = ["  uint64_t kind;"] if traffic.counts_peers else []
    after += ["  uint64_t size = 0;"] if traffic.has_size else []
    after += ["  uint64_t bytes = 0;", f"  if (SEATRIAL_LIKELY((int)returned == 0)) {{ {statements} }}"]
    after += [f"  else {{ {failed} }}"] if failed else []
    size = "size" if traffic.has_size else bytes_
    if traffic.completes_several:
        leave, sizes = _sized(leave), f"seatrial_message_bytes(bytes, &waiting), {bytes_}"
    elif traffic.has_size:
        leave, sizes = _sized(leave), "size, bytes"
    else:
        sizes = f"{bytes_}, {bytes_}" if leave == _LEAVE_ASKING else bytes_
    how = "SEATRIAL_ALWAYS" if recorded is not None and recorded.always else "SEATRIAL_IF_RECORDED"
    return [
        *(after if statements else []),
        *([f"  {condition}seatrial_trace_call({call}, {how}, begin, end);"] if recorded is not None else []),
        *([f"  if (met != 0) seatrial_split({call}, {kind}, {size}, begin, met, end);"] if is_split else []),
        *([_operated(call, kind, size)] if _applies_operation(function) else []),
        f"  {leave}({call}, {kind}, {sizes}, site, begin, end{', entered' if leave == _LEAVE_ASKING else ''});",
        *(["  seatrial_deliver();"] if "seatrial_closed" in statements else []),
    ]


def _operated(call: int, kind: str, size: str) -> str:
    count = f"seatrial_count_operation({call}, {kind}, {size}, seatrial_operated - operated);"
    return f"  if (!SEATRIAL_LIKELY(seatrial_operated == operated)) {count}"


def _sized(leave: str) -> str:
    return leave if leave == _LEAVE_ASKING else leave.replace("leave", "leave_sized")


def _entering(names: list[str], met: str | None = None) -> list[str]:
    """The start of a wrapper, up to an open block for further checks. `met`: the communicator whose ranks all make the
    call."""
    meets = f"seatrial_wait_uncounted({met}); " if met else ""
    return [
        "  if (!seatrial_enter()) {",
        "    site = seatrial_enter_slowly(site);",
        f"    if (site == 0) {{ {meets}return next({', '.join(names)}); }}",
    ]


def _timed(names: list[str], met: str | None = None) -> list[str]:
    """The call itself. `met`: the communicator for a barrier before it."""
    return [
        "  const uint64_t begin = seatrial_ticks();",
        *([f"  const uint64_t met = seatrial_wait_at_barrier({met});"] if met else []),
        f"  const word returned = next({', '.join(names)});",
        "  const uint64_t end = seatrial_ticks();",
    ]


def _rare_bodies(call: int, function: Function, names: list[str]) -> list[tuple[str, str, list[str]]]:
    """(prefix of its name, when it is called, statements) of the bodies without the entry check: while a trace is
    written, and the one that separates waiting from transfer. They are separate so that the common one need not keep
    its arguments."""
    found = []
    recorded = traced(function.base)
    if is_often(function) and recorded is not None:
        found.append(("traced", "seatrial_is_traced()", _counted(call, function, names, recorded)))
    if is_blocking_collective(function.base):
        found.append(("split", "seatrial_barrier_every != 0", _counted(call, function, names, is_split=True)))
    return found


def _words(names: list[str]) -> list[str]:
    return [*(f"word {name}" for name in names), *_OWN]


def _opener(call: int, function: Function, names: list[str]) -> list[str]:
    return [
        _next(names),
        "  const uint32_t where = seatrial_thread_state.where;",
        f"  if (where == SEATRIAL_INSIDE) return next({', '.join(names)});",
        "  seatrial_thread_state.where = SEATRIAL_INSIDE;",
        *_timed(names),
        f"  if ((int)returned == 0) {{ {_OPENERS[function.name]} }}",
        "  seatrial_thread_state.where = where;",
        "  site = seatrial_enter_slowly(site);",
        f"  if (site != 0) seatrial_leave_slowly({call}, 0, 0, site, begin, end);",
        "  return returned;",
    ]


def _binding(place: int, name: str, function: Function) -> str:
    """A Fortran binding: it passes on its arguments, the error code after them, and the hidden lengths of strings."""
    names = [f"a{i}" for i in range(_width(function))]
    head = f"SEATRIAL_EXPORT word {name}({_declared([f'word {word}' for word in names])}) {{"
    if _is_whole(function):
        return "\n".join([head, *_passing(names, str(place), "SEATRIAL_SITE"), "}"])
    return f"{head} return seatrial_pass_{len(names)}({', '.join([*names, str(place), 'SEATRIAL_SITE'])}); }}"


def _width(function: Function) -> int:
    """The number of arguments of its Fortran bindings."""
    return len(function.parameters) + 1 + sum(parameter.kind == "string" for parameter in function.parameters)


def _passed_widths() -> list[int]:
    """The numbers of arguments of the bindings that share a body."""
    return sorted({_width(function) for _, function in _bindings() if not _is_whole(function)})


def _is_whole(function: Function) -> bool:
    """Whether its Fortran bindings have their own body."""
    return is_often(function) and not function.is_large


def _pass_body(n: int) -> str:
    """The body of bindings with n arguments."""
    names = [f"a{i}" for i in range(n)]
    return "\n".join([f"word seatrial_pass_{n}({', '.join(_words(names))}) {{", *_passing(names, "place", "site"), "}"])


def _passing(names: list[str], place: str, site: str) -> list[str]:
    n = len(names)
    return [
        f"  const function_{n} next = (function_{n})seatrial_next({place});",
        f"  const bool is_outer = seatrial_enter_binding({site});",
        f"  const word returned = next({', '.join(names)});",
        "  if (is_outer) seatrial_leave_binding();",
        "  return returned;",
    ]
