"""imported.io500: score and phases of IO500."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    given_limit,
    imported,
    rate_figure,
    text_parameter,
)

_BANDWIDTH = ("ior_easy_write", "ior_hard_write", "ior_easy_read", "ior_hard_read")
_OPERATIONS = (
    *(f"mdtest_easy_{name}" for name in ("write", "stat", "delete")),
    *(f"mdtest_hard_{name}" for name in ("write", "stat", "read", "delete")),
    "find",
)

BENCHMARK = imported(
    "io500",
    "IO500",
    "Which score did IO500 give?",
    (
        text_parameter("mode", "standard or extended"),
        count_parameter("ranks", "processes"),
    ),
    (
        rate_figure("score", "1", "square root of bandwidth (GiB/s; old versions: GB/s) x thousands of operations/s"),
        rate_figure("product", "1", "TOTAL of old versions: bandwidth (GB/s) x thousands of operations/s"),
        rate_figure("bandwidth", "B/s", "geometric mean of the phases of IOR", given_limit("B/s")),
        rate_figure("operations", "op/s", "geometric mean of the phases of mdtest and find"),
        *(rate_figure(name, "B/s", "this phase of IOR") for name in _BANDWIDTH),
        *(rate_figure(name, "op/s", "this phase") for name in _OPERATIONS),
    ),
)
