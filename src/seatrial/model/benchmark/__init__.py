"""What is measured: benchmarks, their parameters, programs and limits."""
