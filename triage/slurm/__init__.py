"""What Slurm says of a job: asked by its own read-only commands, in text that all versions from 22.05 on print alike.

The text of `sacct -P` and `scontrol show` has kept its names for ten years, where the shape of `--json` has changed
with each release; what a version does not know is left out of the question (`sacct --helpformat`).
"""
