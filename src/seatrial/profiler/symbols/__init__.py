"""Resolves addresses of a program to functions."""
