"""imported.google-benchmark-json: functions that Google Benchmark timed."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import (
    count_parameter,
    given_limit,
    imported,
    rate_figure,
    text_parameter,
    time_figure,
)

BENCHMARK = imported(
    "google-benchmark-json",
    "Google Benchmark",
    "How long did this function take?",
    (
        text_parameter("name", "the benchmark, as named in the program"),
        count_parameter("threads", "threads that run it concurrently"),
        text_parameter("executable", "the program"),
    ),
    (
        time_figure("real_time", "one iteration, wall time"),
        time_figure("cpu_time", "one iteration, CPU time"),
        # The bytes may come from a cache, so only a limit that the user gives applies.
        rate_figure("bytes_per_second", "B/s", "bytes that the program counts", given_limit("B/s")),
        rate_figure("items_per_second", "op/s", "items that the program counts"),
    ),
)
