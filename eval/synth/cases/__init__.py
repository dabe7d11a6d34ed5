"""The cases, a few a module."""
