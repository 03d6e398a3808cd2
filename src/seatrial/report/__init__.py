"""Output for people: the page, the text on a terminal, one exporter per format. Nothing here measures or judges."""
