"""Generators of the synthetic labelled cases eval/cases/s*."""
