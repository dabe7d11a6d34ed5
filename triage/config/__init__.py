"""The only reader of the environment and of settings files. Flags > TRIAGE_* > ./triage.toml > the user's triage.toml."""

from __future__ import annotations

import difflib
import functools
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from triage.config.table import DEFAULT_EMBEDDING as DEFAULT_EMBEDDING
from triage.config.table import SETTINGS as SETTINGS
from triage.errors import UsageError

RECOVER_KINDS = ("node-test", "drain", "kill-switch", "cancel", "resubmit")
_KNOWN = {s.name: s for s in SETTINGS}


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings in force; `origin` says where each came from."""

    home: Path
    database_url: str
    chroma_url: str = ""
    llm: str = "off"
    llm_base_url: str = ""
    llm_api_key: str = field(default="", repr=False)
    llm_timeout: int = 120
    llm_max_tokens: int = 4096
    llm_context: int | None = None
    llm_steps: int = 8
    llm_samples: int = 1
    llm_critic: bool | None = None
    llm_most_cost: float | None = None
    llm_price_in: float | None = None
    llm_price_out: float | None = None
    embedding: str = DEFAULT_EMBEDDING
    half_life: int = 20
    offline: bool = False
    token_budget: int = 12000
    signature_confirmations: int = 2
    signature_days: int = 90
    merge_hours: int = 24
    recover_allow: str = ""
    hang_minutes: int = 30
    watch_period: int = 30
    gpu_metrics_url: str = ""
    notify: str = field(default="", repr=False)
    smtp_url: str = field(default="", repr=False)
    mail_from: str = ""
    serve_tokens: str = field(default="", repr=False)
    serve_roots: str = ""
    serve_namespaces: str = ""
    serve_upload_mb: int = 1024
    serve_rate: int = 1200
    serve_keep_days: int = 30
    mcp_token: str = field(default="", repr=False)
    mcp_write: bool = False
    slack_bot_token: str = field(default="", repr=False)
    slack_app_token: str = field(default="", repr=False)
    slack_channels: str = ""
    slack_users: str = ""
    jobs: int | None = None
    origin: Mapping[str, str] = field(default_factory=dict)


def load(flags: Mapping[str, str | None] | None = None, cwd: Path | None = None) -> Settings:
    """Settings from all sources. Errors: UsageError for a malformed file, an unknown name or a bad value."""
    values = {s.name: s.default for s in SETTINGS}
    origin = dict.fromkeys(values, "default")
    for source, found in _sources(flags or {}, cwd or Path.cwd()):
        for name, value in found.items():
            if name not in _KNOWN:
                raise UsageError(f"{source}: unknown setting {name!r}", f"known: {', '.join(_KNOWN)}")
            values[name], origin[name] = value, source
    home = Path(values["home"]).expanduser() if values["home"] else _default_home()
    offline = _flag("offline", values["offline"], origin["offline"])
    if offline and _is_server(values["database_url"]):
        raise UsageError(
            "TRIAGE_OFFLINE=1 bars every connection, and TRIAGE_DATABASE_URL names a server",
            "name a file (sqlite:////path/triage.db), or set TRIAGE_OFFLINE=0",
        )
    return Settings(
        home=home,
        database_url=values["database_url"] or f"sqlite:///{home / 'triage.db'}",
        chroma_url=values["chroma_url"],
        llm=values["llm"] or "off",
        llm_base_url=values["llm_base_url"],
        llm_api_key=values["llm_api_key"],
        llm_timeout=_number("llm_timeout", values["llm_timeout"], origin["llm_timeout"]),
        llm_max_tokens=_number("llm_max_tokens", values["llm_max_tokens"], origin["llm_max_tokens"]),
        llm_context=_number("llm_context", values["llm_context"], origin["llm_context"])
        if values["llm_context"]
        else None,
        llm_steps=_number("llm_steps", values["llm_steps"], origin["llm_steps"], least=0),
        llm_samples=_number("llm_samples", values["llm_samples"], origin["llm_samples"], most=10),
        llm_critic=_flag("llm_critic", values["llm_critic"], origin["llm_critic"]) if values["llm_critic"] else None,
        llm_most_cost=_price("llm_most_cost", values["llm_most_cost"], origin["llm_most_cost"]),
        llm_price_in=_price("llm_price_in", values["llm_price_in"], origin["llm_price_in"]),
        llm_price_out=_price("llm_price_out", values["llm_price_out"], origin["llm_price_out"]),
        embedding=values["embedding"] or DEFAULT_EMBEDDING,
        half_life=_number("half_life", values["half_life"], origin["half_life"]),
        offline=offline,
        token_budget=_number("token_budget", values["token_budget"], origin["token_budget"]),
        signature_confirmations=_number(
            "signature_confirmations", values["signature_confirmations"], origin["signature_confirmations"]
        ),
        signature_days=_number("signature_days", values["signature_days"], origin["signature_days"]),
        merge_hours=_number("merge_hours", values["merge_hours"], origin["merge_hours"]),
        recover_allow=_kinds(values["recover_allow"], origin["recover_allow"]),
        hang_minutes=_number("hang_minutes", values["hang_minutes"], origin["hang_minutes"]),
        watch_period=_number("watch_period", values["watch_period"], origin["watch_period"]),
        gpu_metrics_url=values["gpu_metrics_url"],
        notify=values["notify"],
        smtp_url=values["smtp_url"],
        mail_from=values["mail_from"],
        serve_tokens=values["serve_tokens"],
        serve_roots=values["serve_roots"],
        serve_namespaces=values["serve_namespaces"],
        **{
            name: _number(name, values[name], origin[name])
            for name in ("serve_upload_mb", "serve_rate", "serve_keep_days")
        },
        slack_bot_token=values["slack_bot_token"],
        slack_app_token=values["slack_app_token"],
        slack_channels=values["slack_channels"],
        slack_users=values["slack_users"],
        mcp_token=values["mcp_token"],
        mcp_write=_flag("mcp_write", values["mcp_write"], origin["mcp_write"]),
        jobs=_number("jobs", values["jobs"], origin["jobs"]) if values["jobs"] else None,
        origin=origin,
    )


def _is_server(database_url: str) -> bool:
    scheme, _, rest = database_url.partition("://")
    return bool(scheme) and not scheme.startswith("sqlite") and (not rest.startswith("/") or "host=" in rest)


def unknown_variables() -> list[str]:
    """Of each TRIAGE_* variable that is no setting, in words: it has no effect, and a misspelt one should be heard of."""
    known = {f"TRIAGE_{name.upper()}" for name in _KNOWN}
    found = []
    for name in sorted(os.environ):
        # TRIAGE_MESSAGE_*: what a command that is told of an incident gets.
        ours = name == "TRIAGE_DEBUG" or name.startswith("TRIAGE_MESSAGE_")
        if name.startswith("TRIAGE_") and name not in known and not ours:
            near = difflib.get_close_matches(name.removeprefix("TRIAGE_").lower(), _KNOWN, n=1)
            hint = f"did you mean TRIAGE_{near[0].upper()}?" if near else "`triage config show` lists the settings"
            found.append(f"{name} is no setting and has no effect; {hint}")
    return found


def _sources(flags: Mapping[str, str | None], cwd: Path) -> list[tuple[str, dict[str, str]]]:
    """Weakest first."""
    import platformdirs

    user = Path(platformdirs.user_config_dir("triage")) / "triage.toml"
    env = {
        s.name: os.environ[f"TRIAGE_{s.name.upper()}"] for s in SETTINGS if os.environ.get(f"TRIAGE_{s.name.upper()}")
    }
    return [
        (str(user), _read_toml(user)),
        (str(cwd / "triage.toml"), _read_toml(cwd / "triage.toml")),
        ("MA_HANG_DETECT_TIME", _platform()),
        ("environment", env),
        ("flag", {name: value for name, value in flags.items() if value is not None}),
    ]


def _platform() -> dict[str, str]:
    """What the training platform has set for its own detection of hangs."""
    minutes = os.environ.get("MA_HANG_DETECT_TIME", "")
    return {"hang_minutes": minutes} if minutes else {}


def _read_toml(path: Path) -> dict[str, str]:
    if not path.is_file():
        return {}
    try:
        doc: dict[str, Any] = tomllib.loads(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UsageError(f"{path}: {error}", "it must be valid TOML") from None
    for name, value in doc.items():
        if not isinstance(value, (str, int, float, bool)):
            raise UsageError(f"{path}: {name} must be a string, a number or a boolean")
    return {name: str(int(value)) if isinstance(value, bool) else str(value) for name, value in doc.items()}


@functools.cache
def _default_home() -> Path:
    import platformdirs

    return Path(platformdirs.user_data_dir("triage"))


def _flag(name: str, value: str, source: str) -> bool:
    if value.lower() in ("", "0", "false", "no", "off"):
        return False
    if value.lower() in ("1", "true", "yes", "on"):
        return True
    raise UsageError(f"{source}: {name} is {value!r}", "use 1 or 0")


def _number(name: str, value: str, source: str, least: int = 1, most: int | None = None) -> int:
    sound = value.isascii() and value.isdigit() and len(value) < 19
    if not sound or int(value) < least or (most is not None and int(value) > most):
        bound = "" if most is None else f" up to {most}"
        raise UsageError(f"{source}: {name} is {value!r}", f"use a {'positive ' if least else ''}whole number{bound}")
    return int(value)


def _kinds(value: str, source: str) -> str:
    named = dict.fromkeys(value.replace(",", " ").split())
    if unknown := [name for name in named if name not in RECOVER_KINDS]:
        raise UsageError(f"{source}: recover_allow names {unknown[0]!r}", f"use {', '.join(RECOVER_KINDS)}")
    return ", ".join(named)


def _price(name: str, value: str, source: str) -> float | None:
    if not value:
        return None
    try:
        price = float(value)
    except ValueError:
        price = -1.0
    if not 0 <= price < float("inf"):
        raise UsageError(f"{source}: {name} is {value!r}", "use a number that is not negative, such as 2.5")
    return price
