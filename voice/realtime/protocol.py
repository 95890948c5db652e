"""The Realtime protocol as a state machine without a socket: commands and server events in, client events and news out.

It knows what of the conversation stands on the server, what was asked and not yet answered, and what must be said
again when the connection is made anew. It reads no clock and waits for nothing; `voice.realtime.session` drives it.
Event names are those of the GA protocol (`openai.types.realtime`).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from voice.realtime.effects import (
    AudioDelta,
    Effect,
    InputTranscribed,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    TextDelta,
    ToolCallRequested,
)
from voice.realtime.port import REALTIME_RATE_HZ, ConversationItem, ItemRole, RealtimeToolCall
from voice.realtime.wire import create_item, decode_audio, input_events, label_ids, session_update, tool_schema

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from voice.audio import Pcm
    from voice.realtime.port import Briefing, RealtimeTool
    from voice.realtime.wire import ClientEvent, SessionConfiguration

# Model calls of one answer that may be function calls; then it must speak.
TOOL_STEPS = 2
# Said to the model of the new session when the old one ended in the middle of an answer.
BROKEN_OFF = (
    "The connection broke while you spoke; your last words here were heard. Go on from there, without repeating."
)
# Errors of a race between us and the server: what was asked for had just become true by itself.
HARMLESS = frozenset({"response_cancel_not_active", "item_not_found"})


@dataclass(slots=True)
class _Input:
    """Something said to the model. Kept with its sound until its text has come: a lost session hears it again."""

    id: int
    speakers: str
    pcm: Pcm
    item_id: str | None = None


@dataclass(slots=True)
class _Answer:
    """The answer that is being made, or was made last. `sound`: the ms that came of each of its items, in order."""

    response_id: str | None = None
    over: bool = False
    steps: int = 0
    # Of the response at hand: what tools owe, whether it called any, and whether it has ended.
    calls: set[str] = field(default_factory=set)
    called: bool = False
    done: bool = False
    sound: dict[str, int] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    resumed: bool = False
    # What stands on this connection for the part of it that came over the last one.
    begun: tuple[str, ...] = ()

    @property
    def sounded(self) -> bool:
        """Return whether any of it has come."""
        return any(self.sound.values())

    def respond_anew(self) -> None:
        """Await another response; what the one at hand called is dealt with."""
        self.response_id = None
        self.calls.clear()
        self.called = self.done = False


class RealtimeProtocol:
    """One room's conversation over any number of connections, one after the other."""

    def __init__(self, configuration: SessionConfiguration) -> None:
        self._configuration = configuration
        self._ids = itertools.count(1)
        self._connected = False
        # In order: committed on this connection and not yet given an item, and all whose text has not come.
        self._uncommitted: list[_Input] = []
        self._unheard: dict[int, _Input] = {}
        self._answer: _Answer | None = None
        self._asked = False

    @property
    def idle(self) -> bool:
        """Return whether nothing is owed by either side, so that a new session would miss nothing."""
        return not self._unheard and (self._answer is None or self._answer.over)

    @property
    def begun(self) -> tuple[str, ...]:
        """Return the items that stand for the beginning of an answer that is gone on with on this connection."""
        return () if self._answer is None or self._answer.over else self._answer.begun

    # -- connections -----------------------------------------------------------------------------------------

    def opened(self, briefing: Briefing) -> list[ClientEvent]:
        """Return what a fresh connection is sent: settings, the window, what was not understood, what was asked."""
        self._connected = True
        events = [session_update(self._configuration, briefing), *(create_item(told) for told in briefing.items)]
        for waiting in self._unheard.values():
            events += self._say(waiting)
        answer = self._answer
        if answer is not None and not answer.over:
            if answer.sounded:
                answer.resumed = True
                spoken = " ".join(answer.words.values()).strip()
                answer.begun = (self._own_id("cut"), self._own_id("cut"))
                events.append(create_item(ConversationItem(answer.begun[0], ItemRole.ASSISTANT, spoken)))
                events.append(create_item(ConversationItem(answer.begun[1], ItemRole.SYSTEM, BROKEN_OFF)))
            answer.respond_anew()
            events.append({"type": "response.create"})
        return events

    def lost(self) -> list[Effect]:
        """Take note that the connection is gone. An answer that is resumed already and lost again ends here."""
        self._connected = False
        self._uncommitted.clear()
        for waiting in self._unheard.values():
            waiting.item_id = None
        answer = self._answer
        if answer is not None and not answer.over and answer.resumed:
            answer.over = True
            return [ResponseEnded(ResponseStatus.FAILED, "connection_lost")]
        return []

    # -- commands --------------------------------------------------------------------------------------------

    def hear(self, pcm: Pcm, *, speakers: str) -> tuple[int, list[ClientEvent]]:
        """Take an input (mono int16, 24 kHz); return its id and what to send."""
        heard = _Input(next(self._ids), speakers, pcm)
        self._unheard[heard.id] = heard
        return heard.id, self._say(heard) if self._connected else []

    def give_up(self, input_id: int) -> str | None:
        """Wait for an input's text no longer; return the item that holds its sound.

        None: there is none yet. When it comes it is taken out again, for nobody knows of it.
        """
        waiting = self._unheard.pop(input_id, None)
        return None if waiting is None else waiting.item_id

    def abandon(self) -> None:
        """Forget what was said and asked and is not dealt with: somebody else does it, and it is not said again."""
        self._uncommitted.clear()
        self._unheard.clear()
        self._answer = None

    def ask(self) -> list[ClientEvent]:
        """Begin an answer; one that was being made is cancelled, unheard."""
        events = self.interrupt(0) if self._answer is not None and not self._answer.over else []
        self._answer = _Answer()
        return [*events, {"type": "response.create"}] if self._connected else []

    def interrupt(self, heard_ms: int) -> list[ClientEvent]:
        """Break the answer off after `heard_ms` of its sound; what is sent also corrects what the server believes."""
        answer = self._answer
        if answer is None:
            return []
        events: list[ClientEvent] = []
        if not answer.over:
            answer.over = True
            events.append({"type": "response.cancel"})
        left = max(0, heard_ms)
        for item_id, length_ms in answer.sound.items():
            heard, left = min(left, length_ms), max(0, left - length_ms)
            if heard < length_ms:
                events.append(
                    {
                        "type": "conversation.item.truncate",
                        "item_id": item_id,
                        "content_index": 0,
                        "audio_end_ms": heard,
                    }
                )
        self._answer = None
        return events if self._connected else []

    def tell(self, told: ConversationItem) -> list[ClientEvent]:
        """Put a written item into the conversation. Not kept: a fresh session is briefed with what counts then."""
        return [create_item(told)] if self._connected else []

    def forget(self, item_ids: Iterable[str]) -> list[ClientEvent]:
        """Take items out of the conversation."""
        return [{"type": "conversation.item.delete", "item_id": one} for one in item_ids] if self._connected else []

    def instruct(self, instructions: str) -> list[ClientEvent]:
        """Change the instructions."""
        wanted = {"type": "realtime", "instructions": instructions}
        return [{"type": "session.update", "session": wanted}] if self._connected else []

    def offer(self, tools: Iterable[RealtimeTool]) -> list[ClientEvent]:
        """Change what the model may call."""
        wanted = {"type": "realtime", "tools": [tool_schema(tool) for tool in tools]}
        return [{"type": "session.update", "session": wanted}] if self._connected else []

    def tool_output(self, call_id: str, output: str) -> list[ClientEvent]:
        """Tell what a tool said; when no other is owed and the response that called it has ended, the model goes on."""
        answer = self._answer
        if answer is None or call_id not in answer.calls or not self._connected:
            return []
        answer.calls.discard(call_id)
        item = {"type": "function_call_output", "call_id": call_id, "output": output}
        events: list[ClientEvent] = [{"type": "conversation.item.create", "item": item}]
        if answer.done and not answer.calls and not answer.over:
            events.append(_go_on(answer))
        return events

    # -- server events ---------------------------------------------------------------------------------------

    def receive(self, event: Mapping[str, Any]) -> list[Effect]:
        """Take one server event in; kinds that mean nothing here are ignored."""
        kind = str(event.get("type"))
        match kind:
            case "session.updated":
                return [SessionReady()]
            case "input_audio_buffer.committed":
                return self._committed(str(event.get("item_id")))
            case "conversation.item.input_audio_transcription.completed":
                return self._transcribed(str(event.get("item_id")), str(event.get("transcript", "")))
            case "conversation.item.input_audio_transcription.failed":
                return self._transcribed(str(event.get("item_id")), None)
            case "error":
                return self._error(event.get("error") or {})
        if kind.startswith("response."):
            return self._of_answer(kind, event)
        return []

    def _committed(self, item_id: str) -> list[Effect]:
        if not self._uncommitted:
            return []
        committed = self._uncommitted.pop(0)
        committed.item_id = item_id
        if committed.id in self._unheard:
            return []
        return [SendEvent(event) for event in self.forget(label_ids(committed.id, item_id))]

    def _transcribed(self, item_id: str, text: str | None) -> list[Effect]:
        for waiting in self._unheard.values():
            if waiting.item_id == item_id:
                del self._unheard[waiting.id]
                return [InputTranscribed(waiting.id, item_id, text)]
        return []

    def _error(self, error: Mapping[str, Any]) -> list[Effect]:
        code = str(error.get("code") or error.get("type") or "unknown")
        if code == "session_expired":
            return [SessionExpired()]
        if code in HARMLESS:
            return []
        if code == "input_audio_buffer_commit_empty" and self._uncommitted:
            refused = self._uncommitted.pop(0)
            if self._unheard.pop(refused.id, None) is not None:
                return [InputTranscribed(refused.id, "", None)]
        return [ServerError(code, str(error.get("message", "")))]

    def _of_answer(self, kind: str, event: Mapping[str, Any]) -> list[Effect]:
        answer = self._answer
        if answer is None or answer.over:
            return []
        if kind == "response.created":
            if answer.response_id is None:
                answer.response_id = str((event.get("response") or {}).get("id"))
            return []
        if kind == "response.done":
            return self._done(answer, event.get("response") or {})
        if event.get("response_id") != answer.response_id:
            # Of an answer that was broken off: its last pieces were on their way.
            return []
        item_id = str(event.get("item_id"))
        match kind:
            case "response.output_audio.delta":
                pcm = decode_audio(str(event.get("delta", "")))
                answer.sound[item_id] = answer.sound.get(item_id, 0) + len(pcm) * 1000 // REALTIME_RATE_HZ
                return [AudioDelta(item_id, pcm)] if len(pcm) else []
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                words = str(event.get("delta", ""))
                answer.words[item_id] = answer.words.get(item_id, "") + words
                return [TextDelta(item_id, words)] if words else []
            case "response.function_call_arguments.done":
                call = RealtimeToolCall(str(event.get("call_id")), str(event.get("name")), str(event.get("arguments")))
                answer.calls.add(call.call_id)
                answer.called = True
                return [ToolCallRequested(call)]
        return []

    def _done(self, answer: _Answer, response: Mapping[str, Any]) -> list[Effect]:
        if response.get("id") != answer.response_id:
            return []
        details = response.get("status_details") or {}
        match response.get("status"):
            case "failed":
                answer.over = True
                error = details.get("error") or {}
                return [ResponseEnded(ResponseStatus.FAILED, str(error.get("code") or error.get("type") or "unknown"))]
            case "cancelled":
                answer.over = True
                return [ResponseEnded(ResponseStatus.CANCELLED)]
        if answer.called:
            answer.steps += 1
            answer.done = True
            # A quick tool is ready before the response that called it has ended.
            return [] if answer.calls else [SendEvent(_go_on(answer))]
        answer.over = True
        return [ResponseEnded(ResponseStatus.COMPLETE)]

    def _own_id(self, what: str) -> str:
        return f"{what}_{next(self._ids)}"

    def _say(self, waiting: _Input) -> list[ClientEvent]:
        self._uncommitted.append(waiting)
        return input_events(waiting.id, waiting.speakers, waiting.pcm)


def _go_on(answer: _Answer) -> ClientEvent:
    """Return what lets the model go on after its tools. After some steps it must speak."""
    answer.respond_anew()
    more: ClientEvent = {"type": "response.create"}
    if answer.steps >= TOOL_STEPS:
        more["response"] = {"tool_choice": "none"}
    return more
