"""Completion of the words of a command line, in bash, zsh and fish."""
