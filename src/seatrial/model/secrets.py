"""Names that sound like secrets: their values enter no record, page or log."""

from __future__ import annotations

_PARTS = ("TOKEN", "SECRET", "PASS", "KEY", "CREDENTIAL", "JWT", "AUTH")


def sounds_like_a_secret(name: str) -> bool:
    """Whether the value of an environment variable of this name must not be passed on."""
    return any(part in name.upper() for part in _PARTS)
