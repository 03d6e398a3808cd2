"""Real applications: what a site runs, with inputs that we write and outputs that pure parsers read."""
