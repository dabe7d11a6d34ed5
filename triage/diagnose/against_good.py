"""A diagnosis, held against a good run of the same kind of job. Pure.

What differs is shown and cited as context. It never decides the cause: a changed version or setting that fits the kind of
failure is said beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from triage.diagnose.made import OWN_CODE
from triage.domain import Compared, Diagnosis, Difference, Evidence, JobLog, LogLine, Place
from triage.evidence import against_good
from triage.evidence.profile import GoodRun, Profile, profile
from triage.heads import split
from triage.text import excerpt

MAX_CITED = 4
MAX_CHANGED = 8
_MAX_SAID = 2
_FEW_KINDS = 5  # kinds of line: of so few any that is shared tells

_NETWORK = r"nccl|rccl|ucx|gloo|^fi_|ofi|libfabric|ib_|_ib|timeout|socket|world size|mpi|driver|network|interface"
_MEMORY = (
    r"batch|seq|length|tokens|hidden|layer|offload|zero|recompute|checkpointing|alloc_conf|precision|dtype|fp16|bf16|fp8|parallel"
    r"|world size|workers|prefetch|mem|shm|cache|model|^torch$|^cuda$"
)
_DATA = r"data|train|valid|path|dir|checkpoint|ckpt|load|resume|format|tokenizer|model|weights|strict|workers|vocab"
_NUMBERS = (
    r"(?:^|_)lr(?:$|_)|learning|warmup|clip|precision|dtype|fp16|bf16|fp8|tf32|loss_scale|seed|data|batch|eps|beta|decay|optim|schedul|init"
    r"|checkpoint|^torch$|apex|flash|transformer"
)
# What a changed setting must be about to fit the kind of failure; of the types not named here, none does.
_FITS: dict[str, str] = {
    **dict.fromkeys(("nccl-timeout", "nccl-remote-error", "network-error", "connection-error", "hang"), _NETWORK),
    **dict.fromkeys(("out-of-memory", "host-out-of-memory"), _MEMORY),
    **dict.fromkeys(
        ("model-loading-error", "dataset-loading-error", "checkpoint-corrupt", "file-not-found", "permission-error", "storage-error",
         "disk-full", "os-error", "dataloader-killed"),
        _DATA,
    ),
    "loss-spike": _NUMBERS,
    "collective-mismatch": _NETWORK + r"|parallel|bucket|batch|seq",
    "time-limit": r"time|steps|iters|epochs|batch|world size|workers",
    "argument-error": r".",
}  # fmt: skip
# What an error speaks of, by its lines and the code it came from, and what a changed setting must then be about.
_SUBJECTS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"(?i)out of memory|\ballocat\w+"), _MEMORY),
    (
        re.compile(r"(?i)checkpoint|state_?dict|\bckpt|load_state"),
        r"checkpoint|ckpt|load|resume|model|strict|weights|format",
    ),
    (
        re.compile(
            r"(?i)[/_]data(?:set|loader)?s?[/_.]|\bdata ?(?:set|loader|file)|\bbuffer is smaller|indexed|tokeniz|\.(?:bin|idx|parquet|arrow|jsonl)\b"
        ),
        r"data|train|valid|tokenizer|vocab|corpus",
    ),
    (re.compile(r"(?i)\bnccl\b|\bsocket\b|connection (?:refused|reset|closed)"), _NETWORK),
)
# Errors of libraries and code, which another version brings about.
_BY_VERSION = frozenset((
    "version-mismatch", "import-error", "attribute-error", "type-error", "name-error", "native-crash", "cuda-error", "runtime-error",
    "value-error", "key-error", "assertion-error", "syntax-error", "index-error", "model-loading-error", "nvlink-error",
))  # fmt: skip


def against(result: Diagnosis, log: JobLog, good: GoodRun) -> Diagnosis:
    """The diagnosis with what differs from the good run; its cause, status and action stay as they are."""
    run = profile(log)
    compared = against_good.compare(run, good, _onset(result, log))
    ill = result.outcome != "healthy"
    subject = _subject(result, log)
    fits = [d for d in compared.changed if _of(d, subject) or _fits(d, result.failure_type)] if ill else []
    fitting = tuple(sorted(fits, key=lambda d: not _of(d, subject)))
    rest = tuple(d for d in compared.changed if d not in fitting)
    compared = replace(compared, changed=(*fitting, *rest)[:MAX_CHANGED])
    cited, compared = _cite(result, log, compared, fitting) if ill else ((), compared)
    result = replace(result, compared=compared, evidence=(*result.evidence, *cited))
    notes = [note for note in (good.note, _nothing_shared(run, good.profile)) if note]
    result = replace(result, missing=(*result.missing, *notes))
    ids = {d.text: d.evidence for d in compared.changed}
    return _supported(result, [replace(d, evidence=ids[d.text]) for d in fitting]) if fitting else result


def _subject(result: Diagnosis, log: JobLog) -> str:
    """What a changed setting must be about to fit what the error speaks of; "" where its lines do not tell."""
    places = {(e.file, e.line) for e in result.evidence if e.role == "root" or e.signature == OWN_CODE.id}
    texts = [line.text for file in log.files for line in file.lines if (line.file, line.number) in places]
    return next((about for said, about in _SUBJECTS if any(said.search(text[:4000]) for text in texts)), "")


def _of(difference: Difference, subject: str) -> bool:
    """Is it what the error speaks of?"""
    named = difference.kind in ("setting", "size", "path") and bool(subject)
    return named and bool(re.search(subject, difference.name.lower()))


def _nothing_shared(run: Profile, good: Profile) -> str:
    """A word where the two are hardly runs of one kind of job."""
    least = min(len(run.kinds), len(good.kinds))
    shared = len(run.kinds.keys() & good.kinds.keys()) + len(run.said.keys() & good.said.keys())
    if not least or (shared if least < _FEW_KINDS else shared * 10 > least):
        return ""
    return "the run given as good has hardly a line or setting in common with this one: is it the same kind of job?"


def _onset(result: Diagnosis, log: JobLog) -> against_good.Onset:
    first = next((e for e in result.evidence if e.role == "root"), None) or next(
        (e for e in result.evidence if e.role == "cascade"), None
    )
    lines = {(e.file, e.line) for e in result.evidence}
    texts = [line.text for file in log.files for line in file.lines if (line.file, line.number) in lines]
    return against_good.Onset(
        Place(first.file, first.line) if first else None,
        first.time if first else None,
        tuple(split(text)[1] for text in texts),
        result.outcome == "healthy",
        result.suspects.nodes,
        result.progress.last_step is not None,
    )


def _fits(difference: Difference, failure_type: str) -> bool:
    """Whether what changed is of the kind that brings about such a failure."""
    if difference.kind == "version" and failure_type in _BY_VERSION:
        return True
    about = _FITS.get(failure_type)
    return (
        about is not None
        and difference.kind in ("version", "setting", "size", "path")
        and bool(re.search(about, difference.name.lower()))
    )


def _cite(
    result: Diagnosis, log: JobLog, compared: Compared, fitting: Sequence[Difference]
) -> tuple[tuple[Evidence, ...], Compared]:
    """What fits, then lines that are new before the failure, as context; the differences learn their ids."""
    lines = {(line.file, line.number): line for file in log.files for line in file.lines}
    known = {(e.file, e.line): e.id for e in result.evidence}
    cited: list[Evidence] = []
    turned = [d for d in compared.changed if d.kind == "line"]
    wanted = [*fitting, *turned, *(d for d in compared.new if d.kind == "line")]
    for difference in wanted:
        if difference.at is None or len(cited) >= MAX_CITED:
            continue
        at = (difference.at.file, difference.at.line)
        line = lines.get(at)
        if line is None or at in known:
            continue
        known[at] = f"E{len(result.evidence) + len(cited) + 1}"
        cited.append(_evidence(known[at], line, difference))
    return tuple(cited), replace(
        compared, new=_with_ids(compared.new, known), changed=_with_ids(compared.changed, known)
    )


def _with_ids(found: Iterable[Difference], known: dict[tuple[str, int], str]) -> tuple[Difference, ...]:
    return tuple(replace(d, evidence=known.get((d.at.file, d.at.line), "")) if d.at else d for d in found)


def _evidence(name: str, line: LogLine, difference: Difference) -> Evidence:
    says = difference.why if difference.kind == "line" else difference.text
    return Evidence(
        id=name,
        file=line.file,
        line=line.number,
        text=excerpt(line.text),
        role="context",
        failure_type="unknown",
        title=f"against the good run: {says}"[:200],
        rank=line.rank,
        node=line.node,
        time=line.time,
        repeats=1,
    )


def _supported(result: Diagnosis, fitting: Sequence[Difference]) -> Diagnosis:
    """The cause with what changed beside it, in words; as support of its hypothesis where it has one."""
    told = "; ".join(d.text + (f" ({d.evidence})" if d.evidence else "") for d in fitting[:_MAX_SAID])
    more = f" and {len(fitting) - _MAX_SAID} more" if len(fitting) > _MAX_SAID else ""
    sentence = f" Changed since the good run, and fitting: {told}{more}."
    hypotheses = result.hypotheses
    if hypotheses:
        first = hypotheses[0]
        ids = tuple(d.evidence for d in fitting[:_MAX_SAID] if d.evidence)
        first = replace(
            first,
            root_cause=first.root_cause + sentence,
            supporting=tuple(dict.fromkeys((*first.supporting, *ids))),
        )
        hypotheses = (first, *hypotheses[1:])
    return replace(result, root_cause=result.root_cause + sentence, hypotheses=hypotheses)
