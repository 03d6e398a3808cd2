"""Files in which the kernel states values: read once, in a few microseconds."""

from __future__ import annotations

import os

_MOST_BYTES = 1 << 16


def kernel_text(path: str | os.PathLike[str]) -> str:
    """The text of such a file; "" if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return ""
    try:
        return os.read(descriptor, _MOST_BYTES).decode("utf-8", "surrogateescape")
    except OSError:
        return ""
    finally:
        os.close(descriptor)
