from __future__ import annotations

from pathlib import Path

import pytest

from triage.store.filesystem import SHARED, network_filesystem, type_at

MOUNTS = r"""
22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:2 master:3 - nfs4 fs:/home rw,vers=4.2
31 30 0:41 / /home/ada/scratch rw - lustre 10.0.0.1@o2ib:/scratch rw,flock
32 22 0:42 / /with\040space rw - gpfs fs1 rw
33 22 0:43 / /data rw - autofs auto.data rw
34 33 0:44 / /data rw - nfs4 fs:/data rw
half a line
35 22 0:45 /
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/triage.db", "ext4"),
        ("/home/ada/.local/share/triage/triage.db", "nfs4"),
        ("/home", "nfs4"),
        ("/homes/ada", "ext4"),
        ("/home/ada/scratch/triage.db", "lustre"),
        ("/with space/triage.db", "gpfs"),
        ("/data/triage.db", "nfs4"),
        ("/", "ext4"),
    ],
)
def test_the_longest_mount_point_wins_and_of_two_the_later(path: str, kind: str) -> None:
    assert type_at(path, MOUNTS) == kind


def test_no_table_no_answer() -> None:
    assert type_at("/home/ada", "") == ""


def test_this_machine(tmp_path: Path) -> None:
    assert network_filesystem(tmp_path / "not" / "there.db") in {None, *SHARED}
