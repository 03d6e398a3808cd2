"""The native sources that were last compiled by every compiler, for every architecture and every generation of GPUs.

Tests marked `portability` run only where the sources differ from these: `make portability` runs them and writes the
stamp.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_STAMP = _ROOT / "tests" / "data" / "native_sources.sha256"
_SUFFIXES = (".cpp", ".hpp", ".c", ".h", ".cl")
_TESTS = ("test_native_portability.py", "test_gpu_programs.py", "test_gpu_cuda_text.py", "made_up_blas.py")


def native_sources() -> str:
    """The hash of the sources, their names, and the tests that compile them."""
    sources = [path for path in (_ROOT / "src").rglob("*") if path.suffix in _SUFFIXES]
    sources += [_ROOT / "tests" / "benchmarks" / name for name in _TESTS]
    digest = hashlib.sha256()
    for path in sorted(sources):
        digest.update(f"{path.relative_to(_ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return digest.hexdigest()


def is_compiled_everywhere() -> bool:
    """Whether the stamp is that of the present sources."""
    return _STAMP.exists() and _STAMP.read_text(encoding="ascii").strip() == native_sources()


if __name__ == "__main__":
    _STAMP.write_text(native_sources() + "\n", encoding="ascii")
