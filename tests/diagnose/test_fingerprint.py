"""What makes two failures the same one, and what does not."""

from __future__ import annotations

import pytest

from triage.diagnose.fingerprint import fingerprint


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Mar  5 10:00:01 gpu-017 kernel: NVRM: Xid (PCI:0000:4e:00): 48", "Apr 12 11:09:01 gpu-101 kernel: NVRM: Xid (PCI:0000:1a:00): 48"),
        ("[Thu Mar  5 10:00:01 2026] NVRM: Xid 48", "[Fri Dec 26 23:00:01 2025] NVRM: Xid 48"),
        ("node-a: rank 3 lost GPU-1a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d", "node-b: rank 12 lost GPU-9f8e7d6c-aa11-bbcc-ddee-ff0011223344"),
        ("r12i3n4 mlx5_0: link down", "r1i11n8 mlx5_3: link down"),
        ("srun: error: nid001234: task 3: Killed", "srun: error: nid005678: task 44: Killed"),
        ("connect to fe80::1ff:fe23:4567 refused", "connect to fe80::abcd:feee:ffff refused"),
        ("ranks [0, 1, 2] did not join", "ranks [0, 7, 9, 14, 15] did not join"),
        ("at 2026-03-01 10:00:00,123 it failed", "at 2026-03-01T10:00:00 it failed"),
        ("at 10.0.0.1:29500 closed", "at 10.12.0.117:29501 closed"),
        ("shard '/data/a.bin' of /runs/x/7 is short", "shard '/data/zz.bin' of /scratch/y is short"),
        ("tensor at 0x7f00aa has bad flags", "tensor at 0xdeadbeef has bad flags"),
    ],
)  # fmt: skip
def test_the_same_elsewhere(one: str, other: str) -> None:
    nodes = ("node-a", "node-b")
    assert fingerprint("t", "s", one, nodes) == fingerprint("t", "s", other, nodes)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("loss is nan", "loss is inf"),
        ("KeyError: tokens", "KeyError: labels"),
        ("mlx5_0: link down", "mlx5_0: link up"),
        ("dead face", "live face"),
        ("the node failed", "the rack failed"),
    ],
)
def test_another_failure(one: str, other: str) -> None:
    assert fingerprint("t", "s", one, ("a",)) != fingerprint("t", "s", other, ("a",))


def test_the_type_and_the_signature_tell_too() -> None:
    assert len({fingerprint(kind, sign, "x") for kind in "ab" for sign in "ab"}) == 4
