"""Batch evaluation against labelled cases: run, record, score, compare, report.

A run folder stands alone: `record` reads and writes it, everything else works on its records without any log or model.
"""
