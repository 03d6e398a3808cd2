"""Benchmarks of files and disks."""
