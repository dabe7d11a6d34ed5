"""The settings: their names, what they mean and their defaults."""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_EMBEDDING = "all-MiniLM-L6-v2-onnx-int8"


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    help: str
    default: str = ""
    secret: bool = False


SETTINGS: tuple[Setting, ...] = (
    Setting("home", "state folder: database, vector index; default: the platform's user data folder"),
    Setting("database_url", "any SQLAlchemy URL; default: SQLite in the home", secret=True),
    Setting("chroma_url", "http://host:port of a Chroma server; default: embedded in the home"),
    Setting("llm", "off, or provider:model", "off"),
    Setting("llm_base_url", "an OpenAI-compatible server, such as http://localhost:8000/v1; default: OpenAI's own"),
    Setting("llm_api_key", "the key for it", secret=True),
    Setting("llm_timeout", "most seconds of one call, repeated attempts included", "120"),
    Setting("llm_max_tokens", "most tokens of one answer", "4096"),
    Setting("llm_context", "most tokens that the model takes; default: what its server says when they are too many"),
    Setting("llm_steps", "rounds of read-only tools that the model may use for a diagnosis; 0: no tools", "8"),
    Setting("llm_samples", "answers that the model gives, at most 10; their agreement counts", "1"),
    Setting(
        "llm_critic", "1 or 0: a second pass against the answer, or none; default: where it would replace the rules'"
    ),
    Setting("llm_most_cost", "most that a diagnosis may cost, in the currency of the prices"),
    Setting("llm_price_in", "price of a million tokens sent, in any currency, for the cost in results"),
    Setting("llm_price_out", "price of a million tokens answered"),
    Setting("embedding", "built-in model, or sentence-transformers:NAME_OR_PATH", DEFAULT_EMBEDDING),
    Setting("half_life", "days after which age has taken half of what it takes of a recorded incident's weight", "20"),
    Setting("offline", "1: no network at all", "0"),
    Setting("token_budget", "most tokens of a compressed log", "12000"),
    Setting(
        "signature_confirmations", "confirmed incidents that put a learned signature in force with no approval", "2"
    ),
    Setting("signature_days", "days after which a learned signature that nobody confirmed is given up", "90"),
    Setting(
        "merge_hours",
        "within so many hours, the same failure of the same job is a further attempt of its incident",
        "24",
    ),
    Setting(
        "recover_allow",
        "kinds of steps that `triage recover --yes` may run besides those that only read: node-test, drain, kill-switch, cancel, resubmit",
    ),
    Setting(
        "hang_minutes",
        "minutes without progress after which a watched job is hung; MA_HANG_DETECT_TIME is honoured where this is not set",
        "30",
    ),
    Setting("watch_period", "seconds between two looks at a watched job", "30"),
    Setting(
        "gpu_metrics_url", "page of a DCGM exporter with the GPU readings of a watched job; default: asked on its nodes"
    ),
    Setting(
        "notify",
        "where messages go, with semicolons between: slack:https://..., https://..., command:PROGRAM ARGS, mailto:a@b",
        secret=True,
    ),
    Setting(
        "smtp_url",
        "mail server, such as smtp://user:password@host:587 or smtps://host; default: this machine's",
        secret=True,
    ),
    Setting("mail_from", "sender of e-mails; default: triage@ this machine"),
    Setting(
        "serve_tokens",
        "who may ask `triage serve`, with semicolons between: NAME:read|write:TOKEN, or sha256=HASH in place of the token",
        secret=True,
    ),
    Setting("serve_roots", "folders whose logs `triage serve` may be pointed to, with colons between"),
    Setting(
        "serve_namespaces", "namespaces of Kubernetes whose pods `triage serve` may be asked for, with commas between"
    ),
    Setting("serve_upload_mb", "most megabytes of one upload to `triage serve`", "1024"),
    Setting("serve_rate", "most requests a minute of one caller of `triage serve`", "1200"),
    Setting("serve_keep_days", "days after which `triage serve` deletes uploaded logs; the incidents stay", "30"),
    Setting("mcp_token", "of `triage mcp --http`; default: one that is made for the run, and told", secret=True),
    Setting("mcp_write", "1: `triage mcp` may record diagnoses and outcomes", "0"),
    Setting("slack_bot_token", "of `triage slack`: xoxb-...", secret=True),
    Setting("slack_app_token", "of `triage slack`: xapp-..., with the scope connections:write", secret=True),
    Setting("slack_channels", "ids of channels in which `triage slack` may be asked, with commas between; * for all"),
    Setting("slack_users", "ids of people who may ask `triage slack`; where none is named, all in these channels"),
    Setting("jobs", "processes that read large inputs; default: as many as there are CPUs for it, at most 8"),
)
