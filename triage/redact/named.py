"""Secrets that a name in front of them tells: `password=`, `api_key: `, `--token`.

A name alone is not enough where programs use the same word for something else: training logs are full of tokens that
are no secrets, so a value behind `token` must look like one too.
"""

from __future__ import annotations

import re

from triage.redact.rules import Rule, after, after_if, is_mixed, is_opaque, is_place, is_plain

_SIGN = r"(\\{0,3}[\"']?\]?(?:\s{0,3}(?:[:=]>?|->)\s{0,3}|, ?(?=\\{0,3}[\"'])))"
_VALUE = r"(b?\\{0,3}[\"'])?((?(3)[^\"'\\]|[^\s,;\"'&)}\]|{(\[])(?(3)[^\"'\\]{0,8191}|[^\s,;\"'&)}\]|]{0,8191}))"
_WHOSE = r"(?: (?:for|of) [^\s:=]{1,80}(?= ?[:=]))?"
# What makes a pattern below worth a try, over the text in lower case: a sign behind the name, or one word.
_SIGNED = re.compile(
    r"(?:password|passwd|passphrase|passcode|_?pass|pwd|secret|credentials?|key|auth|client-key-data|token)"
    r"(?:[_-]\w{1,20}){0,2}(?: (?:for|of) \S{1,80})?(?:\\{0,3}[\"']?\]? {0,3}(?:[:=]|->)|\\{0,3}[\"'], ?\\{0,3}[\"'])"
)
_SURE = re.compile(
    r"(passw(?:or)?d" + _WHOSE + r"|passphrase|passcode|(?-i:(?<=[A-Z]_)PASS)"
    r"|(?:db|user|mysql|redis|smtp|mail|admin|root|ldap|bind|storage|ftp|proxy|tls|key|trust)_?pass"
    r"|(?:(?<=[a-z]_)|(?<![\w.$-]))pwd(?=[\"'\\ ]{0,3}[:=]\s{0,3}(?!~|\.{0,2}/|\$|[\"']?[A-Za-z]:|[\"']\.{0,2}/)\S)"
    r"|secret|credentials?|apikey|client-key-data|accesskeyid"
    r"|(?:secret|private|access|account|auth|api|encryption|license)[ ._-]?key)" + _SIGN + _VALUE,
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"((?:(?<![a-z])|(?<=access)|(?<=auth)|(?<=refresh)|(?<=session)|(?<=bearer)|(?<=api)|(?<=id)|(?<=identity))"
    r"(?<![ebpunmsck][oaenlit][sdkp]_)(?<!per_)(?<!mask_)(?<!next_)(?<!image_)(?<!query_)(?<!special_)token)"
    + _SIGN
    + _VALUE,
    re.IGNORECASE,
)
# Names that mean other things too: only what looks random, and is no path.
_PERHAPS = re.compile(
    r"((?:subscription|storage|wandb|comet|neptune|openai|anthropic|munge|ngc|kaggle|vault)[ ._-]?key"
    r"|(?:signing|master|hf|function|shared|deploy|webhook|jwt|bot|client|session|tower|gpg|ssh|pg)[._-]?key|(?<![a-z])_auth|(?<![a-z])(?<!first )(?<!second )(?<!ward )(?<!th )pass"
    r"|(?:secret|passw(?:or)?d|token)s?_(?!(?:file|path|name|id|ids|ref|arn|count|len|type|url|dir|version|embedding\w*)\b)\w{1,20})"
    + _SIGN
    + _VALUE,
    re.IGNORECASE,
)
_FLAG = re.compile(
    r"((?:^|\s)--?(?:[a-z0-9]{1,30}[_-]){0,4}"
    r"(?:password|passwd|passphrase|token|secret|api[_-]?key|access[_-]?key|secret[_-]?key|credentials?) [\"']?)"
    r"([^\s\"'-][^\s\"']{2,4096})",
    re.IGNORECASE,
)
_LISTED = re.compile(
    r"(\"name\": ?\"\w{0,60}(?:KEY|TOKEN|SECRET|PASSWORD)\", ?\"value\": ?\")([^\"]{1,8192})", re.IGNORECASE
)
_ELEMENT = re.compile(
    r"(<(?:\w{0,40}(?:password|passwd|secret|token|apikey|access_?key))>"
    r"|<name>[\w.-]{0,80}(?:password|secret|token|[._-]key)[\w.-]{0,20}</name>\s{0,20}<value>)([^<]{3,8192})(?=</)",
    re.IGNORECASE,
)
_MORE_WORDS = re.compile(r"[ \t]+[A-Za-z]{2}")


def _named(match: re.Match[str]) -> str:
    """A value that stands alone behind its name is a secret; the first word of a sentence is not."""
    name, sign, quote, value = match.groups()
    if len(value) < 3 or is_plain(value):
        return match[0]
    if not quote and sign.isspace() is False and sign.endswith(" ") and _MORE_WORDS.match(match.string, match.end()):
        return match[0] if not (is_opaque(value) or is_mixed(value)) else _replaced(match, "secret")
    return _replaced(match, "password" if name.lower().startswith(("pass", "pwd")) else "secret")


def _named_token(match: re.Match[str]) -> str:
    value = match[4]
    return match[0] if is_plain(value) or not is_opaque(value) else _replaced(match, "token")


def _perhaps(match: re.Match[str]) -> str:
    value = match[4]
    return match[0] if is_plain(value) or is_place(value) or not is_opaque(value) else _replaced(match, "secret")


def _replaced(match: re.Match[str], kind: str) -> str:
    return f"{match[1]}{match[2]}{match[3] or ''}[redacted:{kind}]"


_NAMES = ("pass", "pwd", "secret", "credential", "key", "auth")
NAMED = (
    Rule(
        ("password", "token", "passwd", "secret", "key", "credential", "passphrase"),
        _FLAG,
        after("secret"),
        re.compile(r"(?:password|passwd|passphrase|token|secret|key|credentials?) [\"']?\w"),
    ),
    Rule(('"value"',), _LISTED, after("secret")),
    Rule(("</",), _ELEMENT, after("secret")),
    Rule(_NAMES, _SURE, _named, _SIGNED),
    Rule(("token",), _TOKEN, _named_token, _SIGNED),
    Rule((*_NAMES, "token"), _PERHAPS, _perhaps, _SIGNED),
)
PHRASES = (
    Rule(  # with password X, the password is X; a word of a sentence has no digit in it
        ("password", "passwd", "passphrase", "passcode", "pwd", "secret"),
        re.compile(
            r"(\b(?:with|using|and|the|your|new|old|default|user) (?:password|passwd|passphrase|passcode|pwd|secret)"
            r"(?: (?:is|was|set to|changed to)|)\s?:? [\"'`]?)([^\s\"'`,;]{3,256})",
            re.IGNORECASE,
        ),
        after_if("password", is_mixed),
    ),
    Rule(  # whatever the word is like
        (" as ", " for "),
        re.compile(
            r"(\bwith (?:password|passwd|passphrase|passcode|pwd) [\"'`]?)(?!file|auth|prompt|protect|less|hash)([^\s\"'`,;]{3,256})(?=[\"'`]? (?:as|for) (?:user )?\w)",
            re.IGNORECASE,
        ),
        after("password"),
    ),
    Rule(
        ("is ", "was ", "set to"),
        re.compile(
            r"((?:password|passphrase|passcode|secret|(?:access|api|auth) (?:token|key)) (?:is|was|set to):? [\"'`]?)"
            r"([^\s\"'`,;]{3,256})",
            re.IGNORECASE,
        ),
        after_if("password", is_mixed),
    ),
    Rule(("identified by", "password '", 'password "'),
        re.compile(r"(\b(?:identified by|password) [\"'])([^\"'\s]{3,256})(?=[\"'])", re.IGNORECASE), after("password")),
    Rule(("using key", "with key"),
        re.compile(r"(\b(?:using|with) key:? [\"'`]?)([0-9a-f]{32,}|(?=[A-Za-z+/]{0,40}\d)[A-Za-z0-9+/_=-]{32,})(?![\w-])",
                   re.IGNORECASE), after_if("api-key", is_opaque)),
    Rule(("login", "api"),
        re.compile(r"((?:wandb[ ._-]?login|api[ _-]?key)[^\n]{0,60}?(?<![0-9a-f]))([0-9a-f]{40})(?![0-9a-f])", re.IGNORECASE),
        after("api-key")),
    Rule(("password",),  # .netrc, in one line or a line each
        re.compile(r"(\b(?:login|user) \S{1,100}\s{1,20}password\s{1,20}|^\s{0,20}password\s{1,20}(?=\S{1,256}\s{0,20}$))(\S{3,256})"),
        after("password")),
    Rule(("username",),  # kaggle.json
        re.compile(r"(username[\"']: ?[\"'][^\"']{1,100}[\"'], ?[\"']key[\"']: ?[\"'])([0-9a-f]{32})(?=[\"'])"), after("api-key")),
    Rule(("requirepass", "masterauth"), re.compile(r"(\b(?:requirepass|masterauth) )(\S{3,256})", re.IGNORECASE),
        after("password")),
)  # fmt: skip
