"""Prints what a BLAS reports about itself as one JSON object: `python ask_blas.py LIBRARY PREFIX SUFFIX`.

It runs in a separate process, since a loaded library starts threads, cannot be unloaded and may crash the process. The
queries are the libraries' own: OpenBLAS (openblas_get_config, openblas_get_corename), BLIS (bli_info_get_version_str,
bli_arch_query_id, bli_arch_string) and MKL (MKL_Get_Version_String, and MKL_Get_Version with the structure MKLVersion
of mkl_types.h). A library that forwards (FlexiBLAS) loads the one that computes: the files that are mapped then are
asked as well.
"""

import ctypes
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_COMPUTES = re.compile(r"/lib[^/]*(?:openblas|blis|mkl_rt)[^/]*\.so[^/]*$")
_LONGEST = 200


class _MklVersion(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_int),
        ("minor", ctypes.c_int),
        ("update", ctypes.c_int),
        ("status", ctypes.c_char_p),
        ("build", ctypes.c_char_p),
        ("processor", ctypes.c_char_p),
        ("platform", ctypes.c_char_p),
    )


def _found(library: ctypes.CDLL, name: str) -> Callable[..., object] | None:
    """A function with the prefix and suffix of the build, or without."""
    for spelling in (name, f"{sys.argv[2]}{name}{sys.argv[3]}"):
        try:
            return library[spelling]
        except AttributeError:
            continue
    return None


def _text(library: ctypes.CDLL, name: str, *arguments: object) -> str:
    function = _found(library, name)
    if function is None:
        return ""
    function.restype = ctypes.c_char_p  # type: ignore[attr-defined]  # of every C function
    answer = function(*arguments)
    return answer.decode("utf-8", "replace").strip() if isinstance(answer, bytes) else ""


def _of_mkl(library: ctypes.CDLL) -> tuple[str, str]:
    version = ""
    if (function := _found(library, "MKL_Get_Version_String")) is not None:
        text = ctypes.create_string_buffer(_LONGEST)
        function(text, _LONGEST - 1)
        version = text.value.decode("utf-8", "replace").strip()
    processor = b""
    if (function := _found(library, "MKL_Get_Version")) is not None:
        stated = _MklVersion()
        function(ctypes.byref(stated))
        processor = stated.processor or b""
    return version, processor.decode("utf-8", "replace").strip()


def _answers(library: ctypes.CDLL) -> dict[str, str]:
    """{"version": ..., "core": ...}; "" for what it does not report."""
    version = _text(library, "openblas_get_config") or _text(library, "bli_info_get_version_str")
    core = _text(library, "openblas_get_corename")
    if not core and (query := _found(library, "bli_arch_query_id")) is not None:
        core = _text(library, "bli_arch_string", query())
    if not version and not core:
        version, core = _of_mkl(library)
    return {"version": version, "core": core}


def _libraries() -> Iterator[ctypes.CDLL]:
    yield ctypes.CDLL(sys.argv[1])
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = (line.split(maxsplit=5)[5] for line in mapped if len(line.split(maxsplit=5)) == 6)
    for path in sorted({path for path in paths if _COMPUTES.search(path)}):
        yield ctypes.CDLL(path)


def main() -> None:
    """Print {"version": ..., "core": the processor whose kernels it selected}."""
    answers = {"version": "", "core": ""}
    for library in _libraries():
        answers = _answers(library)
        if answers["core"]:
            break
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
