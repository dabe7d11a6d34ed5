"""Rendezvous, ports and the network between hosts."""

from __future__ import annotations

import os
import signal
import time

import sandbox
from lab import Hit, Lab, Truth, fault

from faults.common import FIX, ONE_MINUTE, fit, pretrain


@fault("c148", "port-in-use", "another process holds the rendezvous port", host="gpu04")
def port_in_use(lab: Lab) -> Truth:
    pretrain(lab, 2)
    other = lab.start("exec python -m http.server 29500 --bind 0.0.0.0")
    time.sleep(3)
    lab.torchrun(2, "pretrain.py --train-iters 300", options="--nnodes 1 --master-addr gpu04 --master-port 29500")
    os.kill(other.pid, signal.SIGKILL)
    lab.keep("job.log")
    return Truth(
        "failed", "connection-error", "config-error", FIX, (Hit("job.log", "EADDRINUSE"),),
        must_mention=(("29500", "port"), ("in use", "EADDRINUSE")), must_not=("network-error", "node-failure"),
        why="Port 29500 was taken by another program of the host.",
    )  # fmt: skip


@fault("c149", "missing-node", "one of two nodes never starts: the rendezvous times out", host="login")
def missing_node(lab: Lab) -> Truth:
    first, _ = sandbox.nodes(["cn017", "cn018"])
    pretrain(lab, 4)
    options = "--nnodes 2 --rdzv-backend c10d --rdzv-endpoint cn017:29400 --rdzv-id 88213 --rdzv-conf join_timeout=60"
    lab.torchrun(2, "pretrain.py --train-iters 300", "cn017.log", options, node=first)
    lab.keep("cn017.log")
    return Truth(
        "failed", "connection-error", "config-error", ("fix-and-resubmit", "restart", "escalate"), (Hit("cn017.log", "RendezvousTimeoutError"),),
        also_accept=("launch-failure", "hang"), must_mention=(("rendezvous",),), must_not=("native-crash", "healthy"),
        why="The launcher was started on cn017 only; two nodes were asked for and cn018 never joined within 60 s.",
    )  # fmt: skip


@fault(
    "c150",
    "link-down",
    "the switch port of one node goes down in training",
    "hardware",
    "cascade",
    "misleading",
    host="login",
)
def link_down(lab: Lab) -> Truth:
    both = sandbox.nodes(["cn017", "cn018"])
    pretrain(lab, 4)
    options = "--nnodes 2 --rdzv-backend static --master-addr cn017 --master-port 29500 --node-rank {}"
    script = "pretrain.py --train-iters 20000 --log-interval 10 --eval-interval 500 --distributed-timeout-minutes 1"
    runs = [lab.start_torchrun(2, script, f"{n.name}.log", options.format(i), node=n) for i, n in enumerate(both)]
    lab.wait_for("cn018.log", r"iteration +350/")
    sandbox.sh("ip", "link", "set", "swp2", "down")
    lab.finish(*runs, timeout=600)
    for node in both:
        lab.keep(f"{node.name}.log")
    lab.keep_kernel("switch-leaf1.dmesg")
    return Truth(
        "failed", "network-error", "network-failure", ("restart-excluding", "escalate", "restart"),
        (Hit("switch-leaf1.dmesg", "entered disabled state", "last"), Hit("cn017.log", "Timed out waiting 60000ms"), Hit("cn018.log", "Timed out waiting 60000ms")),
        also_outcome=("hung",), also_accept=("nccl-timeout",), nodes=("cn018",), must_mention=(("swp2", "link", "network", "port"),), must_not=("host-out-of-memory", "native-crash"),
        why="Port swp2 (cn018) went down; from then on no byte passes between the nodes and every rank times out after 60 s.",
    )  # fmt: skip


@fault(
    "c151", "wrong-interface", "the collective library is told an interface that the node does not have", host="cn-112"
)
def wrong_interface(lab: Lab) -> Truth:
    pretrain(lab, 2)
    lab.torchrun(2, "pretrain.py --train-iters 300", env={"GLOO_SOCKET_IFNAME": "ib0"})
    lab.keep("job.log")
    return Truth(
        "failed", "network-error", "config-error", FIX, (Hit("job.log", "ib0"),),
        also_accept=("connection-error", "runtime-error"), ranks=(0, 1), must_mention=(("ib0", "GLOO_SOCKET_IFNAME"),), must_not=("node-failure",),
        why="GLOO_SOCKET_IFNAME=ib0, and there is no ib0.",
    )  # fmt: skip


@fault("c152", "unknown-host", "the rendezvous host's name cannot be resolved", split="test", host="cn-112")
def unknown_host(lab: Lab) -> Truth:
    fit(lab, *ONE_MINUTE)
    base = {"MASTER_ADDR": "cn-099-ib", "MASTER_PORT": "29511", "WORLD_SIZE": "2"}
    runs = [
        lab.start("exec python -u train.py config.yaml", f"rank{r}.log", env=base | {"RANK": str(r)}) for r in range(2)
    ]
    lab.finish(*runs)
    for r in range(2):
        lab.keep(f"rank{r}.log")
    return Truth(
        "failed", "connection-error", "config-error", FIX, (Hit("rank0.log", "cn-099-ib"), Hit("rank1.log", "cn-099-ib")),
        also_accept=("network-error",), must_mention=(("cn-099-ib",),), must_not=("node-failure",),
        why="MASTER_ADDR names a host that does not exist.",
    )  # fmt: skip
