"""Planted causes and controls, by subject; `bench/diagnosis.py` runs them."""
