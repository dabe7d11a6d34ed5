"""Kernel messages, nvidia-smi tables, kubectl tables, stacks."""

from __future__ import annotations

from collections.abc import Sequence

from synth.kit import Case


class Kernel:
    """A kernel log: `[seconds since boot]` or journal stamps."""

    def __init__(self, c: Case, host: str = "", up: float = 0.0) -> None:
        self.c, self.host = c, host
        self.boot = c.now.timestamp() - (up + c.f(0, 1) if up else c.f(400000, 4000000))

    def __call__(self, text: str, ago: float = 0, thread: str = "") -> str:
        """One line now, or some seconds ago."""
        if self.host:
            return f"{self.c.t('%b %d %H:%M:%S', ago)} {self.host} kernel: {text}"
        at = self.c.now.timestamp() - ago - self.boot
        return f"[{at:12.6f}] {thread}{text}"


def chatter(c: Case, k: Kernel, count: int, span: float) -> list[str]:
    """Harmless kernel lines over the span of seconds before now."""
    kinds = [
        lambda: (
            f"perf: interrupt took too long ({c.n(2500, 6000)} > {c.n(2400, 2499)}), lowering kernel.perf_event_max_sample_rate to {c.n(20, 79) * 1000}"
        ),
        lambda: (
            f"docker0: port {c.n(1, 4)}(veth{c.hex(7)}) entered {c.rng.choice(['blocking', 'disabled', 'forwarding'])} state"
        ),
        lambda: (
            f'audit: type=1400 audit({c.n(1600000000, 1700000000)}.{c.n(100, 999)}:{c.n(10, 900)}): apparmor="STATUS" operation="profile_load" profile="unconfined"'
        ),
        lambda: f"IPv6: ADDRCONF(NETDEV_CHANGE): veth{c.hex(7)}: link becomes ready",
        lambda: f"systemd[1]: Started Session {c.n(100, 9000)} of user root.",
        lambda: f"EXT4-fs (nvme0n1p2): mounted filesystem with ordered data mode. Opts: (null). Quota mode: none.",  # noqa: F541
        lambda: f"nvidia-nvlink: Nvlink Core is being initialized, major device number {c.n(230, 240)}",
        lambda: (
            "mlx5_core 0000:5e:00.0: mlx5_cmd_out_err:803:(pid 2719): ACCESS_REG(0x805) op_mod(0x1) failed, status bad operation(0x2), syndrome (0x5c2e4d), err(-22)"
        ),
        lambda: (
            f"workqueue: drm_fb_helper_damage_work hogged CPU for >10000us {c.n(4, 64)} times, consider switching to WQ_UNBOUND"
        ),
        lambda: (
            f"TCP: request_sock_TCP: Possible SYN flooding on port {c.n(9000, 9999)}. Sending cookies.  Check SNMP counters."
        ),
    ]
    times = sorted((c.f(1, span) for _ in range(count)), reverse=True)
    return [k(c.rng.choice(kinds)(), ago) for ago in times]


def smi(
    c: Case,
    name: str,
    rows: Sequence[tuple[int, str, int, int, int, int]],
    procs: Sequence[tuple[int, int, str, int]] = (),
    driver: str = "535.104.12",
    cuda: str = "12.2",
) -> list[str]:
    """rows: (gpu, bus, temperature, watts, MiB used, utilisation); procs: (gpu, pid, name, MiB)."""
    out = [
        c.t("%a %b %d %H:%M:%S %Y"),
        "+---------------------------------------------------------------------------------------+",
        f"| NVIDIA-SMI {driver:<23} Driver Version: {driver:<12} CUDA Version: {cuda:<5}    |",
        "|-----------------------------------------+----------------------+----------------------+",
        "| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |",
        "| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |",
        "|                                         |                      |               MIG M. |",
        "|=========================================+======================+======================|",
    ]
    for gpu, bus, temp, watts, used, util in rows:
        out += [
            f"| {gpu:3d}  {name:<27}  On | {bus:<16} Off |                    0 |",
            f"| N/A  {temp:3d}C    P0            {watts:4d}W / 700W | {used:6d}MiB / 81559MiB | {util:6d}%      Default |",
            "|                                         |                      |             Disabled |",
            "+-----------------------------------------+----------------------+----------------------+",
        ]
    out += [
        "",
        "+---------------------------------------------------------------------------------------+",
        "| Processes:                                                                            |",
        "|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |",
        "|        ID   ID                                                             Usage      |",
        "|=======================================================================================|",
    ]
    out += [f"| {g:4d}   N/A  N/A {p:10d}      C   {n:<38} {m:7d}MiB |" for g, p, n, m in procs]
    return [*out, "+---------------------------------------------------------------------------------------+"]


def table(rows: Sequence[str], gap: int = 3) -> list[str]:
    """Columns as kubectl aligns them; rows with | between the cells."""
    cells = [r.split("|") for r in rows]
    widths = [max(len(r[i]) for r in cells if i < len(r)) for i in range(max(len(r) for r in cells))]
    return ["".join(v.ljust(widths[i] + gap) for i, v in enumerate(r)).rstrip() for r in cells]


def events(rows: Sequence[str]) -> list[str]:
    """The Events part of `kubectl describe`; rows: type|reason|age|from|message."""
    return [
        "Events:",
        *("  " + r for r in table(["Type|Reason|Age|From|Message", "----|------|----|----|-------", *rows], 4)),
    ]


def describe(
    c: Case,
    name: str,
    *,
    ns: str,
    node: str,
    ip: str,
    labels: Sequence[str],
    status: str,
    container: Sequence[str],
    requests: Sequence[str],
    image: str,
    extra: Sequence[str] = (),
) -> list[str]:
    """The body of `kubectl describe pod`; container: the State.. lines."""
    return [
        f"Name:             {name}",
        f"Namespace:        {ns}",
        "Priority:         0",
        "Service Account:  default",
        f"Node:             {node}",
        f"Start Time:       {c.t('%a, %d %b %Y %H:%M:%S +0000')}",
        f"Labels:           {labels[0]}",
        *(f"                  {v}" for v in labels[1:]),
        "Annotations:      <none>",
        f"Status:           {status}",
        *extra,
        f"IP:               {ip}",
        "Containers:",
        "  pytorch:",
        f"    Container ID:  containerd://{c.hex(64)}" if ip else "    Container ID:",
        f"    Image:         {image}",
        f"    Image ID:      {image.split(':', maxsplit=1)[0]}@sha256:{c.hex(64)}" if ip else "    Image ID:",
        "    Port:          23456/TCP",
        "    Host Port:     0/TCP",
        *(f"    {v}" for v in container),
        "    Requests:",
        *(f"      {v}" for v in requests),
        "    Mounts:",
        f"      /var/run/secrets/kubernetes.io/serviceaccount from kube-api-access-{c.hex(5)} (ro)",
    ]


def pyspy(pid: int, cmd: str, threads: Sequence[tuple[str, Sequence[str]]], version: str = "3.10.12") -> list[str]:
    """`py-spy dump`; threads: (head, frames)."""
    out = [f"Process {pid}: {cmd}", f"Python v{version} (/usr/bin/python{version[:4]})", ""]
    for head, stack in threads:
        out += [f"Thread {head}", *(f"    {s}" for s in stack)]
    return out
