"""Pieces that several faults share."""

from __future__ import annotations

import yaml
from lab import PAYLOAD, Lab

FIX = ("fix-and-resubmit",)
# What other ranks or the launcher print when one rank has died; naming these as the cause misleads.
CONSEQUENCES = ("connection-error", "network-error", "nccl-timeout", "nccl-remote-error", "node-failure")

Edit = tuple[str, str, str]


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
