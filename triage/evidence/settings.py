"""What a line says of how a job was set up: versions, settings, sizes, paths. Pure, linear.

A name that says who, where or when the job ran is no setting, nor is what a job measures.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Literal

from triage.evidence import launch

How = Literal["version", "environment", "flag", "config", "size", "path"]
_MAX_LINE = 4000
_MAX_VALUE = 200


@dataclass(frozen=True, slots=True)
class Said:
    """One thing that a line says. name: as it is compared, lower case; shown: as the line has it."""

    how: How
    name: str
    value: str
    shown: str = ""


_NCCL = re.compile(r"\b([A-Z][A-Z0-9_]{2,60}) set by environment to (\S{1,200})")
_EXPORT = re.compile(
    r"\+{0,4}\s?(?:export|declare -x|setenv)\s+([A-Za-z_]\w{1,60})[= ](\"[^\"]{0,300}\"|'[^']{0,300}'|[^;]{1,300})"
)
_DUMP = re.compile(r"([A-Z][A-Z0-9]{0,30}_[A-Z0-9_]{1,60})=(\"[^\"]{0,300}\"|'[^']{0,300}'|[^\s;]{1,300})")
_FLAG = re.compile(r"(?:^|(?<=\s))--([A-Za-z][\w.-]{1,60})(?:(?:=|\s+)((?!-{1,2}[A-Za-z])\S{1,200}))?")
_PREFIX = re.compile(r"(?:\[[^\]]{1,80}\]\s*|\(\w{1,30}\)\s*|(?:INFO|DEBUG)\b[:\s|-]*(?:[\w.]{1,60}:(?=\s))?\s*){0,4}")
_PAIR = re.compile(
    r"[\"']?([A-Za-z_][\w.-]{1,60})[\"']?\s?(?::|=|\s\.{3,80})\s{0,40}(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s\"']{1,200}),?"
)
_PAIRS = re.compile(
    r"(?<![\w.])[\"']?([A-Za-z_]\w{1,60})[\"']?\s?[=:]\s?(\"[^\"]{0,200}\"|'[^']{0,200}'|[^\s,(){}\[\]]{1,200})"
)
_LIST_OF_PAIRS = re.compile(r"(?:^|[\s=:])(?:Namespace|\w{0,40}(?:[Cc]onfig|Args|Arguments|[Pp]arams))\(|^\W{0,3}\{")
_VERSION = re.compile(
    r"\b([A-Za-z][\w+-]{1,40})\s+(?:[Vv]ersion|VERSION)\b\s?[:=]?\s{0,8}[\"']?v?(\d{1,5}(?:\.\d{1,6}){0,4}[\w.+-]{0,40})"
)
_PINNED = re.compile(r"(?<![\w.])([A-Za-z][\w.-]{1,40})==(\d{1,5}(?:\.\w{1,12}){1,4}(?:\+[\w.]{1,30})?)")
_PACKAGES = (
    "torch|pytorch|torchvision|cuda|cudnn|cublas|nccl|rccl|rocm|driver|python|numpy|transformers|deepspeed|megatron-core|apex"
    "|flash[-_]attn|accelerate|lightning|pytorch[-_]lightning|datasets|tokenizers|triton|jax|jaxlib|tensorflow|horovod|ray"
    "|libfabric|ucx|aws-ofi-nccl|open ?mpi|slurm|gcc|glibc|peft|trl|vllm|bitsandbytes|transformer[-_]engine|cann|hccl|xla"
)
_KNOWN = re.compile(
    rf"(?<![\w./-])({_PACKAGES})(?:\s?[:=]\s?|\s?\(|\s{{1,20}})v?(\d{{1,4}}(?:\.\d{{1,6}}){{1,4}}(?:[+-][\w.]{{1,30}}|[a-z]+\d+)?)\)?"
    r"(?![\w%]|\s?(?:s|ms|it|GB|GiB|MB|MiB)\b)",
    re.IGNORECASE,
)
_DOTTED = re.compile(r"\d\.\d")
_SIZE = re.compile(
    r"\b(?:world[_ ]?size|nranks|num_processes|total[_ ]ranks)\b[\"']?\s?[:= ]{1,3}(\d{1,7})\b", re.IGNORECASE
)
_CHECKPOINT = re.compile(
    r"\b(?:load|resum|restor)\w{0,6}\b[^/]{0,80}\b(?:checkpoint|ckpt|weights)\w{0,3}\b[^/]{0,40}(/[\w./=+@-]{2,200})",
    re.IGNORECASE,
)
_DATA = re.compile(
    r"\b(?:load|read|open)\w{0,4}\b[^/]{0,60}\bdata\w{0,6}\b[^/]{0,40}(/[\w./=+@-]{2,200})", re.IGNORECASE
)

# Who, where, when, and which of the processes.
_PERSONAL = re.compile(
    r"^(?:slurm|pbs|lsb|lsf|sge|pmi|pmix|ompi|prte|kubernetes|flux|ssh|xdg|dbus|lmod|modules?|loadedmodules|_?lmfiles|bash_func|conda|singularity|apptainer|git|_?ce)_"
    r"|(?:^|_)(?:world_info|(?:log|logging|outputs?|results?|exps?|save|run|runs|tensorboard|wandb)_?dir|pids?|ppid|ranks?|host|hosts|hostname|user|username|logname|home|pwd|oldpwd|tmp|tmpdir|term|display|shlvl|mail"
    r"|addr|address|ip|port|ports|endpoint|url|job_?id|step_?id|node_?id|procid|localid|node_?list|hostlist|run_?id|run_?name|job_?name"
    r"|exp_?name|experiment_?name|id|uuid|timestamp|date|time_?stamp|start_?time|started|begin|end|cookie|token|key|secret|passw\w+|commit"
    r"|account|email|logfile|log_?file|path|elapsed|eta|level|name|file|line|error|warning|message|reason"
    r"|exitcode|exit_code|status|state|signal|traceback_?\w*)$|^(?:rdzv|master)_"
)
_KEPT = re.compile(
    r"(?:data|train|valid|model|ckpt|checkpoint|load|resume|library|tokenizer|pretrained)\w*_?(?:path|dir|file|name)$|^ld_library_path$"
)
_MEASURED = re.compile(
    r"loss|(?:^|_)acc(?:uracy)?(?:$|_)|grad_?norm|runtime|per_(?:second|step|iter)|perplexity|(?:^|_)ppl|throughput|flops|reward|score"
    r"|speed|elapsed|utili[sz]ation|allocated|reserved|(?:^|_)(?:free|used|cached|available|total|peak|count|duration|time|took)$"
    r"|^(?:step|epoch|iter|iteration|steps|samples|tokens|progress|percent|it|mem|memory|temp|temperature|power)$|consumed|progress"
)
_CODE = re.compile(r"[$<\\`]|self\.")  # of a script or a traceback
_ALSO_ENDS = ".,;"


def said(body: str) -> Iterator[Said]:
    """What the line says, without labels and stamps; a name may come more than once."""
    text = body[:_MAX_LINE].strip()
    if not text:
        return
    yield from _versions(text)
    if size := _SIZE.search(text):
        yield Said("size", "world size", size[1], "world size")
    yield from _paths(text)
    if "environment" in text and (nccl := _NCCL.search(text)):
        yield from _setting("environment", nccl[1], nccl[2].rstrip("."))
        return
    prefix = _PREFIX.match(text)
    bare = text[prefix.end() :] if prefix else text
    dump = _EXPORT.fullmatch(bare) or _DUMP.fullmatch(bare)
    if dump:
        yield from _setting("environment", dump[1], dump[2])
    elif "--" in bare and (flags := _flags(bare)):
        yield from flags
    elif pair := _PAIR.fullmatch(bare):
        if not pair[1][:1].isupper() or "_" in pair[1] or bare[:1] in "\"'":
            yield from _setting("config", pair[1], pair[2])
    elif _LIST_OF_PAIRS.search(bare):
        yield from _pairs(bare)


def _versions(text: str) -> Iterator[Said]:
    if "ersion" in text or "ERSION" in text:
        for found in _VERSION.finditer(text):
            yield _version(*found.groups())
    if "==" in text:
        for found in _PINNED.finditer(text):
            yield _version(*found.groups())
    if _DOTTED.search(text):
        for found in _KNOWN.finditer(text):
            yield _version(*found.groups())


def _version(package: str, value: str) -> Said:
    name = package.lower().replace("_", "-").replace(" ", "")
    return Said("version", "version of " + {"pytorch": "torch"}.get(name, name), value.rstrip(_ALSO_ENDS), package)


def _paths(text: str) -> Iterator[Said]:
    if "/" not in text:
        return
    if found := _CHECKPOINT.search(text):
        yield Said("path", "checkpoint loaded", found[1].rstrip(_ALSO_ENDS), "checkpoint loaded")
    elif found := _DATA.search(text):
        yield Said("path", "data read", found[1].rstrip(_ALSO_ENDS), "data read")


def _flags(text: str) -> list[Said]:
    """Of a command line, not of prose that mentions an option."""
    found = _FLAG.findall(text)
    if not (text.startswith("--") or len(found) >= 3 or launch.starts(text)):
        return []
    return [s for name, value in found for s in _setting("flag", name, value or "set")]


def _pairs(text: str) -> list[Said]:
    found = _PAIRS.findall(text)
    if len(found) < 3 or any(_MEASURED.search(name.lower()) for name, _ in found):
        return []
    return [s for name, value in found for s in _setting("config", name, value)]


def _setting(how: How, name: str, value: str) -> Iterator[Said]:
    key = name.lower().replace("-", "_")
    value = value.strip().rstrip(",").strip("\"'")[:_MAX_VALUE]
    if not value or "[redacted" in value or _CODE.match(value) or value.count("(") != value.count(")"):
        return
    if key.count(".") > 2 or (_PERSONAL.search(key) and not _KEPT.search(key)):
        return
    if how == "config" and (_MEASURED.search(key) or key in _PROSE):
        return
    yield Said(how, key, value, name)


_PROSE = frozenset(
    ["note", "info", "warning", "hint", "see", "e.g", "i.e", "http", "https", "default", "usage", "file", "debug", "at"]
)

_DATE = re.compile(
    r"\d{4}[-_.]?\d\d[-_.]?\d\d(?:[T_ .-]?\d\d[:._-]?\d\d(?:[:._-]?\d\d)?)?|[A-Z][a-z]{2}\d\d[_-]\d\d(?:[:_-]\d\d){1,2}"
)
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}(?::\d{1,5})?")
_LONG = re.compile(r"\b(?=[a-f]{0,40}\d)[0-9a-f]{8,64}\b|\d{5,}", re.IGNORECASE)
_DIGITS = re.compile(r"\d+")


def comparable(value: str, how: How, nodes: Collection[str]) -> str:
    """The value as it is compared: 1e-4 is 0.0001; dates, job numbers, addresses and hosts in it do not count."""
    if how == "version":
        return value
    try:
        return repr(float(value))
    except ValueError:
        pass
    if value.lower() in ("true", "false", "none", "null"):
        return value.lower()
    text = _LONG.sub("#", _ADDRESS.sub("@", _DATE.sub("#", value)))
    for node in nodes:
        if node in text:
            text = text.replace(node, "@")
    return _DIGITS.sub("#", text) if how == "path" else text
