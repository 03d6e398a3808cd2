"""Starts and ends programs."""
