"""From a run to a labelled case: find the evidence lines, look for leaks, write case.yaml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import yaml
from lab import Fault, Hit, Lab, Truth

# Nothing of the machine, the workplace or the injector may show in what a diagnosis can read.
LEAKS = re.compile(r"(?i)/root/|inject|\bsandbox|(?<![\w-])vm(?![\w-])|/mnt/(?:out|lib|payload)\b")
SECRET_NAMES = re.compile(r"(?i)inject|fault|hang|oom|nan|crash|kill|corrupt|healthy|error|fail")


def lines_of(path: Path) -> list[str]:
    """Split on newline only, as the labels count lines."""
    # Not read_text: it takes the carriage returns of a progress bar for ends of lines.
    text = path.read_bytes().decode("utf-8", "replace")
    return text[:-1].split("\n") if text.endswith("\n") else text.split("\n")


def find(folder: Path, hit: Hit) -> list[list[Any]]:
    """The ranges [file, first, last] of one Hit, neighbours merged; at least one, or an error."""
    lines = lines_of(folder / hit.file)
    at = [n for n, line in enumerate(lines, 1) if hit.text in line]
    if not at:
        raise ValueError(f"{hit.file}: no line holds {hit.text!r}")
    at = {"all": at, "first": at[:1], "last": at[-1:]}[hit.which]
    ranges: list[list[Any]] = []
    for number in at:
        last = min(number + hit.after, len(lines))
        if ranges and number <= ranges[-1][2] + 1:
            ranges[-1][2] = max(last, ranges[-1][2])
        else:
            ranges.append([hit.file, number, last])
    return ranges


def evidence(folder: Path, hits: Sequence[Hit]) -> list[list[Any]]:
    found: list[list[Any]] = []
    for hit in hits:
        found += [r for r in find(folder, hit) if r not in found]
    return found


def files(folder: Path, inputs: Sequence[str]) -> Iterator[Path]:
    for name in inputs:
        path = folder / name
        yield from sorted(p for p in path.rglob("*") if p.is_file()) if path.is_dir() else [path]


def leaks(folder: Path, inputs: Sequence[str]) -> list[str]:
    """Lines and names that tell where or how the case was made."""
    found = []
    for path in files(folder, inputs):
        name = str(path.relative_to(folder))
        if SECRET_NAMES.search(name):
            found.append(f"name {name}")
        found += [f"{name}:{n}: {line[:200]}" for n, line in enumerate(lines_of(path), 1) if LEAKS.search(line)]
    return found


def document(fault: Fault, lab: Lab, truth: Truth, folder: Path) -> dict[str, Any]:
    """case.yaml as a mapping."""
    expect: dict[str, Any] = {
        "outcome": truth.outcome,
        "also_outcome": list(truth.also_outcome),
        "failure_type": truth.failure_type,
        "also_accept": list(truth.also_accept),
        "root_cause_class": truth.root_cause_class,
        "evidence": evidence(folder, truth.evidence),
        "nodes": list(truth.nodes),
        "ranks": list(truth.ranks),
        "action": list(truth.action),
        "must_mention": [list(words) for words in truth.must_mention],
        "must_not": list(truth.must_not),
        "why": truth.why,
    }
    tags = sorted({*fault.tags, *(["multi-file"] if len(list(files(folder, lab.inputs))) > 1 else [])})
    return {
        "schema": "triage.case/1",
        "id": fault.case,
        "split": fault.split,
        "synthetic": True,
        "source": f"a real run on one machine: eval/inject/run.py {fault.name} ({fault.what}); host, user and folder names are those of its sandbox, only the build of the kernel was taken out",
        "license": "Apache-2.0",
        "tags": tags,
        "inputs": lab.inputs,
        **({"scheduler": lab.scheduler} if lab.scheduler else {}),
        "expect": expect,
    }


def write(document: dict[str, Any], folder: Path) -> None:
    text = yaml.dump(document, sort_keys=False, allow_unicode=True, width=140, default_flow_style=None)
    (folder / "case.yaml").write_text(text)
