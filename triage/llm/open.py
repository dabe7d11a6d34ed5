"""From a name in the settings to a model that can be asked."""

from __future__ import annotations

from urllib.parse import urlsplit

from triage.errors import UsageError
from triage.llm.connection import Server
from triage.llm.openai_chat import OPENAI_URL, OpenAIChat
from triage.llm.values import ChatModel

OFF = "off"
PROVIDERS = ("openai",)


def open_model(
    name: str,
    base_url: str = "",
    key: str = "",
    *,
    most_tokens: int = 4096,
    most_seconds: float = 120.0,
    offline: bool = False,
) -> ChatModel:
    """The model `provider:model`, or at base_url whichever server speaks the OpenAI protocol. Nothing is asked yet.

    most_tokens, most_seconds: caps of every single call. Errors: UsageError for a name or URL that cannot be meant.
    """
    provider, _, model = name.partition(":")
    if provider not in PROVIDERS or not model.strip():
        raise UsageError(
            f"the model {name!r} is not known",
            "use off, or openai:MODEL; TRIAGE_LLM_BASE_URL names any other server of the OpenAI protocol",
        )
    url = base_url.rstrip("/") or OPENAI_URL
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError("TRIAGE_LLM_BASE_URL is no http address", "such as http://localhost:8000/v1")
    return OpenAIChat(Server(provider, model.strip(), url, key, most_tokens, most_seconds, offline))
