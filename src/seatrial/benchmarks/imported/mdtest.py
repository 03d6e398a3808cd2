"""imported.mdtest: operations on files and directories per second, by mdtest."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, imported, rate_figure

_OPERATIONS = {
    "directory": ("create", "stat", "rename", "remove"),
    "file": ("create", "stat", "read", "rename", "remove"),
    "tree": ("create", "remove"),
}

BENCHMARK = imported(
    "mdtest",
    "mdtest",
    "How many operations on files and directories per second did mdtest reach?",
    (
        count_parameter("items", "files and directories of all processes, as planned"),
        count_parameter("nodes", "hosts"),
        count_parameter("ranks", "processes"),
    ),
    tuple(
        rate_figure(f"{kind}_{operation}", "op/s", f"{operation} of all processes, mean of the iterations ({kind})")
        for kind, operations in _OPERATIONS.items()
        for operation in operations
    ),
)
