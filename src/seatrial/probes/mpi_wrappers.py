"""The C text of the profiler's wrappers, from the table of MPI's functions.

Every function that returns an error code has `MPI_X` and `PMPI_X`: the C bindings that Fortran's call are the one kind
in MPICH and the other in Open MPI, and a thread-local depth counts the outermost. So what a call carries is told in one
place; the wrappers of Fortran bindings only keep the program's call site.
"""

from __future__ import annotations

from seatrial.probes.mpi_functions import Function, functions
from seatrial.probes.mpi_traffic import traffic_of

_OPENERS = {
    "MPI_Init": "seatrial_opened();",
    "MPI_Init_thread": "seatrial_opened();",
    "MPI_Session_init": "seatrial_opened_session(session);",
}
"""The calls that begin MPI: there is nothing to count into before them."""

_LEFT_ALONE = frozenset({"MPI_Pcontrol"})
"""It takes arguments of any number and kind, for other tools."""


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
    parts += [_binding(2 * len(wrapped()) + place, name, function) for place, (name, function) in enumerate(bindings)]
    return "\n".join(parts)


def _declared(words: list[str]) -> str:
    return ", ".join(words) or "void"


def _wrapper(call: int, place: int, function: Function) -> str:
    """The body, and the two functions that are it."""
    names = [parameter.name for parameter in function.parameters]
    words = [f"word {name}" for name in names]
    entries = [
        f"SEATRIAL_EXPORT word {name}({_declared(words)}) "
        f"{{ return body_{function.name}({', '.join([str(place + layer), 'SEATRIAL_SITE', *names])}); }}"
        for layer, name in enumerate((function.name, f"P{function.name}"))
    ]
    make = _opener if function.name in _OPENERS else _body
    head = f"SEATRIAL_BODY body_{function.name}({', '.join(['unsigned place', 'word site', *words])}) {{"
    return "\n".join([head, *make(call, function, names), "}", *entries, ""])


def _body(call: int, function: Function, names: list[str]) -> list[str]:
    traffic = traffic_of(function.base)
    comm = next((p.name for p in function.parameters if p.kind == "comm" and not p.is_written and not p.is_array), None)
    asked = f"next({', '.join(names)})"
    return [
        f"  const function_{len(names)} next = (function_{len(names)})seatrial_next(place);",
        f"  if (!seatrial_enter()) return {asked};",
        f"  const unsigned kind = {'0' if comm is None else f'seatrial_comm_kind({comm})'};",
        *([f"  {traffic.before}"] if traffic.before else []),
        "  const uint64_t begin = seatrial_ticks();",
        f"  const word returned = {asked};",
        "  const uint64_t end = seatrial_ticks();",
        *_after(call, traffic.after),
        "  return returned;",
    ]


def _after(call: int, statements: str) -> list[str]:
    if not statements:
        return [f"  seatrial_leave({call}, kind, 0, site, begin, end);"]
    return [
        "  uint64_t bytes = 0;",
        f"  if ((int)returned == 0) {{ {statements} }}",
        f"  seatrial_leave({call}, kind, bytes, site, begin, end);",
    ]


def _opener(call: int, function: Function, names: list[str]) -> list[str]:
    asked = f"next({', '.join(names)})"
    return [
        f"  const function_{len(names)} next = (function_{len(names)})seatrial_next(place);",
        f"  if (seatrial_here.depth != 0) return {asked};",
        "  seatrial_here.depth = 1;",
        "  const uint64_t begin = seatrial_ticks();",
        f"  const word returned = {asked};",
        "  const uint64_t end = seatrial_ticks();",
        f"  if ((int)returned == 0) {{ {_OPENERS[function.name]} }}",
        "  seatrial_here.depth = 0;",
        f"  if (seatrial_enter()) seatrial_leave({call}, 0, 0, site, begin, end);",
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
            "  seatrial_here.site = 0;",
            "  return returned;",
            "}",
        ]
    )
