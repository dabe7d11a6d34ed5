"""Incident triage for large training and HPC jobs."""

__version__ = "0.1.0"
