"""How processes ended that are not our children: Linux 6.15 and later tell it through a handle that was opened while they lived."""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from collections.abc import Iterable

from triage.probing.values import Key, Process

_GET_INFO = 0xC040FF0B  # PIDFD_GET_INFO: _IOWR(0xFF, 11, 64 bytes)
_EXIT = 1 << 3  # PIDFD_INFO_EXIT, of the mask that is asked for and answered
_INFO = struct.Struct("=QQ11Ii")  # mask, control group, eleven numbers of the process, exit code
_MOST = 512  # handles


class Exits:
    """Holds a handle of each process that it was shown, up to a bound."""

    def __init__(self) -> None:
        self._handles: dict[Key, int] = {}

    def take(self, processes: Iterable[Process]) -> dict[Key, int]:
        """Of those that were there before and are no more: how they ended, as wait() gives it, where the kernel tells."""
        living = {process.key: process for process in processes}
        ended = {}
        for key in [key for key in self._handles if key not in living]:
            handle = self._handles.pop(key)
            if (status := _status(handle)) is not None:
                ended[key] = status
            os.close(handle)
        for key, process in living.items():
            if key not in self._handles and len(self._handles) < _MOST and process.state not in "ZX":
                with contextlib.suppress(OSError):
                    self._handles[key] = os.pidfd_open(process.pid)
        return ended

    def close(self) -> None:
        for handle in self._handles.values():
            os.close(handle)
        self._handles.clear()


def _status(handle: int) -> int | None:
    asked = bytearray(_INFO.pack(_EXIT, 0, *(0,) * 11, 0))
    try:
        fcntl.ioctl(handle, _GET_INFO, asked)
    except OSError:
        return None
    mask, *_, status = _INFO.unpack(asked)
    return int(status) if mask & _EXIT else None
