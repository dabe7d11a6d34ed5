"""The effects of recovery: reading checkpoints, running node tests and the steps of a plan."""
