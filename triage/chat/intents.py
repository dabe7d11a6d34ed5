"""What a plain question asks for: by its words, else by its likeness to examples. Pure."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Embed = Callable[[Sequence[str]], Sequence[Any]]  # vectors of length 1
ALIKE = 0.62  # cosine of the embedding that ships, from which on an example means the same
MOST_ASKED = 400  # characters that are looked at

_LAST_TIME = r"(?:last time|before|previous|earlier|in the past|back then|the other day|last (?:week|month)|ago)"
_MACHINE = r"(?:node|nodes|hardware|gpu|gpus|card|machine|host|infra\w*|cluster|fabric|network|platform|system|you|yours|them|their)"
_PROGRAM = (
    r"(?:code|script|my|mine|me|us|our|bug|program|config\w*|user|application|app|software|training|job|model|data)"
)
_STATE = r"(?:(?:to blame|at fault)|(?:really )?(?:bad|broken|faulty|ok(?:ay)?|fine|good|healthy|sick|dead|down|alive))"
# In this order: what is particular stands before what is general.
_WORDS: tuple[tuple[str, str], ...] = (
    ("help", r"^(?:help|hi|hello|hey|\?+|what can (?:i|you)\b.*|how do(?:es)? (?:this|i use)\b.*)$"),
    ("thanks", r"^(?:thanks?|thank you|thx|ok(?:ay)?|great|good|cool|perfect|nice)\b[\s!.]*$"),
    ("resolve", r"\b(?:record|note down|mark|save|close|log)\b.{0,60}\b(?:fix\w*|drain\w*|work\w*|solved|resolved|outcome|confirmed|rejected|verdict)\b|\b(?:it|this|that) (?:is|was|has been) (?:now )?(?:fixed|resolved|solved|confirmed)\b|^we (?:fixed|drained|replaced|solved|resolved|reseated|rebooted)\b|\bwe (?:fixed|drained|replaced|swapped|reseated|rebooted|changed)\b.{1,60}\b(?:work(?:s|ed)|fine|runs|running|helped|solved)\b|^(?:you were|the diagnosis was|that was) (?:right|wrong|correct)\b"),
    ("handover", r"\bhand(?:ing)?[ -]?(?:it )?over\b|\b(?:write|make|draft|give me|prepare)\b.{0,30}\b(?:summary|ticket|report|post.?mortem|message|note|update|mail|email)\b|\bsumm?ari[sz]e\b|\bnext shift\b|\btl;?dr\b"),
    ("fixed", rf"\b(?:fix(?:ed|es)?|solved?|resolved?|helped?|worked|did (?:we|they|you|i) do|done about)\b.{{0,40}}\b{_LAST_TIME}\b|{_LAST_TIME}.{{0,40}}\b(?:fix|solv|resolv|help|did (?:we|they|you|i) do)|\bwhat (?:has |have )?(?:fixed|solved|helped|resolved)\b|\b(?:known|past|previous|earlier) fix(?:es)?\b|\bhow (?:was|were|did) .{{0,30}}\b(?:fixed|solved|resolved|fix|solve|resolve)\b"),
    ("todo", r"\b(?:will|would|going to|could|can|might) (?:it|this|that|the (?:job|run|training))\b.{0,30}\b(?:again|come back|recur)\b"),
    ("before", r"\b(?:happen\w*|seen?|saw|had|fail\w*|occur\w*|broke\w*|hit|know\w*|met)\b.{0,40}\b(?:before|already|again|previously|earlier|in the past|other jobs?|elsewhere)\b|\bfirst time\b|\bhow (?:often|many times)\b|\brecurr\w*|\brepeat\w*|^(?!.*\b(?:i|we|you|use\w*|run\w*|start\w*|get\w*|going|up|back)\b)(?:\S+ ){0,5}again\?|\bsimilar\b|\bothers? like (?:this|it)\b|\b(?:any(?:one|body)|who|what) else (?:is |was |were )?(?:affected|hit|down|failing|ha[ds]|have|having|sees?|saw|seen|got)\b|\bother (?:jobs|users)\b|\bnew (?:failure|problem|issue)\b|\bknown (?:issue|problem|failure)\b|\b(?:history|past) of (?:this|it)\b"),
    ("rank", r"^(?:is|was|did|has|could|does)\b.{0,40}\brank \d+\b"),
    ("node", rf"^(?:is|was|are) (?!E\d+ )(?=\S*\d)[\w.-]+ {_STATE}\b"),
    ("whose", rf"\b{_MACHINE}\b.{{0,30}}\bor\b.{{0,25}}\b{_PROGRAM}\b|\b{_PROGRAM}\b.{{0,30}}\bor\b.{{0,25}}\b{_MACHINE}\b|\b(?:my|our|whose|your|their|user'?s?) (?:own )?(?:fault|bug|mistake|problem|code|side|end|script)\b|\bwho(?:'s|se| is) (?:to blame|fault|responsible|problem)\b|\b(?:is|was|could) (?:it|this|that) (?:be )?(?:a |an |the |my |our )?(?:hardware|infra\w*|code|software|user|bug|script|config\w*|cluster|platform)\b|\b(?:hardware|software|infra\w*|user|code) (?:problem|issue|error|fault|failure|bug)\b|\bwho (?:broke|caused|did)\b|\bwho (?:do|should|can|must|shall) (?:i|we) (?:call|page|ask|wake|contact|ping)\b|\bblame\b"),
    ("nodes", r"\b(?:drain|cordon|exclude|quarantine|blacklist|isolate)\w*\b|\b(?:remove|avoid|replace)\w*\b.{0,20}\b(?:nodes?|hosts?|machines?|gpus?|cards?)\b|\b(?:which|what|bad|faulty|broken|suspect\w*|guilty) (?:\w+ )?(?:nodes?|hosts?|machines?|gpus?|servers?|cards?)\b|\bsuspects?\b|\bculprit\b"),
    ("ranks", r"\b(?:which|what|first|other|how many|all) (?:other |failed |bad )?ranks?\b|\bwho (?:failed|died|crashed) first\b|\bfailed first\b|\bfirst to (?:fail|die|crash)\b"),
    ("restart", r"\b(?:restart|resubmit|re-?run|requeue|re-?launch|retry|re-?try|resume|try again|run (?:it|this|the job) again|(?:running|going|up|started) again|start (?:it|the job) again|re-?queue|relaunch)\w*\b"),
    ("lost", r"\b(?:lost|lose|losing|cost|costs|waste[ds]?|damage|gpu.?hours?|expensive|threw away|thrown away)\b|\bhow much (?:time|work|compute)\b"),
    ("progress", r"\b(?:how far|last (?:step|checkpoint|iteration)|progress|which step|what step|checkpoint|world size|how many (?:ranks|steps))\b"),
    ("todo", r"\bwhat (?:should|shall|do|can|must|would|could|to) (?:i|we|you|do|one)\b|\bwhat to do\b|\bnext steps?\b|\bwhat(?:'?s| is| comes)? next\b|\bhow (?:do|can|should|could|would|to) (?:i|we|you|one)?\s*(?:fix|solve|repair|mitigate|recover|prevent|avoid|get)|\bfix (?:it|this)\b|\bremed\w*|\bmitigat\w*|\bnow what\b|\baction\b|\brecommend\w*|\bsuggest\w*|\badvice\b|\bworkaround\b|\brunbook\b|\bprevent\b"),
    ("timeline", r"\b(?:timeline|chronolog\w*|sequence|in (?:what|which) order|order of events|what happened first|step by step|course of)\b"),
    ("log", r"\b(?:show|see|print|display|look at|open|read|give me|list|cat|tail|grep)\b.{0,60}\b(?:ranks?|nodes?|lines?|logs?|around|file|traceback|trace|stack|failure|error|output|E\d+)\b|\brank \d+\b|\blast (?:words|lines)\b|^lines?\b|\baround (?:the |it|that|line)|\bwhat (?:did|does|do) .{1,40} (?:say|print|log|report)\b|\btraceback\b"),
    ("log", r"\bwhat (?:happened|was (?:said|logged)|is there) (?:at|around) \d{1,2}:\d\d\b|\bat \d{1,2}:\d\d\b"),
    ("when", r"\b(?:when|since when|what time|at what time|how long|what hour|what date|start(?:ed)? failing|begin|began|first sign)\b"),
    ("sure", r"\b(?:sure|certain\w*|confiden\w*|trust|reliable|believe|prove|proof|guess\w*|really|how do you know|evidence for|probab\w*|likely|doubt)\b"),
    ("unseen", r"(?:\bnot|n't|\bnever) (?:you |it )?(?:look|see|seen|read|check|show|consider|analy)\w*|\b(?:left out|leave out|miss(?:ed|ing)?|skip\w*|ignor\w*|overlook\w*|unread|blind spot\w*|dropped|filtered|hidden)\b|\bwhich files\b|\bwhat (?:files|logs) (?:did|have)\b|\bwhat else should (?:i|we) (?:fetch|look|check)\b"),
    ("else", r"\bcould (?:it|this|that) (?:also )?be\b|\bwhat else\b|\b(?:other|another|alternative|rival) (?:cause|reason|explanation|possibilit|hypothes)\w*|\bhypothes[ie]s\b|\brul(?:e|ed) out\b|\binstead\b|\bmaybe it\b|\bwhy not\b"),
    ("facts", r"\b(?:which|what) job\b|\bwhose job\b|\bjob id\b|\bwho (?:ran|owns|submitted|started)\b|\bwhich incident\b|\bwhat (?:am i|are we) looking at\b"),
    ("why", r"\b(?:why|cause[ds]?|reason|what (?:went )?wrong|what(?:'?s| is| was)? ?(?:the )?(?:wrong|happen\w*|going on|up|broken|the (?:problem|matter|issue|error|failure|cause|verdict|diagnosis))|explain|root|killed|kill it|died|die|crash\w*|fail\w*|broke|hung|hang|stuck|verdict|diagnosis|tell me (?:more|about))\b"),
)  # fmt: skip
_COMPILED = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _WORDS]
_ASKS = re.compile(r"(?i)\?\s*$|^(?:how|when|why|what|who|which|where|is|was|are|were|did|has|have|does)\b")
_REQUESTS = re.compile(r"(?i)^(?:please )?(?:can|could|would|will) (?:you|we|i)\b")
_HISTORY_WORDS: tuple[tuple[str, str], ...] = (
    ("help", _WORDS[0][1]),
    ("thanks", _WORDS[1][1]),
    ("open", r"\b(?:open|unresolved|unconfirmed|pending|no (?:outcome|verdict)|not (?:yet )?(?:resolved|confirmed|closed))\b"),
    ("cost", r"\b(?:cost\w*|gpu.?hours?|lost|lose|waste\w*|expensive)\b"),
    ("nodes", r"\b(?:nodes?|hosts?|machines?|gpus?|servers?)\b"),
    ("right", r"\b(?:right|accura\w*|correct\w*|wrong|trust|reliable|good are you)\b"),
    ("types", r"\b(?:most|often|common\w*|frequent\w*|top|kinds?|types?|causes?|what fails|stat\w*|trend\w*|how many|count|summar\w*|overview|break ?down)\b"),
    ("last", r"\b(?:last|latest|newest|recent\w*|today|tonight|yesterday|list|show|incidents?|what happened|this week|night)\b"),
)  # fmt: skip
_HISTORY = [(name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _HISTORY_WORDS]
# What means the same in other words; for the likeness only.
EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "whose": ("is the machine broken or did I make a mistake in my program", "do I call the operators or the developers"),
    "log": ("print the output of one process near the crash", "I want to read what the worker wrote"),
    "fixed": ("how did we get out of this the previous time", "what was the solution in the earlier case"),
    "handover": ("prepare a text for my colleague who takes over", "summarize everything for the morning team"),
    "why": ("what is the origin of the problem", "what took the job down", "give me the diagnosis"),
    "todo": ("how do I proceed from here", "what are the instructions for recovery", "tell me how to get it running"),
    "nodes": ("which servers need to be taken out of service", "name the defective computer"),
    "restart": ("is it okay to launch the job once more", "can I put it back in the queue"),
    "when": ("at which moment did things go wrong", "what is the time of the first error"),
    "unseen": ("what information is not available to you", "which parts were not analysed"),
    "sure": ("how strong is this conclusion", "is that proven or a hunch"),
    "lost": ("how big is the loss of work", "how many hours of compute were thrown away"),
    "before": ("is this a known issue", "did other people run into the same thing"),
    "timeline": ("list the events one after another", "what came first and what followed"),
    "ranks": ("which worker process failed before the others",),
    "progress": ("how far did the training get", "what was saved last"),
    "else": ("what other explanations are there", "might something different be responsible"),
    "facts": ("what job is this and who owns it",),
}  # fmt: skip


def of_question(said: str) -> str:
    """The name of what a question about an incident asks for, by its words; "" where they do not tell."""
    tells = not is_question(said) or _REQUESTS.match(said)
    return _first(_COMPILED if tells else [known for known in _COMPILED if known[0] != "resolve"], said)


def is_question(said: str) -> bool:
    return _ASKS.search(said[-MOST_ASKED:].strip()) is not None


def of_history(said: str) -> str:
    """The same of a question about all incidents."""
    return _first(_HISTORY, said)


def by_likeness(said: str, embed: Embed | None) -> str:
    """The intent of the example that is most like the question, where one is like it enough; "" else."""
    if embed is None or len(said.split()) < 2:
        return ""
    names, vectors = _examples(embed)
    (asked,) = embed([said[:MOST_ASKED]])
    scores = [float(asked @ vector) for vector in vectors]
    best = max(range(len(scores)), key=scores.__getitem__)
    return names[best] if scores[best] >= ALIKE else ""


@functools.lru_cache(2)
def _examples(embed: Embed) -> tuple[Sequence[str], Sequence[Any]]:
    texts = [(name, text) for name, found in EXAMPLES.items() for text in found]
    return [name for name, _ in texts], embed([text for _, text in texts])


def _first(known: Sequence[tuple[str, re.Pattern[str]]], said: str) -> str:
    text = " ".join(said[:MOST_ASKED].split())
    return next((name for name, pattern in known if pattern.search(text)), "")
