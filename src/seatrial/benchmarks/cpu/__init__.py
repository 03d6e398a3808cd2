"""Processor cores: arithmetic and the wires between them."""
