"""This job's own names for the steps of a runbook: from its evidence and facts only, and only what a shell may be given."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Mapping

from triage.diagnose.candidates import Candidate
from triage.diagnose.facts import Facts, job_of, node_of, rank_of
from triage.domain import PLACEHOLDERS, Progress, Suspects
from triage.evidence.known import known_nodes
from triage.evidence.placement import task_nodes
from triage.text import HOST, closing, excluding, host_list, rank_ranges

# A value that may stand in a command: no blank, no character that means something to a shell but [ ] * in host lists.
_PLAIN = re.compile(r"[A-Za-z0-9/_.][A-Za-z0-9/_.,:@%+=\[\]~-]{0,300}")
_ADDRESS = re.compile(r"[\d.]+|[0-9a-fA-F:]*:[0-9a-fA-F:]*")
_OPEN = re.compile(r"\{([a-z_]+)\}|<([a-z_]+)>")
_AS_CODE = re.compile(r"`[^`]*`")
_HCA = re.compile(r"\b((?:mlx[45]|bnxt_re|efa|irdma|hns|rdmap)_?\w{0,12}?\d+)(?=[:/\s,\])]|$)")
_PATH = re.compile(
    r"['\"`](?:file://)?(/[^'\"`\n]{1,300})['\"`]|(?:^|[\s=:(,])(/(?!dev/nvidia|/)[\w./@%+=~*?{}\[\]-]{2,300})"
    r"|['\"`]((?:\.{1,2}/)?[\w.@+-]{1,80}/[\w./@+=~*-]{1,200}\.\w{1,12})['\"`]"
)
_GLOB = re.compile(r"/[^/]*[*?\[{].*$")
_MODULE = re.compile(r"No module named '([\w.]{1,120})'|cannot import name '[^']{1,120}' from '([\w.]{1,120})'")
_PORT = re.compile(
    r"(?i)\bport(?: number)?[:=]? ?(\d{2,5})\b|\], (\d{4,5})\)|(?:[\w\])]|\d\.\d):(\d{4,5})(?![\d.:])|\('[\w.:-]{1,80}', (\d{4,5})\)"
)
_PID = re.compile(r"\b(?:pid|PID)[ =:]{1,2}'?(\d{2,8})\b|\b[Pp]rocess (?:ID )?(\d{2,8})\b")
_HOST = r"([A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){0,6}|\d{1,3}(?:\.\d{1,3}){3})"
_PEER = re.compile(
    rf"(?i)\b(?:to|from|with|by|at|host|peer|server|connect to|address)[ =:]{{1,2}}\[?{_HOST}\]?(?:/\d{{1,3}}(?:\.\d{{1,3}}){{3}})?(?::|, )\d{{2,5}}\b"
    rf"|\bserver {_HOST} not responding|\bhost(?:name)?[ =:]{{1,2}}'?{_HOST}'?(?: |$|,)|\bhost='{_HOST}'"
)
_GPU = re.compile(r"\bGPU (\d{1,2})\b|\bcuda:(\d{1,2})\b|\bdevice[= ](\d{1,2})\b")
_NOT_HOSTS = frozenset(
    {"is", "not", "was", "the", "localhost", "unknown", "none", "for", "at", "and", "or", "could", "cannot", "memory"}
)
_POD = re.compile(r"^Name:\s+([a-z0-9][a-z0-9.-]{0,250})$")
_NAMESPACE = re.compile(r"^Namespace:\s+([a-z0-9][a-z0-9-]{0,62})$")
_READY = frozenset({"exclude", "close", "each"})  # made for a shell already
_SPELLED = 16  # nodes that a command names one by one
_SAID = {
    "rank": "rank {}",
    "gpu": "GPU {}",
    "pid": "process {}",
    "peer": "the peer {}",
    "port": "port {}",
    "step": "step {}",
}
_BETWEEN_HOSTS = frozenset({"network-error", "nccl-remote-error", "nccl-timeout", "connection-error", "storage-error"})
_LOOKED_AT = 6  # lines of the cause
_IN_SIGNATURES = {
    "index": "gpu",
    "host": "node",
    "library": "path",
    "mount": "path",
    "server": "peer",
}  # what checks of signatures call them


def names(facts: Facts, root: Candidate | None, found: Suspects, scheduler: str, progress: Progress) -> dict[str, str]:
    """A value for each placeholder that the log names; the rest are left out."""
    hosts = () if any(_ADDRESS.fullmatch(node) for node in found.nodes) else found.nodes
    known = {
        "job": job_of(facts, root.findings if root else ()),
        "type": root.failure_type if root else "",
        "node": found.nodes[0] if found.nodes else "",
        "nodes": _nodes(found.nodes, scheduler),
        "rank": rank_ranges(found.ranks) if found.ranks else "",
        "gpu": _gpu(found.gpus[0]) if found.gpus else "",
        "step": str(progress.last_step or ""),
        "checkpoint": progress.last_checkpoint or "",
        "exclude": excluding(scheduler, hosts),
        "close": closing(scheduler, hosts, f"triage:{root.failure_type}" if root else "triage"),
        **_of_kubernetes(facts),
    }
    if root is not None:
        known |= {name: value for name, value in _quoted(root).items() if value and not known.get(name)}
    return {name: value for name, value in known.items() if value}


def where_and_when(facts: Facts, root: Candidate | None, scheduler: str) -> dict[str, str]:
    """Where else to look, and about when; the lines are gone through for it."""
    nodes = known_nodes(facts.log, facts.nodes_of_ranks).union(task_nodes(facts.log))
    known = {"node": next(iter(nodes))} if len(nodes) == 1 else {"each": each_node(nodes, scheduler)}
    known["time"] = _time(facts, root)
    return {name: value for name, value in known.items() if value}


def each_node(nodes: Collection[str], scheduler: str) -> str:
    """The words that a loop of a shell goes through, "" for no node or, without Slurm to unfold a list, for very many."""
    hosts = sorted({node for node in nodes if HOST.fullmatch(node)})
    if len(hosts) > _SPELLED:
        short = (host.split(".")[0] for host in hosts)
        return f"$(scontrol show hostnames {shlex.quote(host_list(short))})" if scheduler == "slurm" else ""
    return " ".join(hosts)


def _time(facts: Facts, root: Candidate | None) -> str:
    """When it failed, to the minute: the first line of the cause that bears a time, else the last line that does."""
    told = [f.line.time for f in root.findings if f.line.time] if root else []
    last = (line.time for file in facts.log.files for line in reversed(file.lines) if line.time)
    when = told[0] if told else next(last, None)
    return f"{when:%Y-%m-%d %H:%M}" if when else ""


def _quoted(root: Candidate) -> dict[str, str]:
    """What the cited lines of the cause name; the first line that names a thing counts."""
    lines = [f.line.text for f in root.findings[:_LOOKED_AT]]
    groups = root.first.groups
    found = {
        "file": root.first.line.file,
        "path": _path(groups.get("path", "")) or _any(_PATH, lines),
        "peer": groups.get("peer", "").split("<")[0],
        "pid": groups.get("pid", "") or _any(_PID, lines),
        "module": _any(_MODULE, lines),
        "gpu": _any(_GPU, lines),
    }
    if root.failure_type in _BETWEEN_HOSTS:
        peer = _any(_PEER, lines)
        found |= {"hca": _any(_HCA, lines), "port": _any(_PORT, lines)}
        found["peer"] = found["peer"] or ("" if peer.lower() in _NOT_HOSTS else peer)
    found["path"] = _GLOB.sub("", found["path"]) or found["path"]
    if root.failure_type in ("disk-full", "storage-error") and found["path"].count("/") > 1:
        found["path"] = found["path"].rpartition("/")[0]  # the file itself was not written, its folder is there
    return found


def _any(pattern: re.Pattern[str], lines: list[str]) -> str:
    return next((found for text in lines if (found := _first(pattern, text))), "")


def seen_on(facts: Facts, root: Candidate | None) -> str:
    """The node that the cause's line comes from, to look at and not to change; Slurm's daemons report what was elsewhere."""
    if root is None or root.signature.component == "slurm":
        return ""
    file = next((f for f in facts.log.files if f.name == root.first.line.file), None)
    rank = rank_of(root.first, file)
    return node_of(root.first, file) or (facts.nodes_of_ranks.get(rank, "") if rank is not None else "")


def fill_text(text: str, known: Mapping[str, str]) -> str:
    """The text with its placeholders filled, or put in words where the log does not name them.

    `{pid}` as code becomes the bare number or <pid>; elsewhere {pid} becomes "process 4711" or "the process".
    """
    coded = _AS_CODE.sub(lambda code: _OPEN.sub(_bare(known), code[0]), text)
    return re.sub(r"\{([a-z_]+)\}", lambda m: _in_words(m[1], known), coded)


def _bare(known: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return known.get(_IN_SIGNATURES.get(name, name), f"<{name}>")

    return value


def _in_words(name: str, known: Mapping[str, str]) -> str:
    value = known.get(name, "")
    if not value:
        return PLACEHOLDERS.get(name, name)
    if name == "checkpoint" and value.startswith("step "):
        return f"the checkpoint of {value}"
    return _SAID.get(name, "{}").format(value)


def fill_command(command: str, known: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The command for a shell, and the placeholders that are still open in it, then written <name>."""
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        said = known.get(_IN_SIGNATURES.get(name, name), "")
        if name in _READY and said:
            return said
        if _PLAIN.fullmatch(said):
            return shlex.quote(said)
        missing.append(name)
        return f"<{name}>"

    return _OPEN.sub(value, command), tuple(dict.fromkeys(missing))


def _nodes(nodes: tuple[str, ...], scheduler: str) -> str:
    """In the scheduler's own syntax; Slurm knows nodes by their short names and not by addresses."""
    if scheduler == "kubernetes":
        return nodes[0] if len(nodes) == 1 else ""  # commands name one node there
    if any(_ADDRESS.fullmatch(node) for node in nodes):
        return ""
    return host_list(node.split(".")[0] for node in nodes)


def _gpu(name: str) -> str:
    """0000:4a:00 as nvidia-smi -i takes it; an index stays one."""
    return f"{name}.0" if name.count(":") == 2 and "." not in name else name


def _path(said: str) -> str:
    return said if said.startswith("/") else ""


def _first(pattern: re.Pattern[str], text: str) -> str:
    match = pattern.search(text[:4000])
    return next((group for group in match.groups() if group), "") if match else ""


def _of_kubernetes(facts: Facts) -> dict[str, str]:
    lines = [line.text for file in facts.log.files if file.kind == "kubernetes" for line in file.lines[:200]]
    return {
        name: next((m[1] for text in lines if (m := pattern.match(text))), "")
        for name, pattern in (("pod", _POD), ("namespace", _NAMESPACE))
    }
