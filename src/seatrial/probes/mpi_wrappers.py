"""The C text of the profiler's wrappers, from the table of MPI's functions.

Every function that returns an error code has `MPI_X` and `PMPI_X`: the C bindings that Fortran's call are the one kind
in MPICH and the other in Open MPI, and a thread-local depth counts the outermost. So what a call carries is told in one
place; the wrappers of Fortran bindings only keep the program's call site.
"""

from __future__ import annotations

from seatrial.probes.mpi_functions import Function, functions
from seatrial.probes.mpi_trace_calls import Traced, traced
from seatrial.probes.mpi_traffic import Traffic, meets_all, traffic_of

_OPENERS = {
    "MPI_Init": "seatrial_opened(); seatrial_settle_barriers();",
    "MPI_Init_thread": "seatrial_opened(); seatrial_settle_barriers();",
    "MPI_Session_init": "seatrial_opened_session(session);",
}
"""The calls that begin MPI: there is nothing to count into before them."""

_LEFT_ALONE = frozenset({"MPI_Pcontrol", "MPI_Get_version", "MPI_Get_library_version"})
"""The first takes arguments of any number and kind, for other tools; the others may be called at any time, and tell
nothing of the time."""

_LOOKED_UP = frozenset({"MPI_Initialized", "MPI_Finalized"})
"""With dlsym programs find out by them whether a library of MPI is loaded."""


def wrapped() -> tuple[tuple[int, Function], ...]:
    """The functions that have wrappers, each with its number in slots. Timers, conversions of handles, what computes
    with addresses, and MPI_T, which may be called before MPI_Init, have none."""
    return tuple(
        (number, function)
        for number, function in enumerate(functions(), 1)
        if function.returns_error and function.name not in _LEFT_ALONE and not function.name.startswith("MPI_T_")
    )


def fortran_names(function: Function) -> tuple[str, ...]:
    """The symbols of its Fortran bindings, with the underscore that gfortran, flang, ifx and nvfortran add: mpif.h and
    `use mpi`, `use mpi_f08` of Open MPI, and the two of MPICH, with descriptors of buffers and without."""
    if not function.has_fortran:
        return ()
    lower = function.base.lower()
    if function.is_large:
        return (f"{lower}_f08ts_large_", f"{lower}_f08_large_", f"{lower}_c_f08_")
    return (f"{lower}_", f"{lower}_f08_", f"{lower}_f08ts_")


def wrapper_text() -> str:
    """One translation unit, to be compiled with the folder of the profiler's headers on the path."""
    bindings = [(name, function) for _, function in wrapped() for name in fortran_names(function)]
    names = [name for _, function in wrapped() for name in (function.name, f"P{function.name}")]
    names += [name for name, _ in bindings]
    parts = [
        '#include "wrapper.h"\n',
        "const char* const seatrial_names[] = {" + ", ".join(f'"{name}"' for name in names) + "};",
        f"seatrial_function seatrial_found[{len(names)}];\n",
    ]
    most = max(len(function.parameters) for _, function in wrapped()) + 6
    parts += [f"typedef word (*function_{n})({_declared(['word'] * n)});" for n in range(most + 1)]
    for width, is_large in ((4, False), (8, True)):
        number = "seatrial_wide" if is_large else "seatrial_narrow"
        parts.append(f"\n#undef N\n#undef W\n#define N {number}\n#define W {width}\n")
        parts += [
            _wrapper(call, 2 * place, function)
            for place, (call, function) in enumerate(wrapped())
            if function.is_large == is_large
        ]
    parts += _unnamed()
    parts += [_binding(2 * len(wrapped()) + place, name, function) for place, (name, function) in enumerate(bindings)]
    return "\n".join(parts)


def has_name(function: Function) -> bool:
    """Whether the wrapper may have the function's name (native/profiler/rebind.h)."""
    return not (function.is_newer or function.name in _LOOKED_UP)


def _unnamed() -> list[str]:
    """The wrappers without a name of their own, by name."""
    names = sorted(
        name for _, function in wrapped() if not has_name(function) for name in (function.name, f"P{function.name}")
    )
    rows = [f'  {{"{name}", (seatrial_function)unnamed_{name}}},' for name in names]
    count = f"const unsigned seatrial_unnamed_count = {len(names)};"
    return ["const struct seatrial_unnamed seatrial_unnamed[] = {", *rows, "};", count]


def _declared(words: list[str]) -> str:
    return ", ".join(words) or "void"


def _wrapper(call: int, place: int, function: Function) -> str:
    """The body, and the two functions that are it."""
    names = [parameter.name for parameter in function.parameters]
    words = [f"word {name}" for name in names]
    kind = "SEATRIAL_EXPORT word " if has_name(function) else "static word unnamed_"
    entries = [
        f"{kind}{name}({_declared(words)}) "
        f"{{ return body_{function.name}({', '.join([str(place + layer), 'SEATRIAL_SITE', *names])}); }}"
        for layer, name in enumerate((function.name, f"P{function.name}"))
    ]
    make = _opener if function.name in _OPENERS else _body
    head = f"SEATRIAL_BODY body_{function.name}({', '.join(['unsigned place', 'word site', *words])}) {{"
    return "\n".join(
        [
            *_traced_body(call, function, names),
            *_split_body(call, function, names),
            head,
            *make(call, function, names),
            "}",
            *entries,
            "",
        ]
    )


def _body(call: int, function: Function, names: list[str]) -> list[str]:
    return [
        _next(names),
        "  if (!seatrial_enter()) {",
        "    site = seatrial_enter_slowly(site);",
        *_if_uncounted(function, names),
        *_if_traced(function, names),
        *_if_split(function, names),
        "  }",
        *_counted(call, function, names),
    ]


def _next(names: list[str]) -> str:
    return f"  const function_{len(names)} next = (function_{len(names)})seatrial_next(place);"


def _comm(function: Function) -> str | None:
    """The communicator that a call is made on."""
    return next((p.name for p in function.parameters if p.kind == "comm" and not p.is_written and not p.is_array), None)


def _counted(
    call: int, function: Function, names: list[str], told: Traced | None = None, is_split: bool = False
) -> list[str]:
    traffic = traffic_of(function.base)
    comm = _comm(function)
    return [
        *([f"  {traffic.before}"] if traffic.before else []),
        "  const uint64_t begin = seatrial_ticks();",
        *([f"  const uint64_t met = seatrial_meet({comm});"] if is_split else []),
        f"  const word returned = next({', '.join(names)});",
        "  const uint64_t end = seatrial_ticks();",
        *_after(call, traffic, comm, told, is_split),
        "  return returned;",
    ]


def _after(call: int, traffic: Traffic, comm: str | None, told: Traced | None, is_split: bool) -> list[str]:
    kind = "0" if comm is None else f"seatrial_comm_kind({comm})"
    statements = traffic.after
    if told is not None:
        statements = f"{statements} {told.statements}".strip()
        how = "SEATRIAL_ALWAYS" if told.always else "SEATRIAL_IF_TOLD"
    bytes_ = "bytes" if statements else "0"
    failed = traffic.failed
    if traffic.attends:  # what failed must not be asked about its communicator
        statements = f"kind = seatrial_attend({comm}); {statements}"
        failed = f"kind = {kind}; {failed}"
        kind = "kind"
    after = ["  uint64_t kind;"] if traffic.attends else []
    after += ["  uint64_t bytes = 0;", f"  if (SEATRIAL_LIKELY((int)returned == 0)) {{ {statements} }}"]
    after += [f"  else {{ {failed} }}"] if failed else []
    return [
        *(after if statements else []),
        *([f"  seatrial_trace_call({call}, {how}, begin, end);"] if told is not None else []),
        *([f"  if (met != 0) seatrial_split({call}, {kind}, {bytes_}, begin, met, end);"] if is_split else []),
        f"  seatrial_leave({call}, {kind}, {bytes_}, site, begin, end);",
        *(["  seatrial_deliver();"] if "seatrial_closed" in statements else []),
    ]


def _if_uncounted(function: Function, names: list[str]) -> list[str]:
    meets = f"seatrial_meet_uncounted({_comm(function)}); " if meets_all(function.base) else ""
    return [f"    if (site == 0) {{ {meets}return next({', '.join(names)}); }}"]


def _if_split(function: Function, names: list[str]) -> list[str]:
    if not meets_all(function.base):
        return []
    return [
        f"    if (seatrial_barrier_every != 0) return split_{function.name}({', '.join(['place', 'site', *names])});"
    ]


def _split_body(call: int, function: Function, names: list[str]) -> list[str]:
    """The body where waiting is told apart, entered already."""
    if not meets_all(function.base):
        return []
    return _apart("split", function, names, _counted(call, function, names, is_split=True))


def _apart(prefix: str, function: Function, names: list[str], statements: list[str]) -> list[str]:
    """A body that is seldom taken: apart, so that the other keeps no argument for it."""
    declared = ", ".join(["unsigned place", "word site", *(f"word {name}" for name in names)])
    return [
        f"static __attribute__((noinline, cold)) word {prefix}_{function.name}({declared}) {{",
        _next(names),
        *statements,
        "}",
    ]


def _if_traced(function: Function, names: list[str]) -> list[str]:
    if traced(function.base) is None or function.name in _OPENERS:
        return []
    return [f"    if (seatrial_is_traced()) return traced_{function.name}({', '.join(['place', 'site', *names])});"]


def _traced_body(call: int, function: Function, names: list[str]) -> list[str]:
    """The body while a trace is written, entered already."""
    told = traced(function.base)
    if told is None or function.name in _OPENERS:
        return []
    return _apart("traced", function, names, _counted(call, function, names, told))


def _opener(call: int, function: Function, names: list[str]) -> list[str]:
    asked = f"next({', '.join(names)})"
    return [
        f"  const function_{len(names)} next = (function_{len(names)})seatrial_next(place);",
        "  const uint32_t where = seatrial_here.where;",
        f"  if (where == SEATRIAL_INSIDE) return {asked};",
        "  seatrial_here.where = SEATRIAL_INSIDE;",
        "  const uint64_t begin = seatrial_ticks();",
        f"  const word returned = {asked};",
        "  const uint64_t end = seatrial_ticks();",
        f"  if ((int)returned == 0) {{ {_OPENERS[function.name]} }}",
        "  seatrial_here.where = where;",
        "  site = seatrial_enter_slowly(site);",
        f"  if (site != 0) seatrial_leave({call}, 0, 0, site, begin, end);",
        "  return returned;",
    ]


def _binding(place: int, name: str, function: Function) -> str:
    """Passes on its arguments, the error code behind them, and the hidden lengths of strings."""
    n = len(function.parameters) + 1 + sum(parameter.kind == "string" for parameter in function.parameters)
    names = [f"a{i}" for i in range(n)]
    asked = f"((function_{n})seatrial_next({place}))({', '.join(names)})"
    return "\n".join(
        [
            f"SEATRIAL_EXPORT word {name}({_declared([f'word {word}' for word in names])}) {{",
            f"  if (!seatrial_enter_binding(SEATRIAL_SITE)) return {asked};",
            f"  const word returned = {asked};",
            "  seatrial_leave_binding();",
            "  return returned;",
            "}",
        ]
    )
