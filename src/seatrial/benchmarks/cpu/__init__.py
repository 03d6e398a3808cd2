"""Processor cores: arithmetic, and communication between cores."""
