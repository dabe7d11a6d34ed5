"""Watches a running job: what its processes, logs and GPUs do becomes a state, told in words. The judge is pure, the loop is not."""
