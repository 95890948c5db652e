"""Anthropic's and Gemini's OpenAI-compatible endpoints, as far as they differ from OpenAI's."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from pydantic import SecretStr

from bot.llm.endpoint_features import ENDPOINT_NEEDS
from bot.llm.factory import list_served_models
from bot.llm.openai_chat import OpenAIChat
from bot.llm.port import (
    NO_TOOLS,
    ChatMessage,
    ChatModelError,
    ChatRole,
    FinishReason,
    OfferedTools,
    StreamEnd,
    ToolOffer,
)
from bot.llm.settings import LlmSettings
from compaction.payload import MessageToolCall
from compaction.ports import CompletionRequest
from compaction.untrusted_text import mark_as_data
from tests.bot.llm.provider_servers import (
    KEY,
    AnthropicServer,
    GeminiServer,
    ProviderServer,
)

PARAMETERS = {
    "type": "object",
    "properties": {"query": {"type": "string"}, "const": {"type": "string"}},
    "additionalProperties": False,
}
TOOLS = OfferedTools((ToolOffer("memory_search", "Finds what was said.", PARAMETERS),))
QUESTION = (
    ChatMessage(ChatRole.SYSTEM, "You are in a room."),
    ChatMessage(ChatRole.USER, "Earlier: Bo is here."),
    ChatMessage(ChatRole.USER, "Who brings the lantern?"),
)
SCHEMA: dict[str, object] = {"type": "object", "properties": {"gist": {"type": "string"}}, "required": ["gist"]}
REQUEST = CompletionRequest(system="Summarise.", prompt="Ada: hello.", max_output_tokens=200, schema=SCHEMA)


def settings_for(server: ProviderServer) -> LlmSettings:
    """Return the settings that docs/guide.md gives, with the address of the local server."""
    return LlmSettings(base_url=server.base_url, api_key=SecretStr(KEY), model="their-model")


@asynccontextmanager
async def adapter(server: ProviderServer) -> AsyncIterator[OpenAIChat]:
    """Start the server and open the adapter for it, which takes its address for the provider's."""
    with pytest.MonkeyPatch.context() as patch:
        if server.host in ENDPOINT_NEEDS:
            patch.setitem(ENDPOINT_NEEDS, "127.0.0.1", ENDPOINT_NEEDS[server.host])
        async with server, OpenAIChat(settings_for(server)) as chat:
            yield chat


async def answered(
    chat: OpenAIChat, messages: tuple[ChatMessage, ...], tools: OfferedTools = NO_TOOLS
) -> tuple[str, StreamEnd]:
    """Return the text and the end of one streamed answer."""
    items = [item async for item in chat.stream(messages, max_output_tokens=50, tools=tools)]
    end = items[-1]
    assert isinstance(end, StreamEnd)
    return "".join(item for item in items if isinstance(item, str)), end


def with_results(end: StreamEnd) -> tuple[ChatMessage, ...]:
    """Return the question, the calls and their results."""
    results = [ChatMessage(ChatRole.TOOL, "Bo: I bring the lantern.", tool_call_id=call.id) for call in end.calls]
    return (*QUESTION, ChatMessage(ChatRole.ASSISTANT, "", tool_calls=end.calls), *results)


@pytest.mark.parametrize(
    ("server", "names"),
    [(AnthropicServer(), ["memory_search"]), (GeminiServer(), ["memory_search", "recall_turns"])],
    ids=["anthropic", "gemini"],
)
async def test_tools_are_called_and_their_results_taken(server: ProviderServer, names: list[str]) -> None:
    """Each call comes with its own arguments, and the request with the results is accepted: Gemini refuses one whose
    calls lack the signature that it sent, and tools with words of JSON schema that it does not know.
    """
    async with adapter(server) as chat:
        _, end = await answered(chat, QUESTION, TOOLS)
        assert end.reason is FinishReason.TOOL_CALLS
        assert [call.name for call in end.calls] == names
        assert json.loads(end.calls[0].arguments) == {"query": "lantern"}
        assert len({call.id for call in end.calls}) == len(names)
        text, _ = await answered(chat, with_results(end), TOOLS)
    assert text == "Bo brings the lantern."
    (offered,) = server.bodies[-1]["tools"]
    assert set(offered["function"]["parameters"]["properties"]) == {"query", "const"}, "a property may have that name"


async def test_what_another_model_has_found_is_answered_from() -> None:
    """A model that stands in gets the results of the calls that the one before it made, which Gemini has not signed."""
    call = MessageToolCall("call_zU3kq", "memory_search", '{"query": "lantern"}')
    asked = (
        *QUESTION,
        ChatMessage(ChatRole.ASSISTANT, "Let me look.", tool_calls=(call,)),
        ChatMessage(ChatRole.TOOL, "Bo: I bring the lantern.", tool_call_id=call.id),
    )
    server = GeminiServer()
    async with adapter(server) as chat:
        text, _ = await answered(chat, asked)
    assert text == "Bo brings the lantern."
    assert server.bodies[-1]["messages"][len(QUESTION) :] == [
        {"role": "assistant", "content": "Let me look."},
        {"role": "user", "content": mark_as_data("a tool", "Bo: I bring the lantern.")},
    ]


@pytest.mark.parametrize(("kept", "role"), [(0, "tool"), (1, "user")])
async def test_one_of_several_calls_is_answered_from(kept: int, role: str) -> None:
    """A call that needs a yes is left out of its step, and sent alone once it is done. Gemini signs only the first of
    a step and would refuse the other, so what that found is sent as data.
    """
    server = GeminiServer()
    async with adapter(server) as chat:
        _, end = await answered(chat, QUESTION, TOOLS)
        text, _ = await answered(chat, with_results(replace(end, calls=(end.calls[kept],))))
    assert text == "Bo brings the lantern."
    assert server.bodies[-1]["messages"][-1]["role"] == role


@pytest.mark.parametrize("server", [AnthropicServer(), GeminiServer()], ids=["anthropic", "gemini"])
async def test_a_summary_is_written(server: ProviderServer) -> None:
    """Anthropic's models get no temperature. An answer may lack its usage."""
    async with adapter(server) as chat:
        for _ in range(2):
            answer = await chat.complete(REQUEST)
    assert '{"gist": "Bo brings the lantern."}' in answer.text
    assert answer.prompt_tokens is None
    assert len(server.bodies) == 2


async def test_an_error_in_a_list_is_read() -> None:
    """Gemini's reason is in the sentence."""
    async with adapter(GeminiServer()) as chat:
        _, end = await answered(chat, QUESTION, TOOLS)
        with pytest.raises(ChatModelError, match="function response"):
            await answered(chat, with_results(end)[:-1])


@pytest.mark.parametrize(
    ("server", "name"), [(AnthropicServer(), "claude-haiku-4-5"), (GeminiServer(), "gemini-2.5-flash")]
)
async def test_the_models_have_the_names_that_one_sets(server: ProviderServer, name: str) -> None:
    """`roomtone doctor` compares llm.model with them. Listing them confirms the address and the key."""
    async with server:
        settings = settings_for(server)
        assert name in await list_served_models(settings)
        wrong = settings.model_copy(update={"api_key": SecretStr("sk-wrong-key-1234")})
        with pytest.raises(ChatModelError, match="key") as caught:
            await list_served_models(wrong)
    assert "sk-wrong" not in str(caught.value)
    assert server.base_url in str(caught.value)
