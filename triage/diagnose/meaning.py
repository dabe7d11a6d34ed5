"""What a program's own words about its end mean, where only their head is known: the kind and the class. Pure."""

from __future__ import annotations

import re
from dataclasses import replace

from triage.domain import Signature

_READ = 400  # characters of a message

# In this order: what the system answered, what a run time calls it, what the program says of its input, of its numbers.
_KINDS: tuple[tuple[str, str, str], ...] = (
    (r"(?:\bfi_\w+|\bibv_\w+|EP_BindSegment|cxil?_\w+)\b.{0,120}(?:cannot allocate memory|no space left)|(?:cannot allocate memory|no space left on device)\)? from fi_", "network-error", "resource-exhaustion"),
    (r"no space left on device|disk quota exceeded|\bENOSPC\b|\bEDQUOT\b|file system (?:is )?full", "disk-full", "resource-exhaustion"),
    (r"hipErrorOutOfMemory|cudaErrorMemoryAllocation|(?:CUDA|HIP|GPU|device) out of memory|out of (?:GPU|device) memory", "out-of-memory", "resource-exhaustion"),
    (r"illegal memory access|CUDA[ _](?:driver |runtime )?error|\bcuda[A-Z]\w{2,40}\b.{0,60}(?:failed|error)|CUDA-capable devices? (?:are|is)|\bhipError[A-Z]", "cuda-error", "unknown"),
    (
        r"cannot allocate (?:memory|vector)|\bout of memory\b|not enough memory|insufficient (?:(?:virtual|system) )?memory|OutOfMemoryError|could not malloc|"
        r"(?:unable|failed) to (?:re)?allocate|allocat\w+ (?:\w+ ){0,3}failed|memory (?:allocation )?exhausted|\bgalloc: ",
        "host-out-of-memory",
        "resource-exhaustion",
    ),
    (r"stale (?:NFS )?file handle|transport endpoint|input/output error|remote I/O error", "storage-error", "dependency-failure"),
    (r"error (?:during |when |while |trying to )?(?:write|read|writing)\b|\b(?:write|writing to file) failed|trying to read or write to disk", "os-error", "dependency-failure"),
    (r"connection (?:refused|reset|timed out)|no route to host|name or service not known", "connection-error", "network-failure"),
    (r"too many open files|resource temporarily unavailable|unable to fork", "os-error", "resource-exhaustion"),
    (r"permission denied|operation not permitted|read-only file system", "permission-error", "config-error"),
    (r"UndefVarError|object '\w[\w.]{0,60}' not found|could not find function|[Uu]ndefined (?:function|variable)", "name-error", "software-bug"),
    (r"ArgumentError: Package \w+ |there is no package called|package or namespace load failed", "import-error", "config-error"),
    (r"variable .{0,60}(?:not found|does not exist|is missing)", "key-error", "data-error"),
    (r"NetCDF: (?:Invalid|Start\+count|Attribute|Unknown file format|Variable has no|Index exceeds)|EOF marker is absent", "dataset-loading-error", "data-error"),
    (r"(?:reading|writing) (?:multiple )?variables?\b.{0,300}\bfailed", "os-error", "unknown"),
    (r"\bMethodError\b|non-numeric argument", "type-error", "software-bug"),
    (r"\bBoundsError\b|subscript out of bounds|index exceeds|array bound|out of bounds|outside the expected range", "index-error", "software-bug"),
    (r"\bDimensionMismatch\b|dimensions? (?:must agree|mismatch|of arrays)|non-conformable", "value-error", "software-bug"),
    (r"error while loading shared libraries|version mismatch|incompatible (?:version|library)|version `\S+' not found", "version-mismatch", "dependency-failure"),
    (
        r"end[- ]of[- ]file|premature(?:ly)? end|unexpected EOF|bad (?:real|integer|logical|value) |list-directed I/O|truncated|"
        r"corrupt|invalid (?:data|header|magic|record)|wrong number of (?:columns|records|fields)",
        "dataset-loading-error",
        "data-error",
    ),
    (
        r"no such file|(?:file|path|directory)\b.{0,120}\b(?:not found|does not exist|doesn't exist|is missing|not present)|file not found|"
        r"(?:\w/|[/.])\S{0,120}(?:not found|does not exist)|does not exist\b.{0,80}\w[/.]\w|"
        r"(?:cannot|can't|can not|could ?n[o']t|could not|unable to|failed to) (?:open\b|(?:find|locate|read|access)\b.{0,60}(?:file|path|director|library|\w\.\w|/))|fichier .{0,80}introuvable",
        "file-not-found",
        "config-error",
    ),
    (
        r"\bmust have\b|\b(?:is|are) undefined in dictionary|\bunknown (?!error|exception|reason|cause|host)|unrecogni[sz]ed|\bunsupported\b|not (?:supported|allowed|recogni[sz]ed|compatible|implemented)|"
        r"\b(?:invalid|illegal|inconsistent|incompatible|conflicting) |\bmust (?:be|have|not)\b|(?:not (?:required|specified|set)|(?:is|are|was) required)\b|"
        r"no domain decomposition|decomposition .{0,60}(?:ranks|processors|too small)|namelist|\bkeyword\b|input (?:file )?(?:error|parameter)|"
        r"syntax error|number of (?:processors|ranks|tasks|procs)",
        "argument-error",
        "config-error",
    ),
    (r"\bNaNs?\b|not a number|\binf(?:inity|inite)?\b|diverg(?:ed|ing|ence)|numerical(?:ly)? (?:instabilit|unstable)|blow(?:s|n|ing)? up|floating[- ]point exception", "loss-spike", "config-error"),
    (
        r"\bconver(?:ge|ged|gence)\b|lost atoms|LINCS|SHAKE|RATTLE|\bCFL\b|courant|unstable|(?:time ?step|velocity|velocities|displacement|residual)\b.{0,40}"
        r"\b(?:too|small|large|exceed)|negative (?:density|pressure|volume|energy)|atoms? (?:missing|too close)|bond atoms|ZHEGV|ZPOTRF|ZBRENT|EDDDAV|orthonormali[sz]ation",
        "runtime-error",
        "config-error",
    ),
)  # fmt: skip
_COMPILED = tuple((re.compile(pattern, re.IGNORECASE), kind, cause) for pattern, kind, cause in _KINDS)


def refined(signature: Signature, *messages: str) -> Signature:
    """The signature with the kind and the class that a message tells; the first message that tells one counts."""
    for message in messages:
        for pattern, kind, cause in _COMPILED:
            if pattern.search(message[:_READ]):
                # A solver that blew up is not cured by an earlier checkpoint, as a training run may be.
                action = "fix-and-resubmit" if kind == "loss-spike" else signature.action
                return replace(signature, failure_type=kind, root_cause_class=cause, action=action)
    return signature
