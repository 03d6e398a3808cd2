"""Runs a plan: prepares programs, runs repeats in random order, checks each, and stops when results are precise."""
