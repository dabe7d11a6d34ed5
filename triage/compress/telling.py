"""Lines that the scan may drop when a proven rule says so, but for which no rule of a model is trusted.

The guard of the scan knows what is trouble by its form; here is what may be trouble, or part of the account of it.
"""

from __future__ import annotations

import re

# Words that stand in routine lines too.
_WORDS = re.compile(
    r"(?<![\w-])(?:lost|gone|dead|died|dying|hung|stuck|stalled|deadlock\w*|unreachable|unresponsive|unhealthy|unavailable"
    r"|disconnected|corrupt\w*|evicted|preempted|cancell?ed|exhausted|interrupted|gave up|giving up|(?:closed|reset) by"
    r"|missing|mismatch\w*|exceed\w*|overflow\w*|unexpected(?:ly)?|invalid|illegal|refus\w+|reject\w+|denied|retry(?:ing)?"
    r"|timeouts?|throttl\w+|degraded|leak\w*|drain\w*|wait(?:ing|ed|s)? (?:for|on)|very slow|too slow|slower|down|disabled state"
    r"|vanish\w*|disappear\w*|abandon\w*|lags?|lagg(?:ed|ing)|straggl\w+|watchdogs?|hangs?|hanging|oom\w*|out of memory"
    r"|infs?|nans?|infinit[ey]|diverg\w+|blew up|poisoned|flap(?:s|p(?:ed|ing))|bail(?:s|ed|ing)?(?: out)?|evict\w*"
    r"|no (?:progress|route|pulse|heartbeats?|response|answer|reply|such|longer)|(?:disk|device|volume|quota|memory) (?:is )?full"
    r"|(?:not enough|insufficient|used up)|broken|read-only|stale|hung up|hang-?up|xid|ecc|thermal|throttle|slowdown"
    r"|not (?:in (?:the )?(?:barrier|group|job|world|cluster)|found|usable|alive|ready|running|healthy)|inactive"
    r"|bad|incomplete|truncated|malformed|quit(?:s|ting)?|kick(?:ed|ing)|(?:went|taken|took|took our \w+) away"
    r"|left the (?:group|job|ring|cluster|world|mesh)|removed from|restart(?:ed|ing)|suspect(?:ed|s)?|terminat\w+"
    r"|shut(?:ting)? down|unrecover\w+|asserts?|assertion|kill\w*|behind|never|is over"
    r"|can't|couldn't|could not|can not|(?:does not|doesn't) exist|nxdomain"
    r"|not (?:responding|answering|reported|reachable|finite|in time)|stopped (?:answering|responding)|no space|time limit)(?![\w-])",
    re.IGNORECASE,
)
# Numbers that no success has, names of signals with whatever hangs on them.
_CODES = re.compile(
    r"(?i:\berrno\b|\b(?:rc|ret|retcode|returncode|return value)\s?(?:[=:]|is)?\s?(?:-\d|[1-9])"
    r"|\bstatus[ :=]{1,3}1[2-5]\d\b)|SIG(?:KILL|TERM|SEGV|ABRT|INT|HUP|BUS|USR|QUIT|PIPE)"
)
# The plainest words of trouble in the languages that are met: an honest few, no dictionary.
_ABROAD = re.compile(
    r"\b(?:fehler\w*|fehlgeschlagen|gescheitert|abgebrochen|abbruch|abgestürzt|verschwunden|verloren|getrennt|beendet"
    r"|unterbrochen|unerreichbar|nicht erreichbar|hängt|zeitüberschreitung|kein speicher|abgelaufen"
    r"|erreur\w*|échec\w*|échou\w*|interrompu\w*|perdue?s?|injoignable\w*|disparue?s?|abandonn\w*|arrêté\w*"
    r"|tuée?s?|expiré\w*|plantée?s?|fall[oó]|fallid\w+|abortad\w+|perdid\w+|inalcanzable\w*|agotad\w+"
    r"|interrumpid\w+|desconectad\w+|desapareci\w+|caíd[oa]s?|muert[oa]s?|terminad[oa]s?)\b"
    r"|失败|错误|异常|断开|终止|超时|丢失|崩溃|中断|挂起|卡住|无法|不足|不可达|死锁|掉线|消失|停止"
    r"|失敗|エラー|切断|終了|タイムアウト|クラッシュ|応答な|応答しな|消え|デッドロック",
    re.IGNORECASE,
)
# The level in front of a source file, as TensorFlow and XLA write it.
_LEVEL = re.compile(r"(?:^|[\s:\]])[EF] [\w./-]{1,200}\.(?:cc|cpp|cu|h|py):\d+\]")
# A piece of a frame, of a traceback that the lines of other ranks have torn apart or of a stack that a profiler took; a
# row of torchrun's failure report.
_FRAME = re.compile(
    r"\bFile \"|\.(?:pyx?|cc|cpp|cu|c|h|so|java)\"?, line\b|\", line \d"
    r"|\([\w./<>-]+\.(?:pyx?|cc|cpp|cu|c|h):\d+\)\s*$"
    r"|^\s*(?:time|host|rank|exitcode|error_file|traceback) {1,6}: "
)
# The line of source that a traceback prints under a frame.
_SOURCE = re.compile(
    r"(?:return|raise|yield|await|assert|del|async|lambda|global|nonlocal)\b|(?:self|cls|super\(\))[.\[(]"
    r"|(?:def|class) \w+[(:]|(?:from [\w.]+ )?import [\w.]+(?: as \w+)?(?:,|$)"
    r"|(?:if|elif|for|while|with|except)\b.*:\s*(?:#.*)?$|(?:else|try|finally):"
    r"|[A-Za-z_*][\w.\[\]'\", *]{0,120} [-+*/|&@]?= .{0,400}[\w\])]\(|= .{0,400}\w\("
    r"|[a-z_][\w.]{0,80}(?:\[[^\]]{0,80}\])?\((?:.*\)[\s\])]*|[^)]*)(?:#.*)?$|@[a-z_][\w.]+(?:\(.*)?$|.*# type: ignore"
)


def telling(line: str) -> bool:
    """Whether the line has a word, or the level, of trouble."""
    return any(pattern.search(line) is not None for pattern in (_WORDS, _CODES, _ABROAD, _LEVEL))


def is_frame(line: str) -> bool:
    """Whether the line is a frame of a traceback, or a piece of one."""
    return _FRAME.search(line) is not None


def is_source(body: str) -> bool:
    """Whether the line, what stands in front of it left out, may be the source line of a frame."""
    return _SOURCE.match(body.strip()) is not None
