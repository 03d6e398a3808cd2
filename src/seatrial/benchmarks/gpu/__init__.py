"""Benchmarks of GPUs and other devices with memory and kernels of their own."""
