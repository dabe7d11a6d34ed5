"""A node's view of a job: its processes and its GPUs, here or on other nodes."""
