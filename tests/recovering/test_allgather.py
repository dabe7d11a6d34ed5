"""A real allgather between machines of their own networks, one of which has a broken interface: exactly that one is named."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from triage.recover.node_jobs import Check, Command, by_node
from triage.recover.pairing import World
from triage.recovering.node_test import check_text, run

NODES = tuple(f"10.77.0.{i}" for i in range(11, 17))
BROKEN = NODES[3]

pytestmark = [
    pytest.mark.service,
    pytest.mark.torch,
    pytest.mark.skipif(
        os.geteuid() != 0 or not shutil.which("nsenter") or not shutil.which("ip"), reason="needs root, nsenter and ip"
    ),
]


class Net:
    """A bridge and a network of its own for each node; gone with the processes that hold them."""

    def __init__(self, nodes: Sequence[str]) -> None:
        self.held: dict[str, subprocess.Popen[bytes]] = {}
        self._hold("")
        self.ip("", "link", "add", "br0", "type", "bridge")
        self.ip("", "link", "set", "br0", "up")
        for at, node in enumerate(nodes):
            holder = self._hold(node)
            self.ip("", "link", "add", f"swp{at}", "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
            self.ip("", "link", "set", f"swp{at}", "master", "br0", "up")
            self.ip(node, "link", "set", "lo", "up")
            self.ip(node, "addr", "add", f"{node}/24", "dev", "eth0")
            self.ip(node, "link", "set", "eth0", "up")

    def _hold(self, name: str) -> subprocess.Popen[bytes]:
        ours = Path("/proc/self/ns/net").readlink()
        holder = subprocess.Popen(["unshare", "-n", "sleep", "300"])
        self.held[name] = holder
        for _ in range(200):
            with contextlib.suppress(OSError):
                if Path(f"/proc/{holder.pid}/ns/net").readlink() != ours:
                    return holder
            time.sleep(0.05)
        pytest.skip("this machine makes no network namespaces")

    def ip(self, node: str, *words: str) -> None:
        subprocess.run(self.inside(node, ["ip", *words]), check=True, capture_output=True)

    def inside(self, node: str, argv: Sequence[str]) -> list[str]:
        return ["nsenter", "-t", str(self.held[node].pid), "-n", "--", *argv]

    def close(self) -> None:
        for holder in self.held.values():
            holder.kill()
            holder.wait()


@pytest.fixture
def net() -> Iterator[Net]:
    made = None
    try:
        made = Net(NODES)
        yield made
    except (OSError, subprocess.CalledProcessError):
        if made is None:
            pytest.skip("this machine makes no network namespaces")
        raise
    finally:
        if made:
            made.close()


def test_the_node_with_a_broken_interface_is_named_and_no_other(net: Net, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    source = tmp_path / "check.py"
    source.write_text(check_text())
    net.ip("", "link", "set", f"swp{NODES.index(BROKEN)}", "down")

    def wrap(node: str, argv: Sequence[str]) -> list[str]:
        return net.inside(node, ["env", "GLOO_SOCKET_IFNAME=eth0", "OMP_NUM_THREADS=1", *argv])

    def launch(check: Check, world: World, port: int) -> tuple[Command, ...]:
        return by_node(check, world, port, wrap)

    check = Check("gloo", timeout=9, python=sys.executable, script=(str(source),), options=())
    found, rounds = run(NODES, check, launch)

    assert set(found.faulty) == {BROKEN}, (found, rounds)
    assert set(found.good) == set(NODES) - {BROKEN}
    assert not found.undecided and not found.links
    assert all(ran.gbps for played in rounds for ran in played if ran.passed)
    assert any(ran.said for played in rounds for ran in played if BROKEN in ran.world)
