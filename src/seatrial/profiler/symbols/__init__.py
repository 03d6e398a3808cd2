"""The functions that addresses of a program belong to."""
