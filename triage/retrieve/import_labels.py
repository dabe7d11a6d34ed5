"""From the words of foreign incident collections to the labels of the taxonomy: tables first, then text rules. Pure.

A rule of `_STRONG` names a cause; a rule of `_WEAK` names what is only seen (a hang, a time-out) and counts where no
cause is told. Nothing is guessed beyond that: what no rule knows is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

LONGEST_TEXT = 20_000  # characters of one text that the rules look at

# Terms of root causes, in kebab case, to root_cause_classes; a term that says nothing of the cause is left out.
ROOT_CAUSES: Mapping[str, str] = {
    **{
        name: name
        for name in ("config-error", "data-error", "dependency-failure", "hardware-failure", "network-failure")
    },
    **{name: name for name in ("none", "operator-action", "resource-exhaustion", "software-bug", "unknown")},
    **dict.fromkeys(("hardware", "hardware-fault", "power-failure", "cooling", "thermal"), "hardware-failure"),
    **dict.fromkeys(("dependency", "third-party", "third-party-failure", "external-dependency"), "dependency-failure"),
    **dict.fromkeys(("network", "network-error", "network-issue", "network-partition"), "network-failure"),
    **dict.fromkeys(("config", "configuration", "configuration-error", "misconfiguration"), "config-error"),
    **dict.fromkeys(("bug", "code-bug", "race-condition", "software-defect", "software-failure"), "software-bug"),
    **dict.fromkeys(("capacity", "overload", "capacity-exhaustion", "memory-exhaustion"), "resource-exhaustion"),
    **dict.fromkeys(("bad-data", "data-corruption", "data-quality"), "data-error"),
    **dict.fromkeys(("human-error", "operator-error", "user-error"), "operator-action"),
}

# Terms of symptoms to failure types; a term that fits any failure (training-job-failed) is left out.
SYMPTOMS: Mapping[str, str] = {
    "checkpoint-corruption": "checkpoint-corrupt",
    "connection-refused": "connection-error",
    "connection-timeout": "connection-error",
    "disk-full": "disk-full",
    "gpu-unavailable": "gpu-lost",
    "image-pull-failure": "launch-failure",
    "loss-spike": "loss-spike",
    "nan-loss": "loss-spike",
    "nccl-timeout": "nccl-timeout",
    "network-unreachable": "network-error",
    "node-not-ready": "node-failure",
    "oom": "out-of-memory",
    "oom-killed": "host-out-of-memory",
    "out-of-memory": "out-of-memory",
    "packet-loss": "network-error",
    "permission-denied": "permission-error",
    "pod-pending": "launch-failure",
    "storage-unavailable": "storage-error",
    "training-divergence": "loss-spike",
    "training-hang": "hang",
}

COMPONENTS: Mapping[str, str] = {
    "datacenter-facility": "cooling",
    "gpu-hardware": "gpu",
    "shared-filesystem": "filesystem",
    "training-dataloader": "dataloader",
}

_EXCEPTIONS = {
    **{
        f"{name}Error": f"{name.lower()}-error" for name in ("Assertion", "Attribute", "Import", "Index", "Key", "Name")
    },
    **{f"{name}Error": f"{name.lower()}-error" for name in ("Permission", "Syntax", "Type", "Value")},
    "CalledProcessError": "called-process-error",
    "FileNotFoundError": "file-not-found",
    "MemoryError": "host-out-of-memory",
    "ModuleNotFoundError": "import-error",
    "OutOfMemoryError": "out-of-memory",
    "ZeroDivisionError": "zero-division-error",
}
_STORE = r"(?:file ?system|storage|lustre|gpfs|nfs|object store|blob store|s3)"
_FABRIC = r"(?:infiniband|roce|nics?|network|fabric|switch)"

_STRONG: Sequence[tuple[str, re.Pattern[str]]] = [
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("host-out-of-memory", r"oom[- ]kill|out of (?:host|system|cpu) memory|/dev/shm|cannot allocate memory"),
        ("out-of-memory", r"(?:cuda (?:error: )?)?out of memory|\boom\b"),
        ("nvlink-error", r"\bnv(?:link|switch)"),
        ("ecc-error", r"\becc errors?\b|uncorrectable|row[- ]remap|\bxid (?:48|63|64|94|95)\b"),
        (
            "gpu-lost",
            r"fallen off the bus|\bgpus? (?:was |were )?(?:lost|died|dropped out)|\b(?:dead|lost|missing) gpus?\b",
        ),
        ("cuda-error", r"\bcuda ?error|illegal memory access|unspecified launch failure|\bxid (?:13|31)\b"),
        (
            "storage-error",
            rf"\b{_STORE}\b[^.]{{0,40}}\b(?:froze|hung|fail|melt|outage|unavailab|error|stopped respond)",
        ),
        ("storage-error", rf"\b(?:frozen|hung|failed|stale) (?:shared |parallel |network )?(?:{_STORE}|file handle)"),
        (
            "network-error",
            rf"\b{_FABRIC}\b[^.]{{0,40}}\b(?:fail|error|flap|outage|unstable|lost packets)|link flap|packet loss",
        ),
        ("network-error", r"got completion with error"),
        (
            "connection-error",
            r"connection (?:refused|reset|timed out)|address already in use|name or service not known",
        ),
        ("dataloader-killed", r"data ?loader worker|data ?loader[^.]{0,30}\bkilled"),
        ("checkpoint-corrupt", r"\b(?:corrupt|truncated|partial|incomplete)\w* checkpoint"),
        ("checkpoint-corrupt", r"checkpoint[^.]{0,30}\b(?:corrupt|truncated|incomplete)"),
        ("loss-spike", r"\bloss[^.]{0,20}\b(?:spike|diverg|explo)|\bdiverge|\bnan loss|\bloss[^.]{0,20}\bnan\b"),
        ("collective-mismatch", r"collective mismatch|mismatch between collectives"),
        ("disk-full", r"no space left|disk (?:was |is )?full|quota exceeded"),
        ("node-failure", r"\b(?:nodes?|hosts?) (?:had )?(?:failed|died|crashed|rebooted|failures?)\b|node_fail"),
        ("version-mismatch", r"version mismatch|incompatible (?:version|driver)|undefined symbol"),
        ("permission-error", r"permission denied"),
        ("preempted", r"\bpreempt|spot (?:reclaim|interrupt)"),
        ("time-limit", r"\btime limit\b"),
        ("cancelled", r"\bscancel\b|cancelled by"),
        ("launch-failure", r"image ?pull|failed to start|never started"),
        ("native-crash", r"segmentation fault|sigsegv|segfault|core dumped|\bbus error"),
        *((kind, rf"\b{name}\b") for name, kind in _EXCEPTIONS.items()),
    )
]
_WEAK: Sequence[tuple[str, re.Pattern[str]]] = [
    (kind, re.compile(pattern, re.IGNORECASE))
    for kind, pattern in (
        ("hang", r"\bh(?:ang|angs|ung|anging)\b|\bstuck\b|deadlock|\bstalled\b|\bsuspen(?:ded|sion)\b"),
        ("nccl-timeout", r"\bnccl[^.]{0,20}\btime-? ?out|watchdog caught collective"),
        ("nccl-remote-error", r"\bnccl[^.]{0,20}\b(?:remote|system|internal) error"),
        ("runtime-error", r"\bRuntimeError\b"),
    )
]
# What the collections report beside a deeper cause; only one that stands alone names the type.
SYMPTOM_TYPES = frozenset(kind for kind, _ in _WEAK)
EVERY_TYPE = frozenset([*SYMPTOMS.values(), *(kind for kind, _ in [*_STRONG, *_WEAK]), "unknown"])


def kebab(text: str) -> str:
    """`GPU unavailable` as `gpu-unavailable`."""
    return re.sub(r"[^a-z0-9.+]+", "-", text.lower()).strip("-.")


def root_cause_class(term: str) -> str:
    return ROOT_CAUSES.get(kebab(term), "unknown")


def components(terms: Iterable[str]) -> tuple[str, ...]:
    """Component terms in our spelling, in order, each once."""
    names = (COMPONENTS.get(kebab(term), kebab(term)) for term in terms)
    return tuple(dict.fromkeys(name for name in names if name))


def failure_type(title: str, cause: str, symptoms: Iterable[str], error_strings: Sequence[str]) -> str:
    """The type that a record speaks of: causes in title, cause and printed errors before what is merely seen."""
    printed = "\n".join(error_strings)
    return (
        _first(_STRONG, title)
        or _first(_STRONG, cause)
        or _first(_WEAK, title)
        or _first(_STRONG, printed)
        or _single(symptoms)
        or _first(_WEAK, cause)
        or _first(_WEAK, printed)
        or "unknown"
    )


def _first(rules: Sequence[tuple[str, re.Pattern[str]]], text: str) -> str:
    """The type of the leftmost match, the earlier rule at equal places; "" for none."""
    found = ((match.start(), kind) for kind, rule in rules if (match := rule.search(text[:LONGEST_TEXT])))
    return min(found, key=lambda hit: hit[0], default=(0, ""))[1]


def _single(symptoms: Iterable[str]) -> str:
    kinds = {SYMPTOMS[term] for term in map(kebab, symptoms) if term in SYMPTOMS}
    deeper = kinds - SYMPTOM_TYPES or kinds
    return deeper.pop() if len(deeper) == 1 else ""
