"""Traces of calls, as the actions that a simulator replays."""
