"""One rank of an allgather over a few nodes: does it come through, are the data right, how fast. Needs Python and torch alone.

It is sent to the nodes as text, so it imports nothing of triage. Prints one line, `TRIAGE-CHECK {...}`, and ends with 0 if all was right.
"""

import argparse
import datetime
import json
import os
import platform
import sys
import threading
import time

CODE_LATE = 4


def main() -> None:
    options = _options()
    began = time.monotonic()
    _limit(options)
    try:
        result = _allgather(options)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        _say(options, False, error=f"{type(error).__name__}: {lines[0] if lines else ''}"[:300])
        _end(1)
    _say(options, not result["wrong"], seconds=round(time.monotonic() - began, 2), **result)
    _end(1 if result["wrong"] else 0)


def _options() -> argparse.Namespace:
    """Ranks come from the launcher's variables unless they are given."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="nccl")
    parser.add_argument("--store", required=True, metavar="HOST:PORT", help="where rank 0 listens")
    parser.add_argument("--rank", type=int, default=_variable("SLURM_PROCID", "RANK"))
    parser.add_argument("--world", type=int, default=_variable("SLURM_NTASKS", "WORLD_SIZE"))
    parser.add_argument("--local", type=int, default=_variable("SLURM_LOCALID", "LOCAL_RANK"))
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for peers to come and for the whole")
    parser.add_argument("--megabytes", type=float, default=64.0, help="of each rank")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def _variable(*names: str) -> int:
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), 0)


def _limit(options: argparse.Namespace) -> None:
    """A collective that hangs cannot be interrupted; the process can."""

    def late() -> None:
        _say(options, False, error=f"no end within {2 * options.timeout:g} s")
        _end(CODE_LATE)

    timer = threading.Timer(2 * options.timeout, late)
    timer.daemon = True
    timer.start()


def _allgather(options: argparse.Namespace) -> dict[str, float]:
    import torch
    import torch.distributed as dist

    timeout = datetime.timedelta(seconds=options.timeout)
    host, _, port = options.store.rpartition(":")
    node = os.environ.get("SLURMD_NODENAME")  # Slurm orders ranks by nodes, and not as they were named
    listens = options.local == 0 and node == host if node else options.rank == 0
    store = dist.TCPStore(host, int(port), options.world, listens, timeout=timeout)
    device = torch.device("cuda", options.local) if options.backend == "nccl" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    dist.init_process_group(options.backend, store=store, rank=options.rank, world_size=options.world, timeout=timeout)
    count = max(1, int(options.megabytes * 2**20 / 4))
    pattern = torch.arange(count, device=device, dtype=torch.float32) % 251
    mine = pattern + options.rank
    theirs = [torch.empty_like(mine) for _ in range(options.world)]
    took, wrong = [], 0
    for _ in range(options.rounds):
        at = time.monotonic()
        dist.all_gather(theirs, mine)
        if device.type == "cuda":
            torch.cuda.synchronize()
        took.append(time.monotonic() - at)
        wrong += sum(int((part != pattern + rank).sum()) for rank, part in enumerate(theirs))
    best = min(took[1:] or took)  # the first one sets up connections
    return {"wrong": wrong, "gbps": round((options.world - 1) * count * 4 * 8 / best / 1e9, 3)}


def _say(options: argparse.Namespace, ok: bool, **more: object) -> None:
    told = {"ok": ok, "rank": options.rank, "world": options.world, "host": platform.node(), **more}
    sys.stdout.write(f"TRIAGE-CHECK {json.dumps(told)}\n")
    sys.stdout.flush()


def _end(code: int) -> None:
    """At once: a broken communicator may hang in its clean-up, which is not what is tested."""
    os._exit(code)


if __name__ == "__main__":
    main()
