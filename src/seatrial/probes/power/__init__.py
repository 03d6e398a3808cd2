"""Sensors of power and energy: a source is one file."""
