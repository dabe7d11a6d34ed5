"""The faults, by kind; importing this package registers them all."""

from faults import batch, data, distributed, exceptions, kills

__all__ = ["batch", "data", "distributed", "exceptions", "kills"]
