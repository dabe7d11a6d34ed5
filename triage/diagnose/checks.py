"""The `check` of a signature as a step: what of it can be typed into a shell, and what is to be looked at. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from triage.diagnose.names import fill_command, fill_text
from triage.text import HOST

# What checks begin with when they are commands; the others are things to look at.
_PROGRAMS = re.compile(
    r"amd-smi|apptainer|aws|bash|cat|coredumpctl|cuobjdump|curl|dcgmi|df|dmesg|du|echo|env|ethtool|file|find|fi_info"
    r"|fi_pingpong|fmpm|free|gdb|getent|getfacl|git|grep|gsutil|h5ls|hccn_tool|hdfs|head|huggingface-cli|ibdiagnet|ibstat"
    r"|ibv_devinfo|ib_write_bw|id|ip|ipmitool|iptables|java|journalctl|klist|kubectl|last|lctl|ldconfig|ldd|lfs|lnetctl|ls"
    r"|lscpu|lsmod|lsof|lspci|md5sum|mlxlink|mmgetstate|mmhealth|mmlsmount|module|mount|mstflint|nc|nfsstat|nm|npu-smi"
    r"|numactl|nvcc|nvidia-smi|nvme|ompi_info|perfquery|ping|pip|podman|ps|py-spy|python|python3|quota|ras-mc-ctl|ray|rdma"
    r"|readelf|rocm-smi|rocminfo|rpcinfo|sacct|sacctmgr|scontrol|sdiag|sha256sum|show_gids|sinfo|smartctl|squeue|srun|ss"
    r"|ssh|stat|strings|systemctl|tail|timeout|torchfrtrace|torchrun|type|ucx_info|ulimit|uname|uniq|sort|awk|cut|tr|wandb"
    r"|wc|which|yarn"
)
_SLURM = frozenset({"sacct", "sacctmgr", "scontrol", "sdiag", "sinfo", "squeue", "srun"})
_WHOLE = re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`")
# Where what can be typed ends and a sentence goes on.
_SENTENCE = re.compile(
    r"(?:,? (?:inside|during|against|over|while) |,? (?:on|in|of|from|with|for|to) (?:a|the|this|that|its|it|every|all|both|each|other|earlier|rank)\b"
    r"|,? (?:names|shows|answers|alone)\b| \((?=\w+ )|,? and (?=[a-z]+ ?[^-a-z|]*$)| (?:and|or) (?=not\b)).*$"
)
# Words of a sentence too, unless an option or a file follows.
_ENGLISH = frozenset(
    {
        "echo",
        "env",
        "file",
        "find",
        "free",
        "head",
        "id",
        "last",
        "lscpu",
        "module",
        "mount",
        "ping",
        "sort",
        "stat",
        "type",
        "cut",
    }
)
_READS = frozenset({"grep", "head", "tail", "cat", "ls", "py-spy", "pip", "curl", "strings"})  # to be told what
# Names in capitals that checks use for what a reader is to fill in.
_CAPITALS = {"JOB": "job", "PATH": "path", "FILE": "path", "PID": "pid", "PORT": "port", "NODE": "node", "HOST": "peer",
             "MASTER_ADDR": "peer", "MASTER_PORT": "port", "PEER": "peer", "POD": "pod", "MODULE": "module"}  # fmt: skip
_OPEN = re.compile(
    r"<\w+>|(?<![\w$/-])(?:MODULE|MASTER_ADDR|MASTER_PORT|PATH|PID|FILE|DIR|HOST|NODE|PORT|SCRIPT|CONFIG|NAME|EXTENSION|LOADDIR|PREFIX|JOB"
    r"|BUCKET|KEY|URL|POD|ID|UID|PEER|HEAD|MOUNT|PROGRAM|LIBRARY|LIBSTDCXX|nvmeX)\b"
)
_ORDERS = re.compile(r"^(?:ask|compare|print|read|count|run|open|pull|sort|find|look|see|take|list)\b")
_ASKS = re.compile(r"^(?:how|which|what|who|where)\b")
_STATES = re.compile(r"\b(?:names|reports?|goes|connected|say) (?:it|on|the|afterwards)\b")


def is_command(text: str) -> bool:
    """Can the text be typed into a shell as it is?"""
    return not _OPEN.search(text) and not _SENTENCE.search(text) and _runs(text)


def _runs(text: str) -> bool:
    parts = [part.split() for part in re.split(r"[;|&]+", _WHOLE.sub("X", text))]
    return bool(parts) and all(_is_call(part) for part in parts)


def _is_call(words: Sequence[str]) -> bool:
    """`which python` is one, `which ranks lack this line` is not."""
    if not words or not _PROGRAMS.fullmatch(words[0]) or {"and", "or"} & set(words):
        return False
    plain = [word for word in words[1:] if re.fullmatch(r"[A-Za-z]+", word)]
    return not (plain and words[0] in _ENGLISH) and (words[0] != "which" or (len(plain) < 3 and "is" not in words))


# Programs that tell of the machine they run on, so that they are of use on the accused one alone.
_OF_A_NODE = re.compile(
    r"(?:sudo )?(?:dmesg|nvidia-smi|rocm-smi|npu-smi|dcgmi|journalctl|ibstat|ibstatus|ip|ethtool|ps|lsof|free|df|ls|stat|cat|findmnt|mount|numactl|lspci|ipmitool|sensors|uptime|ss|rdma|lfs)\b"
)


def as_step(check: str, known: Mapping[str, str], on: str) -> tuple[str, str]:
    """(what to do in words, the command or ""). on: the node to look at, where one is accused."""
    commands, looked = [], []
    where = f" on {on}" if on else ""
    for part in _parts(check):
        command, rest = _cut(part)
        if not command:
            looked.append(fill_text(part, known))
            continue
        filled, _ = fill_command(_named(command), known)
        if _OPEN.search(filled) or _lacks(filled, rest):
            looked.append(f"`{filled}`{rest}")
        else:
            commands.append(f"ssh {on} {filled}" if HOST.fullmatch(on) and _OF_A_NODE.match(filled) else filled)
            place = re.match(r" (?:on|in|from|inside) (?:(?! names | while | and | against )[^,;:()])+", rest)
            where = where or (place[0].rstrip() if place else "")
    if commands:
        return f"Confirm the cause{where}", "; ".join(commands)
    return f"Confirm the cause{where if on else ''}: {_worded(looked)}", ""


def of_scheduler(check: str, scheduler: str) -> str:
    """The check without what asks a scheduler that does not run this job."""
    if scheduler not in ("kubernetes", "other"):
        return check
    return "; ".join(part for part in _parts(check) if part.split()[0] not in _SLURM)


def _lacks(command: str, rest: str) -> bool:
    """Is what the command reads told in the words that follow it?"""
    last = command.rpartition("|")[2].strip()
    unnamed = command.partition(" ")[0] in _READS and "/" not in command
    return bool(rest) and (rest.startswith((" of ", " over ")) or unnamed or last == "grep")


def _parts(check: str) -> list[str]:
    """At semicolons, and where a second command follows an `and`; not inside quotes."""
    kept: dict[str, str] = {}

    def keep(match: re.Match[str]) -> str:
        kept[key := f"\0{len(kept)}\0"] = match[0]
        return key

    bare = _WHOLE.sub(keep, check)
    parts = re.split(rf"; | (?:and|or) (?=(?:{_PROGRAMS.pattern}) [-/A-Z<|])", bare)
    return [re.sub("\0\\d+\0", lambda m: kept[m[0]], part).strip() for part in parts]


def _cut(part: str) -> tuple[str, str]:
    """What of it can be typed, and the words that follow."""
    tail = _SENTENCE.search(_WHOLE.sub(lambda m: "X" * len(m[0]), part))
    command = part[: tail.start()] if tail else part
    return (command, part[len(command) :]) if _runs(command) else ("", part)


def _named(command: str) -> str:
    return re.sub(r"(?<![\w$/-])[A-Z_]{3,}\b", lambda m: f"<{_CAPITALS[m[0]]}>" if m[0] in _CAPITALS else m[0], command)


def _worded(parts: Sequence[str]) -> str:
    """Things are looked at; orders and questions stand for themselves."""
    said = parts[0]
    if _ASKS.match(said):
        said = f"see {said}"
    elif re.match(r"[A-Z_]{4,}=", said):
        said = f"run with {said}"
    elif not (said.startswith("`") or "?" in said or _ORDERS.match(said) or _STATES.search(said)):
        said = f"look at {said}"
    return "; ".join([said, *parts[1:]])
