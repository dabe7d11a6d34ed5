"""The INFO chatter of NCCL at start."""

from __future__ import annotations

from collections.abc import Sequence

from synth.kit import Case, weave

BUS = ("7000", "f000", "47000", "4e000", "87000", "90000", "b7000", "bd000")
BUS_H100 = ("18000", "2a000", "3a000", "5d000", "9a000", "ab000", "ba000", "db000")


def init(
    c: Case, hosts: Sequence[str], per: int, version: str = "2.18.5", cuda: str = "12.2", *, net: str = "IB", ifname: str = "eth0",
    subnet: str = "10.40.8", hcas: int = 8, channels: int = 4, env: Sequence[str] = (), bus: Sequence[str] = BUS, rings: bool = True,
) -> list[str]:  # fmt: skip
    """The lines of all ranks, interleaved."""
    streams = []
    world = len(hosts) * per
    comm = c.hex(16)
    for h, host in enumerate(hosts):
        for g in range(per):
            streams.append(
                _rank(
                    c,
                    host,
                    f"{subnet}.{20 + h}",
                    h * per + g,
                    g,
                    per,
                    world,
                    version,
                    cuda,
                    net,
                    ifname,
                    hcas,
                    channels,
                    env,
                    bus,
                    comm,
                    rings,
                )
            )
    return weave(c.rng, streams, 4)


def _rank(
    c: Case, host: str, ip: str, rank: int, gpu: int, per: int, world: int, version: str, cuda: str, net: str, ifname: str, hcas: int,
    channels: int, env: Sequence[str], bus: Sequence[str], comm: str, rings: bool,
) -> list[str]:  # fmt: skip
    pid = c.n(20000, 60000)
    a, b = f"{host}:{pid}:{pid} [{gpu}] NCCL INFO ", f"{host}:{pid}:{pid + c.n(300, 900)} [{gpu}] NCCL INFO "
    minor = int(version.split(".")[1])
    new = minor >= 19
    out = [a + f"cudaDriverVersion {cuda.replace('.', '0')}0"] if rank % per else []
    out += [a + f"Bootstrap : Using {ifname}:{ip}<0>"]
    if new:
        out += [a + "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."]
    else:
        out += [a + "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation"]
    out += [a + f"{e.split('=')[0]} set by environment to {e.split('=')[1]}." for e in env]
    if rank == 0:
        out.append(f"NCCL version {version}+cuda{cuda}")
    if net == "IB":
        cards = " ".join(f"[{i}]mlx5_{i}:1/IB" for i in range(hcas))
        out.append(b + f"NET/IB : Using {cards} [RO]; OOB {ifname}:{ip}<0>")
    elif net == "RoCE":
        cards = " ".join(f"[{i}]mlx5_bond_{i}:1/RoCE" for i in range(hcas))
        out.append(b + f"NET/IB : Using {cards} [RO]; OOB {ifname}:{ip}<0>")
    elif net == "Socket":
        out += [b + "NET/IB : No device found.", b + f"NET/Socket : Using [0]{ifname}:{ip}<0>"]
    if net in ("IB", "RoCE", "Socket"):
        out.append(b + f"Using network {'Socket' if net == 'Socket' else 'IB'}")
    cid = f"0x55{c.hex(10)}"
    at = f"comm {cid} rank {rank} nranks {world} cudaDev {gpu} nvmlDev {gpu} busId {bus[gpu % 8]} commId 0x{comm}"
    if new:
        out.append(b + f"{at} - Init START")
    out.append(
        b + f"Setting affinity for GPU {gpu} to {'ffff,ffffffff' if gpu < per / 2 else 'ffffffff,00000000,00000000'}"
    )
    nxt, prev = (rank + 1) % world, (rank - 1) % world
    if rank == 0:
        out += [
            b + f"Channel {i:02d}/{channels:02d} :    " + "   ".join(str(r) for r in range(min(world, 16)))
            for i in range(channels)
        ]
    out.append(
        b
        + "Trees "
        + " ".join(
            f"[{i}] {nxt if nxt % per else -1}/-1/-1->{rank}->{prev if rank % per else -1}" for i in range(channels)
        )
    )
    out.append(b + "P2P Chunksize set to 524288")
    if rings:
        via = "P2P/CUMEM/read" if new else "P2P/IPC/read"
        for i in range(channels):
            if nxt // per == rank // per:
                out.append(b + f"Channel {i:02d}/0 : {rank}[{gpu}] -> {nxt}[{nxt % per}] via {via}")
            elif net in ("IB", "RoCE"):
                out.append(
                    b + f"Channel {i:02d}/0 : {rank}[{gpu}] -> {nxt}[{nxt % per}] [send] via NET/IB/{i % hcas}/GDRDMA"
                )
            else:
                out.append(b + f"Channel {i:02d}/0 : {rank}[{gpu}] -> {nxt}[{nxt % per}] [send] via NET/Socket/0")
        out += [b + "Connected all rings", b + "Connected all trees"]
    out += [
        b + "threadThresholds 8/8/64 | 512/8/64 | 512 | 512",
        b
        + f"{channels} coll channels, {'0 collnet channels, ' if new else ''}0 nvls channels, {channels} p2p channels, 2 p2p channels per peer",
    ]
    if minor >= 21:
        out.append(b + "TUNER/Plugin: Could not find: libnccl-tuner.so. Using internal tuner plugin.")
        out.append(b + f"ncclCommInitRank {at} - Init COMPLETE")
    else:
        out.append(b + f"{at} - Init COMPLETE")
    return out
