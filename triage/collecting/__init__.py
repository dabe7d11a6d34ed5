"""Collects what a hang needs from every node of a job into a folder; see docs/hang-collect.md for what lies where.

Nodes need Python 3.6 and nothing else: what runs on them (on_node) is sent along.
"""

from triage.collecting.ask import Collected, Wanted, collect

__all__ = ["Collected", "Wanted", "collect"]
