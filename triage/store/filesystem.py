"""Does a path lie on a filesystem that several hosts share? Linux only; elsewhere the answer is no."""

from __future__ import annotations

import os
from pathlib import Path

SHARED = frozenset(
    {
        *(
            "9p",
            "afs",
            "beegfs",
            "ceph",
            "cifs",
            "gfs2",
            "glusterfs",
            "gpfs",
            "lustre",
            "nfs",
            "nfs4",
            "ocfs2",
            "orangefs",
        ),
        *("panfs", "pvfs2", "smb3", "smbfs", "wekafs"),
        *("fuse.beegfs", "fuse.ceph", "fuse.glusterfs", "fuse.juicefs", "fuse.quobyte", "fuse.sshfs"),
    }
)


def network_filesystem(path: Path) -> str | None:
    """The type ("nfs4", "lustre") when the path, or the nearest folder above that exists, is on a shared filesystem."""
    try:
        table = Path("/proc/self/mountinfo").read_text("utf-8", "surrogateescape")
    except OSError:
        return None
    kind = type_at(os.path.realpath(path), table)
    return kind if kind in SHARED else None


def type_at(path: str, mountinfo: str) -> str:
    """The filesystem type that /proc/self/mountinfo gives for an absolute path; "" when it tells none."""
    best, kind = -1, ""
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        fields, source = before.split(" "), after.split(" ")
        if len(fields) < 5 or not source[0]:
            continue
        point = _unescape(fields[4]).rstrip("/")
        # A later line wins a tie: it was mounted on top.
        if (path == point or path.startswith(point + "/")) and len(point) >= best:
            best, kind = len(point), source[0]
    return kind


def _unescape(field: str) -> str:
    for code, char in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        field = field.replace(code, char)
    return field
