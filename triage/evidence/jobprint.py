"""What kind of job a log comes from, told by its head. Pure.

A resubmission on other nodes, at another date, under another number has the same print: only what the job runs counts
(framework, script, image, configuration, model), as file names without folders, for folders name users. The wording of
the head stands beside it, as hashes of words: it tells apart jobs that say nothing of what they run.

Lines of errors and tracebacks do not count, for the next run may end otherwise; nor does how often a line comes, which
depends on how long the run lasted and how many ranks it had.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator

from triage import heads
from triage.domain import JobPrint
from triage.evidence import launch
from triage.regex import compile_pattern, skeleton

HEAD_BYTES = 256 << 10  # of a file
MAX_HEADS = 8  # files
ALIKE = 0.6  # jobs at least so similar share their rules
_MAX_LINES = 1000  # distinct ones
_MAX_LINE = 1000
_WORDS = 48  # the first distinct ones: a run that fails early has them too

# RE2, as most of the head runs through these two.
_TROUBLE = compile_pattern(
    r"(?i)error|exception|traceback|fail|fatal|killed|abort|terminat|signal|cancel|\bexit|core dump|refused|timed out"
)
_PERSONAL = re.compile(
    r"(?<![/\w-])(?:users?|user_?name|host|host_?name|login|node|whoami|account|submit\w*|e?mail|acls?)(?![/\w-])", re.I
)
_FRAME = re.compile(r'\bFile "([^"]{1,300}\.py)", line \d+, in <module>')
_WORD = re.compile(r"[A-Za-z]{4,20}")
_EDGE = ":,;=()[]{}\"'|*#<>.!?"
_CALENDAR = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "june",
        "july",
        "august",
        "sept",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
)
_FRAMEWORKS = [
    "megatron",
    "nemo",
    "deepspeed",
    "lightning",
    "transformers",
    "accelerate",
    "trl",
    "verl",
    "fairseq",
    "torchtitan",
    "llamafactory",
    "axolotl",
    "peft",
    "vllm",
    "sglang",
    "ray",
    "jax",
    "flax",
    "maxtext",
    "tensorflow",
    "keras",
    "horovod",
    "mxnet",
    "ultralytics",
    "mmengine",
    "mmdet",
    "mmcv",
    "detectron2",
    "colossalai",
    "composer",
    "paddle",
    "mindspore",
    "torchtune",
    "unsloth",
    "openrlhf",
    "nanotron",
    "torchrec",
    "timm",
    "diffusers",
    "spark",
    "hadoop",
    "dask",
    "lammps",
    "gromacs",
    "namd",
    "vasp",
    "openfoam",
    "cp2k",
    "wrf",
    "nwchem",
    "amber",
    "charmm",
    "pyscf",
]
_NAMES = "|".join(_FRAMEWORKS)
# As part of a path, a module or a logger, or first in its line: prose, and what a model is trained on, name them too.
_FRAMEWORK = compile_pattern(
    rf"(?i)(?:^|[\[/])({_NAMES})(?:[^A-Za-z0-9]|$)|(?:^|[^A-Za-z0-9])({_NAMES})[./]", "frameworks"
)
# Names that many projects give to a script.
_ANY_SCRIPT = frozenset(
    f"script:{name}.py" for name in ["train", "main", "run", "test", "finetune", "evaluate", "pretrain", "eval"]
)

# How much each kind of feature says. What only one of two jobs tells does not count.
_WEIGHTS = {"script": 4.0, "framework": 2.0, "word": 3.0, "image": 1.0, "config": 1.0, "model": 1.0}
_ANY_SCRIPT_WEIGHT = 1.0


def job_print(file_heads: Iterable[bytes]) -> JobPrint:
    """The print of the job whose files begin with these bytes, of each at most HEAD_BYTES and of MAX_HEADS files."""
    found: dict[str, None] = {}  # in order, each once
    words: dict[str, None] = {}
    frames: dict[str, None] = {}
    for text, main in _lines(file_heads):
        if main:
            frames[main] = None
        if not text or _TROUBLE.search(text):
            continue
        found.update(dict.fromkeys(launch.features(text)))
        found.update((f"framework:{(a or b).lower()}", None) for a, b in _FRAMEWORK.findall(text))
        if len(words) < _WORDS and not _PERSONAL.search(text):
            words.update(dict.fromkeys(_words(text)))
    if not any(_is_script(feature) for feature in found):
        found.update(dict.fromkeys(frames))
    if any(_is_python(feature) for feature in found):  # other programs then only prepare the node
        found = {f: None for f in found if not _is_script(f) or _is_python(f)}
    told = sorted(found)
    sketch = sorted(_hash(word, 4) for word in list(words)[:_WORDS])
    known = any(_is_script(feature) and feature not in _ANY_SCRIPT for feature in told)
    features = (*told, *(f"word:{word}" for word in sketch))
    return JobPrint(_hash("\n".join(told if known else features), 6), features)


def similarity(a: JobPrint, b: JobPrint) -> float:
    """0 to 1: the weighted mean, over the kinds of feature that both tell, of how far they tell the same.

    0 when their scripts differ, or their frameworks; and when they share neither a script of a name of its own nor half
    of their wording.
    """
    if a.key == b.key:
        return 1.0
    mine, other = _by_kind(a), _by_kind(b)
    total = score = 0.0
    shared = False
    for kind, usual in _WEIGHTS.items():
        x, y = mine[kind], other[kind]
        if not x or not y:
            continue
        common = x & y
        if not common and kind in ("script", "framework"):
            return 0.0
        any_script = kind == "script" and common <= _ANY_SCRIPT
        weight = _ANY_SCRIPT_WEIGHT if any_script else usual
        same = len(common) / (len(x | y) if kind == "word" else min(len(x), len(y)))
        shared = shared or (kind == "script" and not any_script) or (kind == "word" and same >= 0.5)
        total += weight
        score += weight * same
    return score / total if shared else 0.0


def _is_script(feature: str) -> bool:
    return feature.startswith("script:")


def _is_python(feature: str) -> bool:
    """A script or a module."""
    return _is_script(feature) and "." in feature and not feature.endswith(".sh")


def _by_kind(job: JobPrint) -> dict[str, set[str]]:
    found: defaultdict[str, set[str]] = defaultdict(set)
    for feature in job.features:
        found[feature.partition(":")[0]].add(feature)
    return found


def _lines(file_heads: Iterable[bytes]) -> Iterator[tuple[str, str]]:
    """Each distinct line without labels and stamps, "" inside tracebacks; and the script that a traceback begins in."""
    seen: set[bytes] = set()
    for at, head in enumerate(file_heads):
        if at >= MAX_HEADS:
            return
        inside = 0  # lines since a traceback began, 0 outside
        for raw in head[:HEAD_BYTES].split(b"\n")[:-1] or [head[:HEAD_BYTES]]:
            begins = b"Traceback (most" in raw
            inside = 1 if begins else inside + 1 if inside else 0
            key = skeleton(raw)
            if key in seen and not inside:
                continue
            if len(seen) > _MAX_LINES:
                return
            seen.add(key)
            text = heads.split(raw[:_MAX_LINE].decode("utf-8", "replace"))[1]
            if not inside:
                yield text, ""
                continue
            frame = _FRAME.search(text) if inside == 2 else None
            if frame and not launch.LIBRARY.search(frame[1]):
                yield "", "script:" + launch.name(frame[1])
            if not begins and text[:1] not in (" ", "\t"):
                inside = 0


def _words(text: str) -> list[str]:
    """The plain words of a line; nothing that stands in a path, an address or a name with a number."""
    tokens = (token.strip(_EDGE) for token in text.split())
    return [low for token in tokens if _WORD.fullmatch(token) and (low := token.lower()) not in _CALENDAR]


def _hash(text: str, size: int) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
