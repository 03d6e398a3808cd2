"""Where a program runs: this node, a container, a guest, the cluster of this machine."""
