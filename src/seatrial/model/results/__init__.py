"""What was measured: records, samples, outcomes and figures."""
