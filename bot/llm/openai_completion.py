"""Whole answers of an endpoint with OpenAI's chat completions API, for the compactor (`compaction.ports.Completion`).

A call that the endpoint refuses is repeated in the way that it takes. `openai_chat` owns the connection.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import httpx2
import openai
import structlog

from bot.llm.chat_wire import joined_parts, read_usage, response_formats, whole_characters
from bot.llm.endpoint_errors import refusal_of, whole_choice
from bot.llm.endpoint_features import REFUSED_STATUSES
from bot.llm.message_order import in_order
from bot.llm.port import ChatRole, FinishReason
from bot.llm.streamed_answer import MOST_CHARS_PER_TOKEN
from bot.llm.thoughts import words_of
from bot.texts.text import sentence_of
from compaction.errors import CompletionError
from compaction.ports import CompletionAnswer
from voice.endpoint import CONNECT_TIMEOUT_S

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bot.llm.endpoint_features import EndpointFeatures
    from bot.llm.message_order import MessageOrder
    from bot.llm.port import ChatModelError
    from bot.llm.settings import LlmSettings
    from compaction.ports import CompletionRequest

log = structlog.get_logger()


class OpenAICompletion:
    """The whole answers of one endpoint and one model. Safe to use from many tasks at once.

    `features`: what the endpoint takes, which its streams learn too. `translate`: returns an error of the library as a
    sentence.
    """

    def __init__(
        self,
        client: openai.AsyncOpenAI,
        settings: LlmSettings,
        features: EndpointFeatures,
        *,
        translate: Callable[[Exception], ChatModelError],
    ) -> None:
        self._client = client
        self._settings = settings
        self._features = features
        self._translate = translate

    async def complete(self, request: CompletionRequest) -> CompletionAnswer:
        """Return one whole answer. Raises `CompletionError`.

        A schema is requested in the first of three forms that the endpoint accepts, or else only by the prompt.
        """
        features, formats = self._features, response_formats(request.schema)
        index = min(features.format_index, len(formats) - 1)
        while True:
            order = features.order
            # As deterministic as the endpoint can be.
            temperature = {"temperature": 0} if features.takes_temperature else {}
            sent = features.limits(request.max_output_tokens) | temperature
            try:
                answer = await self._complete_once(request, formats[index], order, sent)
            except openai.APIStatusError as error:
                refusal = refusal_of(error)
                if (
                    features.renames_limit(*refusal, sent=sent)
                    or features.refuses_temperature(*refusal, sent=sent)
                    or features.refuses_order(*refusal, sent=order)
                    or features.refuses_effort(*refusal, sent=sent, by_name=True)
                ):
                    continue
                if error.status_code in REFUSED_STATUSES and index + 1 < len(formats):
                    log.info(
                        "structured_output_refused", model=self._settings.model, status=error.status_code, form=index
                    )
                    index += 1
                    continue
                if features.refuses_effort(*refusal, sent=sent):
                    index = min(features.format_index, len(formats) - 1)
                    continue
                raise self._completion_error(error) from error
            except Exception as error:
                raise self._completion_error(error) from error
            features.takes_effort(sent)
            if request.schema is not None:
                features.format_index = index
            is_wordless = answer.finish_reason == FinishReason.LENGTH and not answer.text.strip()
            if is_wordless and features.thought_too_long(sent):
                continue
            return answer

    async def _complete_once(
        self,
        request: CompletionRequest,
        response_format: dict[str, object] | None,
        order: MessageOrder,
        fields: Mapping[str, object],
    ) -> CompletionAnswer:
        form = {} if response_format is None else {"response_format": response_format}
        asked = [
            {"role": ChatRole.SYSTEM.value, "content": request.system},
            {"role": ChatRole.USER.value, "content": request.prompt},
        ]
        # The caller has its own deadline. The deadline of a reply would cut off the summary of a slow local model.
        limit_s = self._settings.completion_timeout_s
        async with asyncio.timeout(limit_s):
            response = await self._client.chat.completions.create(
                model=self._settings.model,
                messages=in_order(asked, order),
                extra_body={**fields, **form},
                timeout=httpx2.Timeout(limit_s, connect=CONNECT_TIMEOUT_S),
            )
        choice = whole_choice(response, self._client.base_url)
        usage, reason = read_usage(response.usage), choice.finish_reason
        written = whole_characters(joined_parts(choice.message.content) or "")
        text = words_of(written, unopened=self._features.thinks_unopened, cut_off=reason == FinishReason.LENGTH)
        most_chars = MOST_CHARS_PER_TOKEN * request.max_output_tokens
        return CompletionAnswer(
            text=text[:most_chars],
            finish_reason=reason if len(text) <= most_chars else FinishReason.LENGTH,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
        )

    def _completion_error(self, error: Exception) -> CompletionError:
        translated = self._translate(error)
        return CompletionError(sentence_of(translated), retryable=translated.retryable, timeout=translated.timeout)
