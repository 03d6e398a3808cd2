"""Variable names that suggest secrets: their values must not enter records, pages or logs."""

from __future__ import annotations

_PARTS = ("TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "JWT", "AUTH")


def sounds_like_a_secret(name: str) -> bool:
    """Whether the value of an environment variable of this name must be kept private."""
    return any(part in name.upper() for part in _PARTS)
