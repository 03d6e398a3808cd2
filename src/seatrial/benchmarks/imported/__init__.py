"""Benchmarks of other tools, read from their result files (`seatrial import`). seatrial does not run them."""
