"""Batch evaluation: labelled cases through the production pipeline, metrics with intervals, baselines, gate."""
