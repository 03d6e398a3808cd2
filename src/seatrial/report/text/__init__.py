"""Command output as text for a terminal."""
