"""Differences between the two sides of a comparison: one module for each source."""
