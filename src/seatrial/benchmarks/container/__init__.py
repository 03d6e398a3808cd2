"""Benchmarks of containers."""
