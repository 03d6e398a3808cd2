"""Benchmarks of GPUs and other devices with their own memory and kernels."""
