"""Benchmarks that other tools made: what their result files tell (`seatrial import`). None of them is run from here."""
