"""The local model servers of one scenario, run here: the real client libraries talk to them.

They have no models inside. Whoever composes the run hands in a voice and a speech-to-speech mind; the language model
answers by the scenario's own script.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.errors import StageError
from rehearsal.runner.backstage import ServersSeen, ToolUse
from rehearsal.script.servers import EXPIRE
from rehearsal.servers.chat import MODEL as CHAT_MODEL
from rehearsal.servers.chat import ChatConduct, ChatMode, LocalChatServer
from rehearsal.servers.realtime import LocalRealtimeServer
from rehearsal.servers.realtime_conduct import RealtimeConduct, RealtimeMode
from rehearsal.servers.scripted_answers import Script
from rehearsal.servers.speech import MODEL as SPEECH_MODEL
from rehearsal.servers.speech import LocalSpeechServer, SpeechConduct, SpeechMode

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager

    from rehearsal.script.scenario import Conduct
    from rehearsal.script.servers import ModelSpec, ServersSpec
    from rehearsal.servers.realtime_conduct import Engines
    from rehearsal.servers.speech import Engine


# What the model behind the first one is called.
FALLBACK_MODEL = "local-fallback"


@dataclass(frozen=True, slots=True)
class Minds:
    """What the servers have behind them; each is opened only where a scenario needs it."""

    voice: Callable[[], AbstractAsyncContextManager[Engine]]
    realtime: Callable[[], AbstractAsyncContextManager[Engines]]


@asynccontextmanager
async def open_local_backstage(servers: ServersSpec, minds: Minds) -> AsyncIterator[LocalBackstage]:
    """Start the servers that a scenario has, lend them, and end them. Raises what a mind raises that cannot start."""
    async with AsyncExitStack() as stack:
        backstage = LocalBackstage()
        if servers.model is not None:
            backstage.model = await stack.enter_async_context(_scripted(servers.model))
        if servers.fallback is not None:
            backstage.fallback = await stack.enter_async_context(_scripted(servers.fallback))
        if servers.speech is not None:
            voice = await stack.enter_async_context(minds.voice())
            speech = SpeechConduct(voice, SpeechMode(servers.speech.conduct))
            backstage.speech = await stack.enter_async_context(LocalSpeechServer(speech))
        if servers.realtime is not None:
            engines = await stack.enter_async_context(minds.realtime())
            spoken = RealtimeConduct(
                mode=RealtimeMode(servers.realtime.conduct), expires_in_response=servers.realtime.expires_in_response
            )
            backstage.realtime = await stack.enter_async_context(LocalRealtimeServer(engines, spoken))
        yield backstage


def _scripted(spec: ModelSpec) -> LocalChatServer:
    return LocalChatServer(
        ChatConduct(answer=Script(spec).answer, mode=ChatMode(spec.conduct), first_token_delay_s=spec.first_token_s)
    )


class LocalBackstage:
    """The servers while they run. Belongs to `open_local_backstage`."""

    def __init__(self) -> None:
        self.model: LocalChatServer | None = None
        self.fallback: LocalChatServer | None = None
        self.speech: LocalSpeechServer | None = None
        self.realtime: LocalRealtimeServer | None = None

    @property
    def settings(self) -> dict[str, object]:
        """Return the bot's settings that point it at these servers."""
        made: dict[str, object] = {}
        if self.model is not None:
            made |= {"llm.base_url": self.model.base_url, "llm.model": CHAT_MODEL}
        if self.fallback is not None:
            made["llm.fallback_models"] = [{"model": FALLBACK_MODEL, "base_url": self.fallback.base_url}]
        if self.speech is not None:
            made |= {
                "speaking.engine": "endpoint",
                "speaking.base_url": self.speech.base_url,
                "speaking.model": SPEECH_MODEL,
            }
        if self.realtime is not None:
            made |= {"realtime.enabled": True, "realtime.base_url": self.realtime.base_url}
        return made

    @property
    def seen(self) -> ServersSeen:
        """Return what came to the servers so far."""
        tools: list[ToolUse] = []
        heard_ms: tuple[int, ...] = ()
        if self.model is not None and self.model.calls:
            # Every request repeats the conversation before it, so each use is counted once.
            tools += dict.fromkeys(use for call in self.model.calls for use in tools_told(call.messages))
        if self.realtime is not None:
            tools += [ToolUse(name, told) for name, told in self.realtime.tools]
            heard_ms = tuple(int(event["audio_end_ms"]) for event in self.realtime.of("conversation.item.truncate"))
        return ServersSeen(tuple(tools), heard_ms, 0 if self.realtime is None else self.realtime.sessions)

    async def conduct(self, step: Conduct) -> None:
        """Let a server behave as the step says from now on. Raises `StageError` where it is not there."""
        match step.server:
            case "model" | "fallback" if model := self.fallback if step.server == "fallback" else self.model:
                model.conduct.mode = ChatMode(step.conduct)
                if step.first_token_s is not None:
                    model.conduct.first_token_delay_s = step.first_token_s
            case "speech" if self.speech is not None:
                self.speech.conduct.mode = SpeechMode(step.conduct)
            case "realtime" if self.realtime is not None and step.conduct == EXPIRE:
                await self.realtime.expire()
            case "realtime" if self.realtime is not None:
                self.realtime.conduct.mode = RealtimeMode(step.conduct)
            case _:
                raise StageError(f"There is no {step.server} server here. Give the scenario [servers.{step.server}].")


def tools_told(messages: Any) -> list[ToolUse]:
    """Return the tools whose results stand in the messages of a request, in order."""
    names = {
        str(call.get("id")): str((call.get("function") or {}).get("name"))
        for message in messages
        for call in message.get("tool_calls") or ()
    }
    return [
        ToolUse(names.get(str(message.get("tool_call_id")), "?"), str(message.get("content")))
        for message in messages
        if message.get("role") == "tool"
    ]
