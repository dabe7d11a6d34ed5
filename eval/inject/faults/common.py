"""Pieces that several faults share."""

from __future__ import annotations

import yaml
from lab import PAYLOAD, Lab, Truth

FIX = ("fix-and-resubmit",)
# What other ranks or the launcher print when one rank has died; naming these as the cause misleads.
CONSEQUENCES = ("connection-error", "network-error", "nccl-timeout", "nccl-remote-error", "node-failure")

_FAILURES = ("native-crash", "host-out-of-memory", "cancelled", "loss-spike", *CONSEQUENCES)
# After a death that nobody explains: run again, ask the cluster's people, or look into the program.
RERUN = ("restart", "escalate", "fix-and-resubmit")

Edit = tuple[str, str, str]
# The classifier gives up on a collective after a minute instead of half an hour.
ONE_MINUTE: tuple[Edit, ...] = (
    ("train.py", "world_size=world)", "world_size=world, timeout=timedelta(seconds=60))"),
    ("train.py", "import time\n", "import time\nfrom datetime import timedelta\n"),
)


def pretrain(lab: Lab, ranks: int, *edits: Edit, vocab: int = 512, tokens: int = 60_000) -> None:
    """Stage the GPT program with its data."""
    lab.stage("pretrain", *edits)
    lab.tool("python", "prepare.py", "/mnt/data/corpus", str(ranks), str(tokens), str(vocab))
    lab.tool("rm", "prepare.py")


def finetune(lab: Lab, *edits: Edit, train: int = 400, valid: int = 40) -> None:
    """Stage the Hugging Face program with its records and tokenizer."""
    lab.stage("finetune", *edits)
    lab.tool("python", "prepare.py", "/mnt/data/sft", str(train), str(valid))
    lab.tool("rm", "prepare.py")


def fit(lab: Lab, *edits: Edit, train: int = 12, val: int = 2, **changes: object) -> None:
    """Stage the classifier with its shards; `changes` go into config.yaml."""
    lab.stage("fit", *edits)
    config = yaml.safe_load((PAYLOAD / "fit/config.yaml").read_text()) | changes
    lab.write("config.yaml", yaml.dump(config, sort_keys=False))
    lab.tool(
        "python",
        "prepare.py",
        "/mnt/data/digits",
        str(train),
        str(val),
        str(config["per_shard"]),
        str(config["features"]),
    )
    lab.tool("rm", "prepare.py")


def heat(lab: Lab, *edits: Edit, **deck: object) -> None:
    """Stage and compile the MPI program; `deck` changes values of its input file."""
    lab.stage("heat", *edits)
    lines = (PAYLOAD / "heat/heat.in").read_text().splitlines()
    kept = [line for line in lines if line.split(" = ")[0] not in deck]
    lab.write("heat.in", "\n".join([*kept, *(f"{k} = {v}" for k, v in deck.items())]) + "\n")
    lab.tool("mpicc", "-O1", "-g", "-o", "heat2d", "heat.c", "-lm")


def healthy(why: str, *feared: str) -> Truth:
    """The label of a run that ended well; `feared` are the types that its lines suggest besides the usual ones."""
    return Truth("healthy", "healthy", "none", ("none",), must_not=(*feared, *_FAILURES), why=why)
