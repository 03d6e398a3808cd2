"""Merges the tables of all ranks into one profile."""
