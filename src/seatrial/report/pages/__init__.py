"""The self-contained HTML page, and what its parts share."""
