"""Compilers, and the programs built with them."""
