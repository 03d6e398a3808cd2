"""Memory: bandwidth and latency."""
