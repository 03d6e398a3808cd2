"""imported.nvbandwidth: copies between the host and GPUs, and between GPUs, by nvbandwidth."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import imported, rate_figure, text_parameter, time_figure

BENCHMARK = imported(
    "nvbandwidth",
    "nvbandwidth",
    "How fast are copies between the host and each GPU, and between GPUs?",
    (
        text_parameter("test", "test as named by nvbandwidth, such as host_to_device_memcpy_ce"),
        text_parameter("buffer", "size of the buffers, as stated in the file"),
    ),
    (
        rate_figure("bandwidth", "B/s", "bytes copied for one pair (row, column) of the test's matrix"),
        time_figure("latency", "one access for one pair (row, column) of the test's matrix"),
    ),
)
