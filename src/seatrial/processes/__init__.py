"""Starts other programs, all through one guard process, so that none outlives seatrial."""
