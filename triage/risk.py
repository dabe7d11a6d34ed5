"""What a step in words or as a command does to a machine that cannot be taken back. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Literal

_CLAUSE = re.compile(r"(?<=[.;:])\s+")
_NOT_DONE = re.compile(r"(?i)^(?:do not|never|ask)\b")
# Imperatives: `a kill`, `the OOM killer`, `was deleted` tell of what happened, and `after the reboot` of what is done by then.
_SAID = re.compile(
    r"""(?ix)
    (?<!\ba\ )(?<!\bthe\ )\breboot\b
    | \b(?:often|by|with)\ a\ reboot\b
    | \bcold\ power\ cycle\b | (?<!\bthe\ )\bpower-cycle\b
    | (?<!\ba\ )(?<!\bthe\ )(?<!-)\bkill\b(?!-|\ -CONT\b)
    | (?<!ask\ for\ )\b(?:delete|remove|purge|wipe|erase|clear)\b(?!\ code)
    | \bfree\ space\b | \breimage\b | \breformat\b | \bfsck\b
    | (?:^|[,;]\ |\b(?:and|or|then)\ )(?:power|shut)\ (?:off|down)\b
    | (?:^|[,;]\ |\b(?:and|or|then)\ )(?:end|stop)\ (?:it\b|everything\b|\{pid\}|process\ \d|(?:the\ |any\ )?(?:\w+\ )?(?:process|processes|pod|job)\b)
    | \brestart\ (?:Fabric\ Manager|slurmd|the\ (?:node|host|guest|daemon|server|driver|virtual\ machine))\b
    | \b(?:replace|reseat)\ the\ (?:disk|SSD|DIMM|card|GPU|board|processor)\b
    """
)
_RUN = re.compile(
    r"""(?x)
    (?:^|[;|&`]\s*|\bsudo\ |\bssh\ \S+\ |\bxargs\ )(?:sudo\ )?(?:
        rm|rmdir|kill(?!\ -CONT\b)|pkill|killall|reboot|shutdown|poweroff|scancel|qdel|bkill|flux\ cancel|mkfs\S*|dd|fsck|xfs_repair|truncate|shred|wipefs
      | kubectl\ (?:-n\ \S+\ )?(?:delete|drain)
      | ipmitool\ (?:\S+\ )*?(?:chassis\ )?power\ (?:cycle|off|reset)
      | systemctl\ (?:restart|stop|kill)
      | (?:docker|podman)\ (?:rm|rmi|kill|stop|system\ prune)
      | umount\ -[fl] | git\ (?:clean|reset\ --hard)
    )(?=\s|$|`)
    | \s-delete\b
    """
)


def destroys(text: str, command: str = "") -> bool:
    """Does a step end processes, take a machine down or delete what is stored? Draining and resetting can be taken back."""
    told = any(_SAID.search(clause) for clause in _CLAUSE.split(text) if not _NOT_DONE.match(clause))
    return told or bool(_RUN.search(command)) or any(_RUN.search(code) for code in re.findall(r"`([^`]*)`", text))


def destroys_as_typed(text: str) -> bool:
    """The same of a text that a person typed: a command may begin at any of its words, in whatever case."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    return destroys(text, text) or any(_RUN.match(text, at) or _RUN.match(text[at:].lower()) for at in starts)


# Programs, and words behind them, that only show. `scontrol show`, `sacct`, `kubectl get`.
_SHOWS = re.compile(
    r"scontrol (?:show|ping)\b|sacct\b|squeue\b|sinfo\b|sprio\b|sstat\b|kubectl (?:-n \S+ )?(?:get|describe|logs|top|events)\b|pbsnodes -[al]"
    r"|qstat\b|bjobs\b|bhosts\b|qhost\b|flux (?:jobs|resource (?:list|status))\b|nvidia-smi(?: -q\b.*| nvlink -[es])?$|ls\b|cat\b|df\b|stat\b"
)


def of_command(argv: Sequence[str]) -> Literal["read-only", "reversible", "destructive"]:
    """Of a command that is run word by word; one that is not known to only show counts as one that changes something."""
    text = shlex.join(argv)
    if destroys("", text) or text.startswith("scontrol requeue"):  # which ends a job that runs
        return "destructive"
    return "read-only" if _SHOWS.match(text) else "reversible"
