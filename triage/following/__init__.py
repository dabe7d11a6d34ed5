"""Compression of logs while they grow: tails, the stream they become, where it is written, what is learned meanwhile."""
