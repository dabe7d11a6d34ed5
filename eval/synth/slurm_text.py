"""What Slurm prints, and accounting tables."""

from __future__ import annotations

from collections.abc import Sequence

from synth.kit import Case


def hosts(prefix: str, first: int, count: int, width: int = 3) -> list[str]:
    return [f"{prefix}{i:0{width}d}" for i in range(first, first + count)]


def node_list(names: Sequence[str]) -> str:
    """gpu-[012-019] of consecutive names."""
    digits = len(names[0]) - len(names[0].rstrip("0123456789"))
    stem = names[0][:-digits]
    return f"{stem}[{names[0][-digits:]}-{names[-1][-digits:]}]" if len(names) > 1 else names[0]


def head(c: Case, job: int, names: Sequence[str], per: int, name: str, part: str, limit: str) -> list[str]:
    """What a batch script typically echoes first."""
    return [
        f"SLURM_JOB_ID={job}",
        f"SLURM_JOB_NAME={name}",
        f"SLURM_JOB_PARTITION={part}",
        f"SLURM_JOB_NUM_NODES={len(names)}",
        f"SLURM_NODELIST={node_list(names)}",
        f"SLURM_NTASKS={len(names) * per}",
        f"SLURM_NTASKS_PER_NODE={per}",
        f"TIMELIMIT={limit}",
        f"MASTER_ADDR={names[0]}",
        f"START {c.t('%a %b %d %H:%M:%S UTC %Y')}",
    ]


def sacct(fields: str, rows: Sequence[str]) -> list[str]:
    """A table as `sacct` aligns it; rows with | between the columns."""
    names = fields.split("|")
    cells = [r.split("|") for r in rows]
    widths = [max(10, len(n), *(len(r[i]) for r in cells)) for i, n in enumerate(names)]
    show = lambda r: " ".join(v.rjust(w) for v, w in zip(r, widths, strict=True)) + " "  # noqa: E731
    return [show(names), " ".join("-" * w for w in widths) + " ", *(show(r) for r in cells)]


def binds(c: Case, names: Sequence[str], per: int) -> list[str]:
    out = []
    for name in names:
        for i in range(per):
            mask = "".join("F" if per - 1 - j == i else "0" for j in range(per))
            out.append(f"cpu-bind=MASK - {name}, task {i:2d} {i:2d} [{c.n(3000, 400000)}]: mask 0x{mask * 2} set")
    c.rng.shuffle(out)
    return out
