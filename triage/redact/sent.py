"""Secrets in what is sent: addresses, headers, cookies, and arguments of known programs."""

from __future__ import annotations

import base64
import binascii
import re

from triage.redact.rules import Rule, after, is_plain

_NEXT = r"(?:[?&;]|u0026)"  # between parameters of an address, escaped for HTML or JSON too
_URL = re.compile(r"(://[^\s/:@'\"<>\[]{0,128}:)([^\s/'\"<>]{1,256}|(?!\d{1,5}/)[^\s'\"<>?@]{1,256})@")
_URL_KEY = re.compile(r"(://)((?=[A-Za-z_-]{0,60}\d)[A-Za-z0-9_-]{20,256})(?=@)")
_QUERY = re.compile(
    r"("
    + _NEXT
    + r"(?:sig|(?:x-(?:amz|goog|oss)-|q-)?signature|policy|x-(?:amz|goog|oss)-(?:security-token|credential)"
    r"|(?:aws|oss)accesskeyid|api[_-]?key|key)=)([^\s&;\"'<>\\]{6,4096})",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(authorization\\{0,3}[\"']? ?[:=] ?(?:b?\\{0,3}[\"'])?(?:(?:bearer|basic|token|digest|negotiate|apikey|aws4-hmac-sha256) )?"
    r"|\bbearer (?=[\w.~+/-]{0,200}\d|[\w.~+/-]{24}))([\w.~+/=:-]{8,8192})",
    re.IGNORECASE,
)
_DIGEST = re.compile(r"(\bdigest [^\n]{0,400}?response=\"?)([0-9a-f]{32,128})", re.IGNORECASE)
_COOKIE = re.compile(
    r"(\b(?:set-)?cookies?\\{0,3}[\"']?(?:: ?|=(?=\{)|=(?=\\{0,3}[\"']))(?:b?\\{0,3}[\"'])?)"
    r"(\{[^}]{8,8192}\}|[^\s\"'{][^\"']{7,8192})",
    re.IGNORECASE,
)
_HOOKS = re.compile(
    r"(hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d{5,25}/"
    r"|\.office\.com/webhook(?:b2)?/|feishu\.cn/open-apis/bot/v2/hook/|larksuite\.com/open-apis/bot/v2/hook/)([\w@/-]{16,512})",
    re.IGNORECASE,
)
_QUOTED = r"[\"']?"
_PROGRAMS = (  # words of its name, what stands before the secret
    ("sshpass", r"sshpass\b[^|;&\n]{0,200}? -p ?"),
    ("login", r"(?:docker|podman|helm registry|singularity remote|apptainer remote|oras|az acr) login\b[^|;&\n]{0,200}? -p ?"),
    ("curl http", r"\b(?:curl|https?)\b[^|;&\n]{0,400}? (?:-u|--user|-U|--proxy-user|--auth|-a)[ =]?[\"']?[^\s:\"']{1,80}:"),
    ("mysql mariadb", r"\b(?:mysql|mariadb)[\w-]{0,12}\b[^|;&\n]{0,300}? -p(?=[^\s-])"),
    ("redis-cli", r"\bredis-cli\b[^|;&\n]{0,200}? -a "),
    ("ipmi sqlcmd zip", r"\b(?:ipmi[\w-]{1,12}|sqlcmd|zip|unzip)\b[^|;&\n]{0,300}? -P "),
    ("mongo", r"\bmongo\w{0,8}\b[^|;&\n]{0,300}? -p[ =]?(?=[^\s-])"),
    ("ldap", r"\bldap\w{3,10}\b[^|;&\n]{0,300}? -w "),
    ("plink pscp", r"\b(?:plink|pscp)\b[^|;&\n]{0,200}? -pw "),
    ("smbclient", r"\bsmbclient\b[^|;&\n]{0,200}? -U ?[^\s%]{1,80}%"),
    ("lftp", r"\blftp\b[^|;&\n]{0,200}? -u ?[^\s,]{1,80},"),
    ("pass:", r"\bopenssl\b[^|;&\n]{0,300}? pass:"),
    ("configure set", r"\bconfigure set \S{0,60}(?:key|token|secret) "),
)  # fmt: skip
_PIPED = re.compile(
    r"(\becho (?:-n )?[\"']?)([^\s\"'|;&]{3,256})(?=[\"']? ?\| ?(?:sudo -S|[^|;&\n]{0,80}--password-stdin|[^|;&\n]{0,80}--passphrase-fd))"
)
_DOCKER = re.compile(r"(\"auth\": ?\")([A-Za-z0-9+/]{8,4096}={0,2})(?=\")")


def _with_colon(match: re.Match[str]) -> str:
    """Docker keeps `user:password` as base64; other values of `auth` are words."""
    try:
        plain = base64.b64decode(match[2], validate=True)
    except (binascii.Error, ValueError):
        return match[0]
    return f"{match[1]}[redacted:password]" if b":" in plain else match[0]


def _in_url(match: re.Match[str]) -> str:
    return match[0] if is_plain(match[2]) and not match[2].isdigit() else f"{match[1]}[redacted:password]@"


SENT = (
    Rule(("://",), _URL, _in_url, re.compile("://[^ ]{0,400}@")),
    Rule(("://",), _URL_KEY, after("token"), re.compile("://[^ ]{0,400}@")),
    Rule(("sig", "key=", "policy=", "credential=", "-token=", "keyid="), _QUERY, after("signature"), re.compile(_NEXT)),
    Rule(("authorization", "bearer "), _HEADER, after("authorization")),
    Rule(("response=",), _DIGEST, after("authorization")),
    Rule(("cookie",), _COOKIE, after("cookie")),
    Rule(("hook",), _HOOKS, after("webhook")),
    Rule(('"auth"',), _DOCKER, _with_colon),
    Rule(("echo ",), _PIPED, after("password")),
    *(
        Rule(tuple(words.split()) if words != "configure set" else (words,),
             re.compile(f"({before}{_QUOTED})" + r"([^\s\"']{1,256})"), after("password"))
        for words, before in _PROGRAMS
    ),
)  # fmt: skip
