"""Prints the control variables of an MPI library as one JSON object: `python ask_control_variables.py LIBMPI`.

It runs in a separate process, since a loaded library cannot be unloaded and may crash the process. MPI is not
initialised: the tool information interface (MPI 4.0, chapter 15) works before MPI_Init. The functions are those of the
C interface; handles are passed as pointers, which are large enough for MPICH's integer handles.
"""

import contextlib
import ctypes
import json
import sys
from ctypes import byref, c_int, c_void_p, create_string_buffer

_LONGEST = 1 << 16
_THREAD_SINGLE = 0


def _version(library: ctypes.CDLL) -> str:
    text, length = create_string_buffer(_LONGEST), c_int()
    return text.value.decode("utf-8", "replace") if library.MPI_Get_library_version(text, byref(length)) == 0 else ""


def _items(library: ctypes.CDLL, enumeration: c_void_p) -> list[list[object]]:
    """[value, name] of each item of an enumeration."""
    number, name, length = c_int(), create_string_buffer(_LONGEST), c_int(_LONGEST)
    if not enumeration.value or library.MPI_T_enum_get_info(enumeration, byref(number), name, byref(length)) != 0:
        return []
    items: list[list[object]] = []
    for index in range(number.value):
        value, item, length = c_int(), create_string_buffer(_LONGEST), c_int(_LONGEST)
        if library.MPI_T_enum_get_item(enumeration, index, byref(value), item, byref(length)) == 0:
            items.append([value.value, item.value.decode("utf-8", "replace")])
    return items


def _variables(library: ctypes.CDLL) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = {}
    number = c_int()
    library.MPI_T_cvar_get_num(byref(number))
    for index in range(number.value):
        name, name_length = create_string_buffer(_LONGEST), c_int(_LONGEST)
        text, text_length = create_string_buffer(_LONGEST), c_int(_LONGEST)
        enumeration, datatype = c_void_p(), c_void_p()
        unused = [c_int() for _ in range(3)]
        problem = library.MPI_T_cvar_get_info(
            index,
            name,
            byref(name_length),
            byref(unused[0]),
            byref(datatype),
            byref(enumeration),
            text,
            byref(text_length),
            byref(unused[1]),
            byref(unused[2]),
        )
        if problem == 0:
            entry: dict[str, object] = {
                "items": _items(library, enumeration),
                "text": text.value.decode("utf-8", "replace"),
            }
            found[name.value.decode("utf-8", "replace")] = entry
    return found


def main() -> None:
    """Print {"version": the library's version text, "variables": {name: {"items": ..., "text": ...}}}."""
    library = ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)  # components of Open MPI need its symbols
    version = ""
    with contextlib.suppress(AttributeError):
        version = _version(library)
    provided = c_int()
    if library.MPI_T_init_thread(_THREAD_SINGLE, byref(provided)) != 0:
        sys.exit("MPI_T_init_thread failed")
    print(json.dumps({"version": version, "variables": _variables(library)}))


if __name__ == "__main__":
    main()
