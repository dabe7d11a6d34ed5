"""What runs on a node, as one text: sent to `python3 -`, so that nodes need no installation.

Only the standard library as of Python 3.6, for the nodes have what they have: annotations stand in quotes.
"""
