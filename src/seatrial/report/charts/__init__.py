"""Charts: of one benchmark, of pairs of CPUs, of the whole trial. To add one, write a maker in a separate file.

A maker uses what the figures declare (points, units, directions, roles) and returns nothing if it does not apply.
No maker depends on the name of a benchmark.
"""
