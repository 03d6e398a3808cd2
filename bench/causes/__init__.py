"""Planted causes and controls, by subject; `bench/planted_causes.py` runs them."""
