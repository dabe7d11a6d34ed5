"""What the baselines know: the tables that a capable engineer keeps in a script. No part of triage's knowledge base.

They stand in the code and not in kb/, so that the opponent does not get better or worse when the tool learns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

EXCEPTIONS: Mapping[str, str] = {  # class name, without its module
    "ArgumentError": "argument-error",
    "ArgumentTypeError": "argument-error",
    "AssertionError": "assertion-error",
    "AttributeError": "attribute-error",
    "BotoCoreError": "storage-error",
    "BrokenPipeError": "connection-error",
    "CalledProcessError": "called-process-error",
    "CancelledError": "cancelled",
    "ChunkedEncodingError": "connection-error",
    "ClientError": "storage-error",
    "ConfigAttributeError": "argument-error",
    "ConfigKeyError": "argument-error",
    "ConnectError": "connection-error",
    "ConnectTimeout": "connection-error",
    "ConnectionAbortedError": "connection-error",
    "ConnectionError": "connection-error",
    "ConnectionRefusedError": "connection-error",
    "ConnectionResetError": "connection-error",
    "DataLossError": "dataset-loading-error",
    "DatasetGenerationError": "dataset-loading-error",
    "DatasetNotFoundError": "dataset-loading-error",
    "DistBackendError": "nccl-remote-error",
    "DistNetworkError": "connection-error",
    "DistStoreError": "connection-error",
    "EndpointConnectionError": "storage-error",
    "FileNotFoundError": "file-not-found",
    "FloatingPointError": "loss-spike",
    "HFValidationError": "argument-error",
    "HTTPError": "connection-error",
    "ImportError": "import-error",
    "IndentationError": "syntax-error",
    "IndexError": "index-error",
    "IsADirectoryError": "os-error",
    "KeyError": "key-error",
    "KeyboardInterrupt": "cancelled",
    "LocalEntryNotFoundError": "connection-error",
    "LocalProtocolError": "connection-error",
    "MaxRetryError": "connection-error",
    "MemoryError": "host-out-of-memory",
    "MissingMandatoryValue": "argument-error",
    "ModuleNotFoundError": "import-error",
    "NameError": "name-error",
    "NewConnectionError": "connection-error",
    "NotADirectoryError": "os-error",
    "NotImplementedError": "runtime-error",
    "OSError": "os-error",
    "OutOfMemoryError": "out-of-memory",
    "PermissionError": "permission-error",
    "ProxyError": "connection-error",
    "ReadTimeout": "connection-error",
    "ReadTimeoutError": "connection-error",
    "RecursionError": "runtime-error",
    "RemoteDisconnected": "connection-error",
    "RendezvousConnectionError": "connection-error",
    "RendezvousTimeoutError": "connection-error",
    "RepositoryNotFoundError": "model-loading-error",
    "ResourceExhaustedError": "out-of-memory",
    "RuntimeError": "runtime-error",
    "SSLError": "connection-error",
    "SafetensorError": "model-loading-error",
    "SignalException": "cancelled",
    "SyntaxError": "syntax-error",
    "TabError": "syntax-error",
    "TimeoutError": "connection-error",
    "TypeError": "type-error",
    "UnboundLocalError": "name-error",
    "UnicodeDecodeError": "value-error",
    "UnidentifiedImageError": "dataset-loading-error",
    "UnpicklingError": "model-loading-error",
    "ValueError": "value-error",
    "ZeroDivisionError": "zero-division-error",
    "gaierror": "connection-error",
}

VAGUE = frozenset(("runtime-error", "os-error", "nccl-remote-error"))  # the message says more than the class
WRAPPERS = frozenset(("ChildFailedError",))  # a launcher's report that a worker failed

_KEYWORDS: tuple[tuple[str, str], ...] = (  # the first row that fits wins, so what is particular stands before what is common
    (r"out of memory\. tried to allocate|cuda out of memory|hip out of memory|cuda_error_out_of_memory|cublas_status_alloc_failed|resource_exhausted: ", "out-of-memory"),
    (r"fallen off the bus|gpu is lost|xid[^\n]{0,40}: (?:79|119|120)\b|no devices were found", "gpu-lost"),
    (r"uncorrectable ecc|double.?bit ecc|ecc error|xid[^\n]{0,40}: (?:48|63|64|94|95)\b", "ecc-error"),
    (r"nvlink[^\n]{0,60}(?:error|fail|fatal)|nvswitch[^\n]{0,40}(?:error|fatal)|xid[^\n]{0,40}: 74\b|uncorrectable nvlink", "nvlink-error"),
    (r"oom.?kill|out of memory: kill|oomkilled|cannot allocate memory|memory cgroup out of memory|\bmemoryerror\b|exceeded (?:job |step )?memory limit|bus error[^\n]{0,80}shared memory", "host-out-of-memory"),
    (r"no space left on device|disk quota exceeded|quota exceeded|errno 28|errno 122", "disk-full"),
    (r"due to time limit|time limit exhausted|deadlineexceeded|walltime exceeded|activedeadline", "time-limit"),
    (r"due to preemption|preempt|spot interruption|node is being (?:reclaimed|drained)", "preempted"),
    (r"node_fail|node failure|due to node fail|lost contact with (?:the )?node|host is down|nodelost|node is not responding|marked dead", "node-failure"),
    (r"watchdog caught collective operation timeout|collective operation timeout|nccl[^\n]{0,60}tim(?:ed out|eout)|monitoredbarrier", "nccl-timeout"),
    (r"detected mismatch between collectives|collectives? (?:differ|mismatch)|mismatched collective", "collective-mismatch"),
    (r"ibv_poll_cq|completion with (?:status )?error|got completion from peer|transport retry counter|port (?:error|down)|link (?:is )?down|mlx5[^\n]{0,80}(?:error|fail)", "network-error"),
    (r"device-side assert", "assertion-error"),
    (r"dataloader worker[^\n]{0,80}(?:killed|exited|signal)", "dataloader-killed"),
    (r"undefined symbol|version mismatch|driver version is insufficient|no kernel image is available|glibc(?:xx)?_[^\n]{0,40}not found|incompatible with|compiled (?:with|against|for) [^\n]{0,60}but|forward compatibility", "version-mismatch"),
    (r"nccl error|ncclremoteerror|ncclsystemerror|ncclinternalerror|ncclunhandledcudaerror|remote process exited", "nccl-remote-error"),
    (r"cuda error|cuda_error_|cuda driver error|illegal memory access|unspecified launch failure|cublas_status|cudnn_status|\bxid\b", "cuda-error"),
    (r"segmentation fault|sigsegv|core dumped|sigabrt|sigbus|bus error|illegal instruction|signal 11\b|signal 6\b", "native-crash"),
    (r"stale file handle|input/output error|lustre[^\n]{0,60}(?:error|evict)|nfs[^\n]{0,40}not responding|nosuchbucket|please reduce your request rate|s3[^\n]{0,40}error", "storage-error"),
    (r"pytorchstreamreader|invalid header or archive is corrupted|failed finding central directory|checkpoint[^\n]{0,60}corrupt|unexpected end of (?:data|file)", "checkpoint-corrupt"),
    (r"error\(s\) in loading state_dict|size mismatch for|missing key\(s\) in state_dict|can't load (?:the )?(?:model|tokenizer|configuration)|unable to load weights", "model-loading-error"),
    (r"connection (?:refused|reset|closed|timed out|aborted)|broken pipe|address already in use|could not resolve|name resolution|max retries exceeded|econnre|failed to connect", "connection-error"),
    (r"modulenotfounderror|importerror|no module named", "import-error"),
    (r"permission denied|permissionerror|access denied|accessdenied", "permission-error"),
    (r"filenotfounderror|no such file or directory|does not exist", "file-not-found"),
    (r"unrecognized arguments|invalid choice|the following arguments are required|unknown option|invalid option|unrecognized option|usage: ", "argument-error"),
    (r"imagepullbackoff|errimagepull|prolog[^\n]{0,40}fail|unable to create step|requested node configuration is not available|failedmount|unschedulable", "launch-failure"),
    (r"cancelled at|cancelled by|scancel|keyboardinterrupt|(?<!closing signal )\bsigterm\b|got signal 15|sigint|job step aborted", "cancelled"),
    (r"\bloss\b[^\n]{0,40}\b(?:nan|inf)\b|loss is nan|gradient overflow[^\n]{0,80}minimum|nan or inf", "loss-spike"),
    (r"no progress for|appears to be hung|hang detected|stuck for|heartbeat[^\n]{0,40}(?:lost|timed out|expired)", "hang"),
    (r"calledprocesserror|returned non-zero exit status|command failed", "called-process-error"),
    (r"\bkilled\b|sigkill|exit code 137|signal 9\b|exitcode: -9", "host-out-of-memory"),
)  # fmt: skip
KEYWORDS = tuple((re.compile(pattern, re.IGNORECASE), kind) for pattern, kind in _KEYWORDS)

_ACTIONS: Mapping[str, str] = {
    **dict.fromkeys(("nvlink-error", "node-failure", "ecc-error", "gpu-lost", "network-error"), "restart-excluding"),
    **dict.fromkeys(("cuda-error", "nccl-timeout", "nccl-remote-error", "connection-error", "time-limit"), "restart"),
    **dict.fromkeys(("preempted", "dataloader-killed"), "restart"),
    "storage-error": "escalate",
    "loss-spike": "rollback-and-skip",
    "hang": "kill-and-restart",
    "cancelled": "none",
    "healthy": "none",
    "unknown": "escalate",
}
INTERRUPTED = frozenset(("time-limit", "preempted", "cancelled"))


def by_exception(name: str, message: str) -> str:
    """The failure type of an exception: by its class; where the class is vague, by its message if that says more."""
    kind = EXCEPTIONS.get(name, "runtime-error")
    return (by_keyword(message) or kind) if kind in VAGUE else kind


def by_keyword(line: str) -> str | None:
    return next((kind for pattern, kind in KEYWORDS if pattern.search(line)), None)


def action(kind: str) -> str:
    return _ACTIONS.get(kind, "fix-and-resubmit")


def outcome(kind: str) -> str:
    if kind in ("healthy", "unknown"):
        return kind
    return "interrupted" if kind in INTERRUPTED else "hung" if kind == "hang" else "failed"
