"""Starting programs, and ending them."""
