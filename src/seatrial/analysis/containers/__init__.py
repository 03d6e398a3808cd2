"""What a container changes and what it costs, from the records of both sides."""
