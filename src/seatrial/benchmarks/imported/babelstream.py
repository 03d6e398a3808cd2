"""imported.babelstream: memory bandwidth of a processor or GPU by BabelStream's kernels."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    choice_parameter,
    device_memory_limit,
    imported,
    rate_figure,
    size_parameter,
    text_parameter,
)

_ARRAYS = {"copy": 2, "mul": 2, "add": 3, "triad": 3, "dot": 2, "nstream": 4}

BENCHMARK = imported(
    "babelstream",
    "BabelStream",
    "What memory bandwidth did BabelStream's kernels reach?",
    (
        text_parameter("implementation", "programming model, as named in the file"),
        choice_parameter("precision", "precision of the elements", "fp64", "fp32"),
        size_parameter("array_B", "size of each array"),
    ),
    tuple(
        rate_figure(
            name,
            "B/s",
            f"{arrays} elements read or written per array element, as BabelStream counts; best pass",
            device_memory_limit(),
        )
        for name, arrays in _ARRAYS.items()
    ),
)
