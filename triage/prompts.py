"""The sole reader of prompts/: a file is front matter (name, version, inputs, output), then the text with {{input}} in it."""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from triage.errors import KnowledgeError
from triage.text import seen

_FRONT = re.compile(r"---\n(.*?)\n---\n(.*)", re.DOTALL)
_INPUT = re.compile(r"\{\{ *(\w+) *\}\}")
_TAG = re.compile(r"</(\w+)>")
_FIELDS = {"name": str, "version": int, "inputs": list, "output": str}


@dataclass(frozen=True, slots=True)
class Prompt:
    """inputs: the names that the text uses; output: what the model is to answer with, in words; sha256: of the file."""

    name: str
    version: int
    inputs: tuple[str, ...]
    output: str
    text: str
    sha256: str

    def fill(self, **inputs: str) -> str:
        """The text with every input in its place, which cannot end the block that it stands in nor
        hold what nobody sees. Errors: KnowledgeError for one that is missing or not declared."""
        missing, strange = set(self.inputs) - set(inputs), set(inputs) - set(self.inputs)
        if missing or strange:
            raise KnowledgeError(
                f"prompt {self.name}: inputs missing {sorted(missing)}, not declared {sorted(strange)}"
            )
        tags = "|".join(sorted({*_TAG.findall(self.text), *_fences(self.name)}))
        ours = re.compile(rf"<(\s*/?\s*(?:{tags})(?:[\s/][^<>]{{0,200}})?)>", re.IGNORECASE) if tags else None

        def filled(match: re.Match[str]) -> str:  # once: an input may hold {{what looks like one}}
            text = seen(inputs[match[1]])
            return ours.sub(r"(\1)", text) if ours is not None else text

        return _INPUT.sub(filled, self.text)

    def to_json(self) -> dict[str, Any]:
        """As records of runs and diagnoses name it."""
        return {"name": self.name, "version": self.version, "sha256": self.sha256}


@functools.cache
def _fences(name: str) -> frozenset[str]:
    """The names of blocks of all prompts of one conversation, which share the first word of their name."""
    first = name.split("-", 1)[0]
    alike = (path for path in root().glob("*.md") if path.stem.split("-", 1)[0] == first)
    return frozenset(tag for path in alike for tag in _TAG.findall(path.read_text("utf-8")))


def root() -> Path:
    """The folder prompts/: inside the wheel, or beside the package in a checkout."""
    here = Path(__file__).resolve().parent
    for candidate in (here / "_data" / "prompts", here.parent / "prompts"):
        if candidate.is_dir():
            return candidate
    raise KnowledgeError("the folder prompts/ is missing from this installation", "install the package again")


@functools.cache
def load(name: str) -> Prompt:
    """prompts/NAME.md. Errors: KnowledgeError for a file that is missing or does not fit."""
    return read(root() / f"{name}.md")


def names() -> list[str]:
    return sorted(path.stem for path in root().glob("*.md"))


def read(path: Path) -> Prompt:
    """One prompt file. Errors: KnowledgeError with what is wrong."""
    try:
        raw = path.read_bytes()
        match = _FRONT.fullmatch(raw.decode("utf-8"))
        front = yaml.safe_load(match[1]) if match else None
    except (OSError, UnicodeDecodeError) as error:
        raise KnowledgeError(f"{path}: cannot be read: {error}") from None
    except yaml.YAMLError as error:
        raise KnowledgeError(f"{path}: its front matter is no YAML: {' '.join(str(error).split())}") from None
    if match is None or not isinstance(front, dict) or set(front) != set(_FIELDS):
        raise KnowledgeError(f"{path}: must begin with ---, the fields {', '.join(_FIELDS)}, and ---")
    for field, kind in _FIELDS.items():
        if not isinstance(front[field], kind):
            raise KnowledgeError(f"{path}: {field} must be of type {kind.__name__}")
    text, inputs = match[2].strip("\n") + "\n", tuple(map(str, front["inputs"]))
    used = set(_INPUT.findall(text))
    if used != set(inputs):
        raise KnowledgeError(f"{path}: its text uses the inputs {sorted(used)}, and declares {sorted(inputs)}")
    if front["name"] != path.stem:
        raise KnowledgeError(f"{path}: its name is {front['name']!r}, that of the file is another")
    return Prompt(front["name"], front["version"], inputs, front["output"], text, hashlib.sha256(raw).hexdigest())
