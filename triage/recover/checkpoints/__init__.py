"""Which checkpoint a job can go on from: complete across ranks, nothing empty or cut, not being written."""
