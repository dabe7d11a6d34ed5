"""Secrets out of log text, before anything stores, shows or sends it.

Two ways to know a secret: it has the form of one (a key with a known prefix, a JSON web token, a password in a URL), or
a name says that what follows is one. A name alone is not enough where programs use the same word for something else:
training logs are full of tokens that are no secrets, so a value behind `token` must look like one too.
"""

from __future__ import annotations

import functools
import re

_KNOWN = (  # what it starts with in lower case, kind, form
    ("sk-", "api-key", re.compile(r"(?<![A-Za-z0-9_-])sk-(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{16,}")),
    ("aiza", "api-key", re.compile(r"(?<![\w-])AIza[\w-]{20,}")),
    ("nvapi-", "api-key", re.compile(r"(?<![\w-])nvapi-[\w-]{20,}")),
    ("gsk_", "api-key", re.compile(r"(?<!\w)gsk_\w{20,}")),
    ("npm_", "api-key", re.compile(r"(?<!\w)npm_\w{20,}")),
    ("dckr_", "api-key", re.compile(r"(?<!\w)dckr_pat_[\w-]{20,}")),
    ("pypi-", "api-key", re.compile(r"(?<!\w)pypi-[\w-]{40,}")),
    ("hf_", "hf-token", re.compile(r"(?<!\w)hf_[A-Za-z0-9]{20,}(?!\w)")),
    ("api_org_", "hf-token", re.compile(r"(?<!\w)api_org_[A-Za-z0-9]{20,}(?!\w)")),
    ("gh", "git-token", re.compile(r"(?<!\w)gh[pousr]_[A-Za-z0-9]{20,}")),
    ("github_pat_", "git-token", re.compile(r"(?<!\w)github_pat_\w{20,}")),
    ("glpat-", "git-token", re.compile(r"(?<!\w)glpat-[\w-]{16,}")),
    ("xox", "slack-token", re.compile(r"(?<!\w)xox[abeoprs]-[\w-]{10,}")),
    ("akia", "aws-key", re.compile(r"(?<![A-Za-z0-9])AKIA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    ("asia", "aws-key", re.compile(r"(?<![A-Za-z0-9])ASIA[A-Z0-9]{16}(?![A-Za-z0-9])")),
    ("eyj", "jwt", re.compile(r"(?<![\w-])eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{0,4096}){0,3}")),
)
# Over the line in lower case. Most lines hold none of these words, and of those that do few go on as the hint says.
# Alternatives that start with a letter, each for itself, are what `re` looks for fastest.
_WORDS = re.compile(
    r"key|tok|pass|_pwd|auth|secret|cred|sk-|hf_|ghp_|gho_|ghu_|ghs_|ghr_|_pat_|glpat|xox|akia|asia|aiza|eyj|nvapi|gsk_|npm_"
    r"|pypi-|api_org|bearer|cookie|login|curl|sig|://"
)
_HINT = re.compile(
    r"sk-|hf_|gh[pousr]_|hub_pat_|glpat-|xox|a[ks]ia|aiza|eyj|nvapi-|gsk_|npm_|dckr_|pypi-|api_org_"
    r"|://[^ /]*@|private key|[?&](?:x-|sig|key=|aws)|authorization|bearer |cookie|sshpass|login|curl |\"value\""
    r"|(?:password|passwd|passphrase|_pass|_pwd|secret|credentials?|key|token)"
    r"(?:\\?[\"']?\]? {0,3}[:=]|\\?[\"'], ?\\?[\"']| [\"']?\w)"
)
# A line of a private key, whatever stands in front of it.
_KEY_LINE = re.compile(r"(?:^|[\s\"'`+])([A-Za-z0-9+/]{60,80}={0,2})(?:\\n?)?[\"',]{0,2}\s*$")
_KEY_BEGIN = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY")
_KEY_END = re.compile(r"-----END [A-Z ]{0,30}PRIVATE KEY[A-Z ]{0,10}-----")
_URL = re.compile(r"(://[^\s/:@'\"<>\[]{0,128}:)([^\s/'\"<>]{1,256})@")
_QUERY = re.compile(
    r"([?&](?:sig|signature|x-(?:amz|goog)-(?:signature|security-token|credential)|awsaccesskeyid|key)=)"
    r"([^\s&;\"'<>]{6,4096})",
    re.IGNORECASE,
)
_HEADER = re.compile(
    r"(authorization\\?[\"']? ?[:=] ?\\?[\"']?(?:(?:bearer|basic|token|digest|apikey|aws4-hmac-sha256) )?"
    r"|\bbearer (?=[\w.~+/-]{0,200}\d))([\w.~+/=:-]{8,8192})",
    re.IGNORECASE,
)
_COOKIE = re.compile(r"(\b(?:set-)?cookie\\?[\"']?: ?\\?[\"']?)([^\s\"'][^\"']{7,8192})", re.IGNORECASE)
_SIGN = r"(\\?[\"']?\]?(?:\s{0,3}[:=]>?\s{0,3}|, ?(?=\\?[\"'])))"
_VALUE = r"(\\?[\"'])?((?(3)[^\"'\\]|[^\s,;\"'&)}\]|{(\[])(?(3)[^\"'\\]{0,8191}|[^\s,;\"'&)}\]|]{0,8191}))"
_SURE = re.compile(
    r"(passw(?:or)?d|passphrase|(?-i:(?<=[A-Z]_)PASS)|(?<=[a-z]_)pwd(?=[\"'\\ ]{0,3}[:=]\s{0,3}[^\s/])|secret|credentials?|apikey"
    r"|(?:secret|private|access|account|auth|api|encryption|license)[ _-]?key)" + _SIGN + _VALUE,
    re.IGNORECASE,
)
_TOKEN = re.compile(
    r"((?:(?<![a-z])|(?<=access)|(?<=auth)|(?<=refresh)|(?<=session)|(?<=bearer)|(?<=api)|(?<=id))"
    r"(?<![ebpunmsck][oaenlit][sdkp]_)(?<!per_)(?<!mask_)(?<!next_)(?<!image_)(?<!query_)(?<!special_)token)"
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
_NAMED = re.compile(
    r"(\"name\": ?\"\w{0,60}(?:KEY|TOKEN|SECRET|PASSWORD)\", ?\"value\": ?\")([^\"]{1,8192})", re.IGNORECASE
)
_LOGIN = re.compile(
    r"((?:sshpass|docker login|podman login)\b[^|;&]{0,200}? -p ?"
    r"|\bcurl\b[^|;&]{0,400}? (?:-u|--user)[ =]?[^\s:]{1,80}:)"
    r"([^\s\"']{1,256})"
)
_WANDB = re.compile(
    r"((?:wandb[ ._-]?login|api[ _-]?key)[^\n]{0,60}?(?<![0-9a-f]))([0-9a-f]{40})(?![0-9a-f])", re.IGNORECASE
)
_PLAIN = re.compile(
    r"(?:none|null|true|false|nan|undefined|unset|missing|required|yes|no|x+|\*+|\.{3,}|\d{1,3}(?:\.\d*)?)$|\[redacted|[<$%*]",
    re.IGNORECASE,
)
_PASSES = 8
_OPAQUE = re.compile(r"(?=[\w.~+/=:@!#-]{8,}$)(?=\S*?\d)(?=\S*?[A-Za-z])|[A-Za-z0-9_+/=-]{24,}$")
_MORE_WORDS = re.compile(r"[ \t]+[A-Za-z]{2}")


_AFTER = (  # a word without which the pattern cannot match, kind, pattern
    ("=", "signature", _QUERY),
    ("authorization", "authorization", _HEADER),
    ("bearer ", "authorization", _HEADER),
    ("cookie", "cookie", _COOKIE),
    (" ", "secret", _FLAG),
    ('"value"', "secret", _NAMED),
    ("sshpass", "password", _LOGIN),
    ("login", "password", _LOGIN),
    ("curl", "password", _LOGIN),
    ("login", "api-key", _WANDB),
    ("api", "api-key", _WANDB),
)


def _is_key_line(text: str) -> bool:
    """Base64 of random bytes, not a checksum in hex or one long word: all kinds of characters, well mixed."""
    return (
        len(set(text)) >= 24
        and any(c.isdigit() for c in text)
        and any(c.isupper() for c in text)
        and any(c.islower() for c in text)
    )


def redact(text: str) -> str:
    """The text with each secret replaced by `[redacted:kind]`. Idempotent; linear in the length of the text."""
    if len(text) >= 60 and (key := _KEY_LINE.search(text)) and _is_key_line(key[1]):
        text = text[: key.start(1)] + "[redacted:private-key]"
    low = text.lower()
    if not _WORDS.search(low) or not _HINT.search(low):
        return text
    for _ in range(_PASSES):  # what goes may uncover another that had stood right against it
        before, text = text, _once(text)
        if text == before:
            break
    return text


def _once(text: str) -> str:
    low = text.lower()
    if "PRIVATE KEY" in text:
        text = _without_private_keys(text)
    for start, kind, pattern in _KNOWN:
        if start in low:
            text = pattern.sub(f"[redacted:{kind}]", text)
    if "://" in low and "@" in low:
        text = _URL.sub(r"\1[redacted:password]@", text)
    for word, kind, pattern in _AFTER:
        if word in low:
            text = pattern.sub(functools.partial(_after, kind), text)
    return _TOKEN.sub(_named_token, _SURE.sub(_named, text))


def _without_private_keys(text: str) -> str:
    out, at = "", 0
    while begin := _KEY_BEGIN.search(text, at):
        end = _KEY_END.search(text, begin.end())
        out, at = f"{out}{text[at : begin.start()]}[redacted:private-key]", end.end() if end else len(text)
    return out + text[at:]


def _after(kind: str, match: re.Match[str]) -> str:
    """The first group says that the second is a secret."""
    return match[0] if _PLAIN.match(match[2]) else f"{match[1]}[redacted:{kind}]"


def _named(match: re.Match[str]) -> str:
    """A value that stands alone behind its name is a secret; the first word of a sentence is not."""
    name, sign, quote, value = match.groups()
    if len(value) < 3 or _PLAIN.match(value):
        return match[0]
    if not quote and sign.isspace() is False and sign.endswith(" ") and _MORE_WORDS.match(match.string, match.end()):
        return match[0] if not _OPAQUE.match(value) else _replaced(match, "secret")
    return _replaced(match, "password" if name.lower().startswith(("pass", "pwd")) else "secret")


def _named_token(match: re.Match[str]) -> str:
    value = match[4]
    return match[0] if _PLAIN.match(value) or not _OPAQUE.match(value) else _replaced(match, "token")


def _replaced(match: re.Match[str], kind: str) -> str:
    return f"{match[1]}{match[2]}{match[3] or ''}[redacted:{kind}]"
