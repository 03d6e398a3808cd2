"""Records on disk: append-only line files with one writer each, and content-addressed facts written once."""
