"""Text of a log that speaks to who reads it, a model above all, and commands in what a model says. Pure.

No list of wordings is whole; what holds whatever a line says is in grounding, merging and the fence of the prompts. Here is
only decided which lines are no evidence, so that a model that obeyed one cannot lean on it.
"""

from __future__ import annotations

import base64
import binascii
import re

_OLD = r"(?:previous|prior|above|earlier|preceding|all|any|other|former|your|the|these|those|system|original)"
_SAID = r"(?:instructions?|prompts?|rules|guidelines|directions|orders|evidence|context|messages?|log)"
_TO_MODELS = re.compile(
    rf"\b(?:ignore|disregard|forget|override|overrule|bypass|neglect|skip)\b.{{0,20}}?\b{_OLD}\b.{{0,40}}?\b{_SAID}\b"
    r"|\byou are (?:now |no longer )?(?:an? |the |helpful )(?:\w+ ){0,3}(?:assistant|model|ai|chatbot|llm|agent|engineer|dan)\b"
    r"|\b(?:dear|attention|note to|message (?:to|for)|hey|hello|instructions? (?:to|for)) (?:the |any |all |an )?"
    r"(?:ai|llm|assistant|model|language model|chatbot|gpt|claude|agent|triage)\b"
    r"|\b(?:as|if you are|being) an? (?:ai|llm|assistant|language model)\b"
    r"|\bnew (?:system )?(?:instructions?|prompt|task|orders)\b ?:"
    r"|\b(?:system|assistant|developer|user)\b ?(?:prompt|message|instructions?|override) ?:"
    r"|(?:^|[:\])>\d] )\W{0,8}(?:system|assistant|developer|human) ?: ?(?:you|ignore|new|the|answer|i|please|this|respond|root|\{)\b"
    r"|</?(?:system|assistant|user|developer|tool|tool_result|tool_call|function_calls?|result|instructions?|log|evidence|facts|im)\b[^<>]{0,80}>"
    r"|<\|(?:im_start|im_end|system|assistant|user|end|eot_id|start_header_id|endoftext)\|?>|\[/?INST\]|<</?SYS>>"
    r"|(?:^|[:\])>\d] )#{2,} ?(?:system|instructions?|response|assistant|task)\b"
    r"|\b(?:the|your|my|correct|right|final|only|expected) (?:\w+ )?(?:(?:answer|verdict|diagnosis) (?:is|:)|(?:answer|verdict|response|output) (?:must|should|shall) be)"
    r"|\b(?:you|please|just|always|only|must|now) (?:must |should |shall |to )?(?:answer|respond|reply|conclude|classify|diagnose)"
    r"\b.{0,40}?\b(?:with|that|as|healthy|unknown|only|json)\b"
    r"|\b(?:report|output|say|answer|conclude|mark|declare)\b.{0,30}?\b(?:(?:job|run|it|this) (?:is|as|was) healthy|healthy (?:and|with|only)|[\"'`]healthy)"
    r"|[\"'](?:failure_type|root_cause(?:_class)?|cited|outcome|tool_calls?)\\?[\"'] ?:"
    r"|\b(?:reveal|print|show|send|repeat|leak|output|disclose|tell)\b.{0,30}?\b(?:your|the) (?:\w+ )?(?:system prompt|prompt|instructions|api key|key|secrets?|credentials)\b"
    r"|\b(?:call|use|invoke) the tool\b|\btool (?:result|output|call) ?:"
    r"|\b(?:execute|run) (?:this|the following|these)\b.{0,20}?\b(?:commands?|script|code)\b.{0,20}?\b(?:now|immediately|on all|as root|to fix)\b"
    r"|!\[[^\]]{0,200}\]\(|\]\((?:https?|javascript|data):|<img\b|<script\b"
    # the commonest order in other languages
    r"|\bignor(?:e[rz]?|ez|a|iere[nt]?|ar|are)\b.{0,30}?\b(?:instru\w+|anweisung\w*|istruzion\w+|consign\w+|vorherig\w+|anterior\w*|précédent\w*|precedent\w*)"
    r"|\bvergiss\b.{0,30}?\banweisung|\boubli\w+\b.{0,30}?\b(?:instructions|consignes)|\bolvida\b.{0,30}?\binstrucciones"
    r"|игнориру\w*.{0,30}?инструкц|забудь.{0,30}?инструкц|忽略.{0,12}?(?:指令|指示|说明|提示|規則|规则)|無視.{0,6}?(?:指示|命令)|(?:指示|命令).{0,6}?無視"
    r"|무시.{0,12}?(?:지시|명령)|(?:지시|명령).{0,8}?무시|تجاهل.{0,30}?التعليمات",
    re.IGNORECASE,
)
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{24,2000}={0,2}")
# What nobody should paste because a log says so: what fetches, deletes, ends, installs, sets, or goes elsewhere.
_TO = r"(?:-|/|~|\.|\$|[\w@.:/-]*(?:[-/~$@\d]|[.:](?=\w)))"  # how an option, a path, a host or a number begins
_COMMAND = re.compile(
    r"\$\(|\| ?(?:sh|bash|zsh|python\d?|sudo|tee|xargs|nc)\b"
    rf"|\b(?:curl|wget|chmod|chown|mkfs|dd if|nc|scp|rsync|base64|crontab|telnet|iptables|ssh|umount|truncate|shred) +{_TO}"
    r"|\bsudo +[a-z]|\brm +[^\s(,.;:]|\b(?:rmdir|pkill|killall|wipefs|mkfs\.\w+|xfs_repair) +[-\w/~$]"
    r"|\bkill +(?:-|\d)|\b(?:shutdown|poweroff|reboot|halt) +(?:now\b|-)"
    rf"|\b(?:scancel|qdel|bkill|sbatch|qsub|bsub) +(?:-|\d|{_TO})|\bscontrol +[a-z]+ +\w+="
    r"|\bscontrol +(?:reboot|requeue|hold|suspend|shutdown|down|delete|cancel_reboot|power)\b"
    r"|\bkubectl +(?:-\w+ +\S+ +)?(?:delete|drain|cordon|exec|apply|scale|patch|replace|edit|run|cp|taint|label)\b"
    r"|\b(?:docker|podman) +(?:rm|rmi|kill|stop|run|exec|system|volume)\b"
    r"|\bsystemctl +(?:restart|stop|kill|disable|mask|reboot|poweroff|start|isolate)\b"
    r"|\bipmitool +[-a-z]|\bgit +(?:reset|clean|push|checkout|pull|rebase)\b|\bnvidia-smi +(?:-r\b|--gpu-reset|-pm|-mig|drain)"
    r"|\b(?:export|unset|setenv) +[A-Z_][A-Z0-9_]*(?:=|\b(?= ))|\bLD_PRELOAD=|\bfind +\S+ .{0,80}-delete\b"
    r"|\b(?:bash|sh|zsh|python\d?|perl|ruby|node) +-[ce]\b"
    r"|\b(?:pip\d?|conda|npm|apt|apt-get|yum|dnf|brew|cargo|gem) +(?:install|add|update|remove)\b",
    re.IGNORECASE,
)
# Of a shell too, but parts of what a program prints, which a sentence may repeat: asserts, addresses.
_OF_SHELL = re.compile(r"&&|\|\||> ?/|\w+://|\b(?:eval|exec) +[-\w/~.$:@]*[-/~$@\d]")
_COPIED = 3  # words in a row that a step and a line of the log share make a command a copy
_PROGRAM = re.compile(
    r"`[^`]{3,200}`|\b(?:scancel|scontrol|sbatch|srun|kubectl|docker|systemctl|nvidia-smi|ipmitool|git|export|unset|mv|cp|ssh|reboot|python\d?) "
)


def speaks_to_model(text: str) -> bool:
    """Whether the line gives orders to a reader or plays a part of a conversation, in plain words or in base64."""
    if _TO_MODELS.search(text):
        return True
    return any(_TO_MODELS.search(plain) for plain in map(_decoded, _BASE64.findall(text)[:8]) if plain)


def _decoded(text: str) -> str:
    """What base64 holds, if it is text; "" otherwise."""
    try:
        found = base64.b64decode(text[: len(text) // 4 * 4]).decode("utf-8")
    except (binascii.Error, ValueError):
        return ""
    return found if found.isprintable() else ""


def holds_command(text: str, corpus: str, advice: bool = True) -> bool:
    """Whether a text of a model holds a command: a dangerous one, or in advice one of the log's own, or an address."""
    if _COMMAND.search(text):
        return True
    if not advice:
        return False
    if _OF_SHELL.search(text):
        return True
    starts = (text[match.start() :].lstrip("`").split()[:_COPIED] for match in _PROGRAM.finditer(text))
    return any(len(words) == _COPIED and " ".join(words).rstrip(".,;:`") in corpus for words in starts)
