"""The Realtime protocol as a sans-I/O state machine. It takes commands and server events, and returns client events and
effects.

It tracks which inputs are not transcribed yet and which reply is in progress, so that a new connection can send them
again. It reads no clock and waits for nothing; `voice.realtime.session` drives it. Event names are those of the GA
protocol (`openai.types.realtime`).
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from voice.realtime.active_reply import ActiveReply
from voice.realtime.effects import (
    ConfigurationRefused,
    Effect,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    ToolRefused,
    status_of,
)
from voice.realtime.port import Briefing, ConversationItem, ItemRole, RealtimeTool, ReplyPiece, ReplyResumed
from voice.realtime.session_tools import SessionTools
from voice.realtime.untranscribed_inputs import UntranscribedInputs
from voice.realtime.wire import (
    CONFIGURATION_ID,
    ClientEvent,
    code_of,
    create_item,
    decode_audio,
    id_of,
    label_ids,
    object_of,
    session_update,
    setting_of,
    text_of,
    tool_call,
    tool_schema,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from voice.audio import Pcm

# Sent to the model of the new session when the old session ended in the middle of a reply.
BROKEN_OFF = (
    "The connection broke while you spoke; your last words here were heard. Go on from there, without repeating."
)
# Our own code for a reply in writing: models sometimes answer without sound.
NO_SOUND = "no_sound"
# Our own code for a reply that calls tools over and over and says nothing.
ONLY_CALLS = "only_tool_calls"
# Our own code for a reply that goes far beyond what a reply has.
TOO_LONG = "reply_too_long"
# Responses that nobody waits for, which end within moments.
_MOST_ORPHANS = 64
# Error codes caused by races with the server: it had already done what was requested.
NOTHING_TO_CANCEL = "response_cancel_not_active"
HARMLESS = frozenset({NOTHING_TO_CANCEL, "item_not_found"})
# The server still makes an earlier response, so it refused to begin the next one.
STILL_ANSWERING = "conversation_already_has_active_response"


class RealtimeProtocol:
    """One room's conversation, over any number of successive connections."""

    def __init__(self, voice: str) -> None:
        self._voice = voice
        self._ids = itertools.count(1)
        self._connected = False
        self._inputs = UntranscribedInputs()
        self._reply: ActiveReply | None = None
        # Responses that the server began after their reply was given up.
        self._orphans: dict[str, None] = {}
        self._tools = SessionTools()

    @property
    def idle(self) -> bool:
        """Return whether nothing is pending, so that the session can be replaced now."""
        return not self._inputs and (self._reply is None or self._reply.over)

    @property
    def resumed(self) -> ReplyResumed | None:
        """Return where the pending reply continues on a new connection; None if none is pending."""
        reply = self._reply
        if reply is None or reply.over:
            return None
        return ReplyResumed(reply.said, reply.resumed_items)

    @property
    def can_truncate(self) -> bool:
        """Return whether the reply's items on this connection can be shortened to what was heard. An item of text
        cannot, and a reply that was over before this connection has none.
        """
        reply = self._reply
        return reply is None or (bool(reply.sound) and not reply.resumed_items)

    # -- connections -----------------------------------------------------------------------------------------

    def on_connected(self, briefing: Briefing) -> list[ClientEvent]:
        """Return the first events of a new connection: settings, recent turns, pending inputs and the pending reply."""
        self._connected = True
        tools = self._tools.offer(briefing.tools, CONFIGURATION_ID)
        events = [
            session_update(self._voice, replace(briefing, tools=tools)),
            *(create_item(item) for item in briefing.items),
            *self._inputs.send_all(),
        ]
        reply = self._reply
        if reply is not None and not reply.over:
            reply.resumed = reply.has_sound
            # Without words the model does not know from where to continue, so it answers from the beginning.
            if reply.said:
                said, broken_off = reply.resumed_items = (self._own_id("cut"), self._own_id("cut"))
                events.append(create_item(ConversationItem(said, ItemRole.ASSISTANT, reply.said)))
                events.append(create_item(ConversationItem(broken_off, ItemRole.SYSTEM, BROKEN_OFF)))
            events.append(self._request(reply))
        return events

    def on_disconnected(self) -> list[Effect]:
        """Handle a lost connection. A reply that was already resumed once ends now."""
        self._connected = False
        self._inputs.on_connection_lost()
        self._orphans.clear()
        self._tools.items.clear()
        reply = self._reply
        if reply is None:
            return []
        reply.on_connection_lost()
        if not reply.over and reply.resumed:
            reply.over = True
            return [ResponseEnded(ResponseStatus.FAILED, "connection_lost")]
        return []

    # -- commands --------------------------------------------------------------------------------------------

    def send_audio(self, pcm: Pcm, *, speakers: str) -> tuple[int, list[ClientEvent]]:
        """Add an input (mono int16, 24 kHz); return its id and the events to send."""
        input_id = next(self._ids)
        self._inputs.add(input_id, speakers, pcm)
        return input_id, self._inputs.send(input_id) if self._connected else []

    def drop_input(self, input_id: int) -> str | None:
        """Stop waiting for an input's transcription, and return the id of its item.

        None: the input has no item yet. The item is deleted when it appears, because the room does not know it.
        """
        return self._inputs.drop(input_id)

    def reset(self) -> None:
        """Forget pending inputs and the reply, because the room handles them in another way."""
        self._inputs.clear()
        self._reply = None

    def request_reply(self) -> list[ClientEvent]:
        """Request a reply. A reply in progress is cancelled."""
        events = self.interrupt(0) if self._reply is not None and not self._reply.over else []
        reply = self._reply = ActiveReply()
        return [*events, self._request(reply)] if self._connected else []

    def interrupt(self, heard_ms: int) -> list[ClientEvent]:
        """Cut the reply off after `heard_ms` of its sound, and tell the server what was heard. A reply that it cannot
        truncate (`can_truncate`) is deleted.
        """
        reply, self._reply = self._reply, None
        if reply is None:
            return []
        events = self._cut(reply, heard_ms)
        if reply.resumed_items:
            events += self.delete_items(dict.fromkeys((*reply.resumed_items, *reply.words, *reply.sound)))
        return events

    def end_reply(self, *, lost_ms: int) -> list[ClientEvent]:
        """End the reply here, without the last `lost_ms` of its sound, and tell the server. `interrupt` may still cut
        it off earlier.
        """
        reply = self._reply
        return [] if reply is None else self._cut(reply, reply.sound_ms - lost_ms)

    def _cut(self, reply: ActiveReply, kept_ms: int) -> list[ClientEvent]:
        """Return the events that stop the reply and shorten its sound to `kept_ms`."""
        events: list[ClientEvent] = []
        if not reply.over:
            reply.over = True
            events.append({"type": "response.cancel"})
        events += reply.truncate(kept_ms)
        return events if self._connected else []

    def add_item(self, item: ConversationItem) -> list[ClientEvent]:
        """Add a text item. It is not kept, because a new session gets a current briefing."""
        return [create_item(item)] if self._connected else []

    def delete_items(self, item_ids: Iterable[str]) -> list[ClientEvent]:
        """Delete items of the conversation."""
        return [{"type": "conversation.item.delete", "item_id": one} for one in item_ids] if self._connected else []

    def set_instructions(self, instructions: str) -> list[ClientEvent]:
        """Change the instructions."""
        wanted = {"type": "realtime", "instructions": instructions}
        return [{"type": "session.update", "session": wanted}] if self._connected else []

    def set_tools(self, tools: Iterable[RealtimeTool]) -> list[ClientEvent]:
        """Change the tools that the model may call."""
        event_id = self._own_id("tools")
        wanted = {"type": "realtime", "tools": [tool_schema(tool) for tool in self._tools.offer(tools, event_id)]}
        return [{"type": "session.update", "event_id": event_id, "session": wanted}] if self._connected else []

    def tool_output(self, call_id: str, output: str) -> list[ClientEvent]:
        """Send a tool's output. The model continues when all its calls are answered and the response has ended."""
        reply = self._reply
        if reply is None or call_id not in reply.calls or not self._connected:
            return []
        reply.calls.discard(call_id)
        item = {"type": "function_call_output", "id": self._own_id("result"), "call_id": call_id, "output": output}
        self._tools.note_item(item["id"])
        events: list[ClientEvent] = [{"type": "conversation.item.create", "item": item}]
        if reply.done and not reply.calls and not reply.over:
            events.append(self._request(reply))
        return events

    def delete_tool_calls(self) -> list[ClientEvent]:
        """Delete all calls of tools and their results. No turn holds them, and each later reply would be sent them."""
        items, self._tools.items = self._tools.items, {}
        return self.delete_items(items)

    # -- server events ---------------------------------------------------------------------------------------

    def receive(self, event: Mapping[str, Any]) -> list[Effect]:
        """Handle one server event. Unknown types are ignored."""
        kind = str(event.get("type"))
        match kind:
            case "session.updated":
                return [SessionReady()]
            case "input_audio_buffer.committed":
                dropped = self._inputs.on_committed(id_of(event.get("item_id")))
                return [SendEvent(event) for event in self.delete_items(dropped)]
            case "conversation.item.input_audio_transcription.completed":
                written = event.get("transcript")
                return self._transcribed(id_of(event.get("item_id")), written if isinstance(written, str) else None)
            case "conversation.item.input_audio_transcription.failed":
                return self._transcribed(id_of(event.get("item_id")), None)
            case "error":
                return self._error(object_of(event.get("error")))
        if kind.startswith("response."):
            return self._on_response_event(kind, event)
        return []

    def _transcribed(self, item_id: str, text: str | None) -> list[Effect]:
        found = self._inputs.on_transcribed(item_id, text)
        return [] if found is None else [found]

    def _error(self, error: Mapping[str, Any]) -> list[Effect]:
        code = code_of(error)
        if code == "session_expired":
            return [SessionExpired()]
        of_configuration = error.get("event_id") == CONFIGURATION_ID
        if tool := self._tools.refuse(error):
            others = [] if of_configuration else self.set_tools(self._tools.offered)
            return [ToolRefused(tool, begins_anew=of_configuration), *map(SendEvent, others)]
        if of_configuration:
            mistaken = error.get("type") == "invalid_request_error"
            return [ConfigurationRefused(code, setting_of(error), mistaken)]
        reply = self._reply
        if code == STILL_ANSWERING and reply is not None and reply.awaits_response:
            reply.refused = True
            return [SendEvent({"type": "response.cancel"})]
        if code == NOTHING_TO_CANCEL:
            return self._ask_again()
        if code in HARMLESS:
            return []
        if code == "input_audio_buffer_commit_empty" and (refused := self._inputs.on_commit_refused()) is not None:
            label, *_ = label_ids(refused.input_id, refused.item_id)
            return [*(SendEvent(event) for event in self.delete_items([label])), refused]
        return [ServerError(code)]

    def _on_response_event(self, kind: str, event: Mapping[str, Any]) -> list[Effect]:
        if kind == "response.created":
            return self._begun(object_of(event.get("response")))
        if kind == "response.done":
            return self._done(object_of(event.get("response")))
        item = object_of(event.get("item"))
        if kind == "response.output_item.added" and item.get("type") == "function_call":
            # It is in the conversation from now on, also if its reply is cut off before its arguments are complete.
            self._tools.note_item(id_of(item.get("id")))
        if kind == "response.function_call_arguments.done":
            self._tools.note_item(id_of(event.get("item_id")))
        reply = self._reply
        if reply is None or reply.over:
            return []
        if event.get("response_id") != reply.response_id:
            # This is a late piece of a reply that was cut off.
            return []
        return self._bounded(reply, self._on_piece(reply, kind, event))

    def _on_piece(self, reply: ActiveReply, kind: str, event: Mapping[str, Any]) -> list[Effect]:
        """Handle a piece of the reply."""
        item_id = id_of(event.get("item_id"))
        match kind:
            case "response.output_audio.delta":
                pcm = decode_audio(text_of(event.get("delta")))
                if not len(pcm):
                    return []
                reply.sound[item_id] = reply.sound.get(item_id, 0) + len(pcm)
                return [ReplyPiece(item_id, pcm=pcm)]
            case "response.output_audio_transcript.delta" | "response.output_text.delta":
                words = text_of(event.get("delta"))
                if not words:
                    return []
                reply.words[item_id] = reply.words.get(item_id, "") + words
                return [ReplyPiece(item_id, words=words)]
            case "response.function_call_arguments.done":
                reply.called += 1
                if not reply.may_call:
                    # Not every server obeys `tool_choice: none`.
                    return []
                call = tool_call(event)
                reply.calls.add(call.call_id)
                return [call]
        return []

    def _bounded(self, reply: ActiveReply, effects: list[Effect]) -> list[Effect]:
        """Return the effects of a piece, or end the reply before it if there is too much of it."""
        if not reply.is_too_long:
            return effects
        reply.over = True
        return [SendEvent({"type": "response.cancel"}), ResponseEnded(ResponseStatus.FAILED, TOO_LONG)]

    def _begun(self, response: Mapping[str, Any]) -> list[Effect]:
        """Take a response that the server begins as that of the reply. One that nobody waits for any more is cancelled:
        its reply was given up before the server began it, and there was nothing to cancel then.
        """
        response_id, reply = id_of(response.get("id")), self._reply
        if reply is not None and reply.takes(response):
            reply.response_id = response_id
            return []
        self._orphans[response_id] = None
        while len(self._orphans) > _MOST_ORPHANS:
            del self._orphans[next(iter(self._orphans))]
        return [SendEvent({"type": "response.cancel", "response_id": response_id})]

    def _done(self, response: Mapping[str, Any]) -> list[Effect]:
        response_id, reply = id_of(response.get("id")), self._reply
        if response_id in self._orphans:
            del self._orphans[response_id]
            forgotten = [SendEvent(event) for event in self.delete_items(_items_of(response))]
            return [*forgotten, *self._ask_again()]
        if reply is None or reply.over or response_id != reply.response_id:
            return self._ask_again()
        return self._ended(reply, response)

    def _ask_again(self) -> list[Effect]:
        """Request the response again that the server refused, now that it makes no other one."""
        reply = self._reply
        if reply is None or not reply.refused or not reply.awaits_response:
            return []
        return [SendEvent(self._request(reply))]

    def _ended(self, reply: ActiveReply, response: Mapping[str, Any]) -> list[Effect]:
        if (status := status_of(response)) is not ResponseStatus.COMPLETE:
            reply.over = True
            error = object_of(object_of(response.get("status_details")).get("error"))
            return [ResponseEnded(status, code_of(error))]
        if reply.called and reply.may_call:
            reply.steps += 1
            reply.done = True
            # A quick tool may finish before the response that called it.
            return [] if reply.calls else [SendEvent(self._request(reply))]
        reply.over = True
        if reply.has_sound or not (reply.words or reply.called):
            return [ResponseEnded(ResponseStatus.COMPLETE)]
        # The room does not know these words, because nobody heard them.
        unheard = [SendEvent(event) for event in self.delete_items(reply.words)]
        return [*unheard, ResponseEnded(ResponseStatus.FAILED, NO_SOUND if reply.words else ONLY_CALLS)]

    def _request(self, reply: ActiveReply) -> ClientEvent:
        return reply.request_response(next(self._ids))

    def _own_id(self, what: str) -> str:
        return f"{what}_{next(self._ids)}"


def _items_of(response: Mapping[str, Any]) -> list[str]:
    """Return the items of a response."""
    output = response.get("output")
    listed = output if isinstance(output, list) else []
    return [id_of(item["id"]) for item in listed if isinstance(item, dict) and "id" in item]
