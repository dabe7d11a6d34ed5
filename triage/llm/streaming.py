"""ChatOpenAI that keeps the words of a refusal when it streams; langchain-openai 1.7 keeps them only of a whole answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_openai import ChatOpenAI

if TYPE_CHECKING:
    from langchain_core.outputs import ChatGenerationChunk


class StreamingChat(ChatOpenAI):
    """Pieces of a refusal go into additional_kwargs["refusal"], where adding chunks joins them."""

    def _convert_chunk_to_generation_chunk(
        self,
        chunk: dict[str, Any],
        default_chunk_class: type,
        base_generation_info: dict[str, Any] | None,
    ) -> ChatGenerationChunk | None:
        made = super()._convert_chunk_to_generation_chunk(chunk, default_chunk_class, base_generation_info)
        choices = chunk.get("choices") or [{}]
        refusal = (choices[0].get("delta") or {}).get("refusal")
        if made is not None and isinstance(refusal, str) and refusal:
            made.message.additional_kwargs["refusal"] = refusal
        return made
