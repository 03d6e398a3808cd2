"""Container images: made from a definition, without a registry and without root where the kernel allows it."""
