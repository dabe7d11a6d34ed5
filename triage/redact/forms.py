"""Secrets that are known by their own form, whatever stands around them."""

from __future__ import annotations

import re

from triage.redact.rules import Rule

_START = r"(?<![A-Za-z0-9_])"
_FIRM = r"(?<![A-Za-z0-9_-])"


def _key(words: str, kind: str, form: str) -> Rule:
    """words: of which one is in every match, in lower case, separated by blanks."""
    return Rule(tuple(words.split()), re.compile(form), f"[redacted:{kind}]")


FORMS = (
    _key("sk-", "api-key", _FIRM + r"sk-(?=[A-Za-z_-]{0,40}\d)[A-Za-z0-9_-]{16,}"),
    _key("aiza", "api-key", _FIRM + r"AIza[\w-]{20,}"),
    _key("nvapi-", "api-key", _FIRM + r"nvapi-[\w-]{20,}"),
    _key("xai- pplx-", "api-key", _FIRM + r"(?:xai|pplx)-[A-Za-z0-9]{20,}"),
    _key("gsk_ npm_ r8_", "api-key", _START + r"(?:gsk|npm|r8)_(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}"),
    _key("tgp_v1_ pcsk_ wandb_v1_ lsv2_", "api-key", _START + r"(?:tgp_v1|pcsk|wandb_v1|lsv2_(?:pt|sk))_[\w-]{20,}"),
    _key("kgat_ rpa_ glsa_", "api-key", _START + r"(?:KGAT|rpa|glsa)_[A-Za-z0-9_]{20,}"),
    _key("dckr_", "api-key", _START + r"dckr_(?:pat|oat)_[\w-]{20,}"),
    _key("pypi-", "api-key", _START + r"pypi-[\w-]{40,}"),
    _key("hf_", "hf-token", _START + r"hf_[A-Za-z0-9]{20,}(?!\w)"),
    _key("api_org_", "hf-token", _START + r"api_org_[A-Za-z0-9]{20,}(?!\w)"),
    _key("ghp_ gho_ ghu_ ghs_ ghr_", "git-token", _START + r"gh[pousr]_[A-Za-z0-9]{20,}"),
    _key("github_pat_", "git-token", _START + r"github_pat_\w{20,}"),
    _key(
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glimt- glagent-",
        "git-token",
        _START + r"gl(?:pat|dt|rt|cbt|ptt|ft|soat|imt|agent)-[\w.-]{16,}",
    ),
    _key("xox xapp-", "slack-token", _START + r"(?:xox[abeoprs]|xapp)[-.][\w.-]{10,}"),
    _key("akia asia abia acca", "aws-key", r"(?<![A-Za-z0-9])A(?:KI|SI|BI|CC)A[A-Z0-9]{16}(?![A-Za-z0-9])"),
    _key("iqojb3jpz2lu fwogzxivyxdz", "aws-token", r"(?:IQoJb3JpZ2lu|FwoGZXIvYXdz)[A-Za-z0-9+/=%]{40,}"),
    _key("absk", "aws-key", _START + r"ABSK[A-Za-z0-9+/]{60,}={0,2}"),
    _key("gocspx-", "api-key", _FIRM + r"GOCSPX-[\w-]{20,}"),
    _key("ya29.", "oauth-token", _START + r"ya29\.[\w.-]{20,}"),
    _key("1//0", "oauth-token", r"(?<![\w/])1//0[\w-]{30,}"),
    _key("q~", "api-key", r"(?<![\w~.-])[\w~.-]{3}\dQ~[\w~.-]{31,34}(?![\w~.-])"),
    _key("hvs. hvb. hvr.", "vault-token", _START + r"hv[sbr]\.[\w-]{20,}"),
    _key(".atlasv1.", "api-key", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{50,}"),
    _key("dapi", "api-key", _START + r"dapi[0-9a-f]{32}(?:-\d)?(?!\w)"),
    _key("_live_ _test_", "api-key", _START + r"[rsp]k_(?:live|test)_[A-Za-z0-9]{16,}"),
    _key("whsec_", "api-key", _START + r"whsec_[A-Za-z0-9+/=]{20,}"),
    _key("sk", "api-key", _FIRM + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    _key("sg.", "api-key", _FIRM + r"SG\.[\w-]{16,32}\.[\w-]{32,64}"),
    _key(":aa", "api-key", r"(?<!\d)\d{6,12}:AA[\w-]{33}(?![\w-])"),
    _key("dop_v1_ shpat_ glc_ey lin_api_ pul- tskey-", "api-key",
         _FIRM + r"(?:dop_v1_|shpat_|glc_|lin_api_|pul-|tskey-[a-z]+-)[A-Za-z0-9_=-]{20,}"),
    _key("nrak- pmak- atatt3", "api-key", _FIRM + r"(?:NRAK-|PMAK-|ATATT3)[\w=-]{24,}"),
    _key("age-secret-key-1", "private-key", r"AGE-SECRET-KEY-1[0-9A-Z]{40,}"),
    _key("munge:", "munge-credential", _START + r"MUNGE:[A-Za-z0-9+/=]{20,}:?"),
    _key("eyj", "jwt", _FIRM + r"eyJ[\w-]{8,}\.[\w-]{8,}(?:\.[\w-]{0,4096}){0,3}"),
)  # fmt: skip
