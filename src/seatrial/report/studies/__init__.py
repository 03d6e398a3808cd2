"""The text about studies for page, terminal and documents, and the sections of the page that show it."""
