"""A cluster on this machine: nodes that are namespaces, shaped links between them, and a real Slurm
(docs/cluster.md)."""
