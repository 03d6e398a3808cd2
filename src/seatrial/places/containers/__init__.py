"""Containers that programs run in: images, runtimes, and what goes wrong."""
