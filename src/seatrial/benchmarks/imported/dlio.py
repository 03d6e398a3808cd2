"""imported.dlio: how fast a training or evaluation is fed with data, by DLIO."""

from __future__ import annotations

from seatrial.benchmarks.imported.declarations import count_parameter, given_limit, imported, rate_figure, time_figure

BENCHMARK = imported(
    "dlio",
    "DLIO",
    "How fast did DLIO read the data of a training?",
    (
        count_parameter("accelerators", "simulated accelerators"),
        count_parameter("nodes", "hosts"),
        count_parameter("epochs", "epochs"),
    ),
    (
        *(
            figure
            for way, word in (("train", "training"), ("eval", "evaluation"))
            for figure in (
                rate_figure(f"{way}_throughput", "op/s", f"samples per second, mean over the epochs ({word})"),
                rate_figure(f"{way}_io", "B/s", f"bytes of these samples ({word})", given_limit("B/s")),
                rate_figure(f"{way}_utilisation", "1", f"share of the time in which accelerators compute ({word})"),
            )
        ),
        time_figure("checkpoint_save", "mean time to write a checkpoint"),
        time_figure("checkpoint_load", "mean time to read a checkpoint"),
    ),
)
