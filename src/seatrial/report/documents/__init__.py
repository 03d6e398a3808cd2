"""Command output as JSON documents."""
