"""The local model servers of one scenario. The bot reaches them over HTTP, through the real client libraries.

The servers contain no models. The code that composes the run passes the voice and the speech-to-speech model in
`ServerModels`. The language model answers from the scenario's own script.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from rehearsal.runner.ports import RunError
from rehearsal.script.scenario import EXPIRE_SESSIONS, AnswerSpec, ModelSpec, ServersSpec, ServerStep
from rehearsal.servers.chat import MODEL as CHAT_MODEL
from rehearsal.servers.chat import ChatBehaviour, ChatCall, ChatMode, LocalChatServer, ScriptedToolCall, ToolCallAnswer
from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_behaviour import RealtimeBehaviour, RealtimeEngines, RealtimeMode
from rehearsal.servers.speech import MODEL as SPEECH_MODEL
from rehearsal.servers.speech import LocalSpeechServer, SpeechBehaviour, SpeechEngine, SpeechMode
from rehearsal.words import contains_words, normalize_words

# The model name of the fallback server.
FALLBACK_MODEL = "local-fallback"


@dataclass(frozen=True, slots=True)
class ObservedToolCall:
    """A tool that a model called. `result`: the result that was sent to the model."""

    name: str
    result: str


@dataclass(frozen=True, slots=True)
class ServerObservations:
    """The tool calls, sessions and cut-off positions that reached the model servers.

    `heard_ms`: the positions at which answers were cut off, as the client reported them to the speech-to-speech model.
    """

    tools: tuple[ObservedToolCall, ...] = ()
    heard_ms: tuple[int, ...] = ()
    realtime_sessions: int = 0


@dataclass(frozen=True, slots=True)
class ServerModels:
    """The models behind the servers. Each is opened only when a scenario needs it."""

    voice: Callable[[], AbstractAsyncContextManager[SpeechEngine]]
    realtime: Callable[[], AbstractAsyncContextManager[RealtimeEngines]]


@asynccontextmanager
async def open_local_servers(servers: ServersSpec, models: ServerModels) -> AsyncIterator[LocalServers]:
    """Start the servers that a scenario has, and stop them at the end.

    A model that cannot start raises its own error.
    """
    async with AsyncExitStack() as stack:
        local = LocalServers()
        if servers.model is not None:
            local.model = await stack.enter_async_context(_scripted(servers.model))
        if servers.fallback is not None:
            local.fallback = await stack.enter_async_context(_scripted(servers.fallback))
        if servers.speech is not None:
            voice = await stack.enter_async_context(models.voice())
            speech = SpeechBehaviour(voice, servers.speech.conduct)
            local.speech = await stack.enter_async_context(LocalSpeechServer(speech))
        if servers.realtime is not None:
            engines = await stack.enter_async_context(models.realtime())
            behaviour = RealtimeBehaviour(
                mode=servers.realtime.conduct, expires_in_response=servers.realtime.expires_in_response
            )
            local.realtime = await stack.enter_async_context(LocalRealtimeServer(engines, behaviour))
        yield local


def _scripted(spec: ModelSpec) -> LocalChatServer:
    return LocalChatServer(
        ChatBehaviour(answer=ScriptedModel(spec).answer, mode=spec.conduct, first_token_delay_s=spec.first_token_s)
    )


@dataclass(slots=True)
class LocalServers:
    """The running servers. `open_local_servers` creates it."""

    model: LocalChatServer | None = None
    fallback: LocalChatServer | None = None
    speech: LocalSpeechServer | None = None
    realtime: LocalRealtimeServer | None = None

    @property
    def settings(self) -> dict[str, object]:
        """Return the settings that make the bot use these servers."""
        settings: dict[str, object] = {}
        if self.model is not None:
            settings |= {"llm.base_url": self.model.base_url, "llm.model": CHAT_MODEL}
        if self.fallback is not None:
            settings["llm.fallback_models"] = [{"model": FALLBACK_MODEL, "base_url": self.fallback.base_url}]
        if self.speech is not None:
            settings |= {"speaking.base_url": self.speech.base_url, "speaking.model": SPEECH_MODEL}
        if self.realtime is not None:
            settings |= {"realtime.model": "gpt-realtime", "realtime.base_url": self.realtime.base_url}
        return settings

    @property
    def observed(self) -> ServerObservations:
        tools: list[ObservedToolCall] = []
        heard_ms: tuple[int, ...] = ()
        if self.model is not None and self.model.calls:
            # Every request repeats the whole conversation, so each tool call is counted only once.
            tools += dict.fromkeys(tool for call in self.model.calls for tool in tool_results(call.messages))
        if self.realtime is not None:
            tools += [ObservedToolCall(name, result) for name, result in self.realtime.tools]
            heard_ms = tuple(int(event["audio_end_ms"]) for event in self.realtime.of("conversation.item.truncate"))
        return ServerObservations(tuple(tools), heard_ms, 0 if self.realtime is None else self.realtime.sessions)

    async def set_behaviour(self, step: ServerStep) -> None:
        """Make a server behave from now on as the step says. Raises `RunError` when that server does not run."""
        match step.server:
            case "model" | "fallback" if model := self.fallback if step.server == "fallback" else self.model:
                model.behaviour.mode = ChatMode(step.conduct)
                if step.first_token_s is not None:
                    model.behaviour.first_token_delay_s = step.first_token_s
            case "speech" if self.speech is not None:
                self.speech.behaviour.mode = SpeechMode(step.conduct)
            case "realtime" if self.realtime is not None and step.conduct == EXPIRE_SESSIONS:
                await self.realtime.expire()
            case "realtime" if self.realtime is not None:
                self.realtime.behaviour.mode = RealtimeMode(step.conduct)
            case _:
                raise RunError(f"There is no {step.server} server here. Give the scenario [servers.{step.server}].")


def tool_results(messages: Any) -> list[ObservedToolCall]:
    """Return the tool calls whose results are in the messages of a request, in order."""
    names = {
        str(call.get("id")): str((call.get("function") or {}).get("name"))
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    return [
        ObservedToolCall(names.get(str(message.get("tool_call_id")), "?"), str(message.get("content")))
        for message in messages
        if message.get("role") == "tool"
    ]


# A turn in the result of a tool, such as `[21:04] Ada: …`.
_TURN_LINE = re.compile(r"^\[\d\d:\d\d\] [^:\n]{1,60}: (?P<words>.+)$", re.MULTILINE)
NOTHING_FOUND = "nothing"


class ScriptedModel:
    """Answers requests as a scenario's `[servers.model]` says."""

    def __init__(self, spec: ModelSpec) -> None:
        self._spec = spec

    def answer(self, call: ChatCall) -> str | ToolCallAnswer:
        """Return the text for a request, or the tool call that must come before the text."""
        asked = next((str(each.get("content")) for each in reversed(call.messages) if each.get("role") == "user"), "")
        spec = self._matching_answer(asked, " ".join(str(each.get("content")) for each in call.messages))
        if spec is None:
            return self._spec.otherwise
        if spec.tool in call.offered and not call.tool_results:
            return ToolCallAnswer((ScriptedToolCall(spec.tool, spec.arguments),))
        looked_for = set(normalize_words(" ".join(map(str, spec.arguments.values()))).split())
        return spec.say.replace("{found}", _best_line(call.tool_results, looked_for))

    def _matching_answer(self, asked: str, sent: str) -> AnswerSpec | None:
        # `knew` is compared literally, because normalisation would remove brackets and other signs of the prompt.
        known = sent.casefold()
        for spec in self._spec.answers:
            if all(contains_words(asked, word) for word in spec.asked) and all(
                word.casefold() in known for word in spec.knew
            ):
                return spec
        return None


def _best_line(results: Iterable[str], looked_for: set[str]) -> str:
    """Return the line of the tool results that shares the most words with the query."""
    lines = [said["words"].rstrip(".") for result in results for said in _TURN_LINE.finditer(result)]
    return max(lines, key=lambda words: len(looked_for & set(normalize_words(words).split())), default=NOTHING_FOUND)
