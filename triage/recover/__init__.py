"""Recovery, planned: which nodes to test and drop, where to restart from, what to skip. Nothing here starts a process."""
