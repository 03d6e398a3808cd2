"""Numbers as programs print them."""

from __future__ import annotations


def half_unit(token: str) -> float:
    """Half a unit in the last printed place of a number: its largest rounding error."""
    mantissa, _, exponent = token.lower().partition("e")
    if float(mantissa) == 0:  # "0.0e14" is as exact as "0.0"
        exponent = ""
    decimals = len(mantissa.partition(".")[2])
    return float(0.5 * 10.0 ** (int(exponent or 0) - decimals))
