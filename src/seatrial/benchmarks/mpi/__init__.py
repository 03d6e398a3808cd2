"""Benchmarks of message passing between ranks."""
