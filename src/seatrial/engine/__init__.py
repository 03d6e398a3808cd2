"""Runs a plan: prepares programs, makes repeats in random order, judges each, stops when enough is known."""
