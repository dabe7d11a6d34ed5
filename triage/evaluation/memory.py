"""The highest memory use of this process while something runs."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")
_CLEAR = Path("/proc/self/clear_refs")
_UNIT = 1 if sys.platform == "darwin" else 1024  # ru_maxrss is in bytes there, in KiB elsewhere
EXACT = "VmHWM, reset before each case"
SO_FAR = "ru_maxrss of the worker: the highest of all cases so far"


class Peak:
    """Resident memory, what was there before included. `source`: how it is measured, EXACT or SO_FAR."""

    def __init__(self) -> None:
        self.source = EXACT if self._reset() else SO_FAR

    def start(self) -> None:
        if self.source == EXACT and not self._reset():
            self.source = SO_FAR

    def mb(self) -> float:
        """MB (2**20 bytes) at the highest since start."""
        if self.source == EXACT:
            for line in _STATUS.read_text().splitlines():
                if line.startswith("VmHWM:"):
                    return int(line.split()[1]) / 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _UNIT / 2**20

    @staticmethod
    def _reset() -> bool:
        try:
            _CLEAR.write_text("5")
            return "VmHWM:" in _STATUS.read_text()
        except OSError:
            return False
