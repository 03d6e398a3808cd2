"""Applications and other tools: each is one file, with how its text is read, its figures, and how it is started.

`READER` reads its results, of which `IMPORTED` declares the figures; `BENCHMARK` is the application as seatrial starts
it. The registries of readers (readers.py) and benchmarks (seatrial.benchmarks) find them here by these names.
"""
