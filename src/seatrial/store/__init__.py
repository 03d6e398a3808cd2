"""Records on disk: append-only line files, one writer each, and facts written once under the hash of their content."""
