"""The local realtime server, tested with the real client library."""

from __future__ import annotations

import base64
from typing import Any

from openai.types.realtime import (
    ConversationItemTruncatedEvent,
    RealtimeErrorEvent,
    ResponseAudioDeltaEvent,
    ResponseDoneEvent,
    SessionCreatedEvent,
)

from rehearsal.servers.realtime_behaviour import FunctionCall, RealtimeBehaviour
from tests.rehearsal.servers.realtime_client import FakeModel, RealtimeLine, client_of, served, tone

MANUAL: dict[str, Any] = {
    "type": "realtime",
    "instructions": "Be kind.",
    "audio": {
        "input": {
            "format": {"type": "audio/pcm", "rate": 24000},
            "transcription": {"model": "gpt-4o-mini-transcribe"},
            "turn_detection": None,
        }
    },
}


async def _configured(line: RealtimeLine, **more: Any) -> None:
    await line.until("session.created")
    await line.send("session.update", session={**MANUAL, **more})
    await line.until("session.updated")


async def test_a_turn_is_heard_answered_and_spoken_in_the_protocols_order() -> None:
    """A turn is heard, answered and spoken with the events of the GA protocol, in its order."""
    async with served(FakeModel("hello there")) as server, client_of(server) as line:
        await _configured(line)
        await line.say(2)
        heard = await line.until("conversation.item.input_audio_transcription.completed")
        assert heard["transcript"] == "hello there"
        await line.send("response.create")
        done = await line.until("response.done")
        assert done["response"]["status"] == "completed"
        of_response = [kind for kind in line.types if kind.startswith("response.")]
        assert of_response[:3] == ["response.created", "response.output_item.added", "response.content_part.added"]
        assert of_response[-4:] == [
            "response.output_audio_transcript.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.done",
        ]
        assert "rate_limits.updated" in line.types
        sound = [event["delta"] for event in line.seen if event["type"] == "response.output_audio.delta"]
        assert b"".join(map(base64.b64decode, sound)) == tone(4).tobytes()
        said = [event["delta"] for event in line.seen if event["type"] == "response.output_audio_transcript.delta"]
        assert "".join(said) == "You said hello there"
        assert server.asked[0].instructions == "Be kind."


async def test_events_are_what_the_library_knows() -> None:
    """The library's own models validate the events."""
    async with served(FakeModel("hello")) as server, client_of(server) as line:
        await _configured(line)
        await line.say(1)
        await line.send("response.create")
        done = await line.until("response.done")
        ResponseDoneEvent.model_validate(done)
        SessionCreatedEvent.model_validate(line.seen[0])
        delta = next(event for event in line.seen if event["type"] == "response.output_audio.delta")
        ResponseAudioDeltaEvent.model_validate(delta)
        await line.send("conversation.item.truncate", item_id=delta["item_id"], content_index=0, audio_end_ms=250)
        ConversationItemTruncatedEvent.model_validate(await line.until("conversation.item.truncated"))
        await line.send("response.cancel", event_id="mine")
        error = RealtimeErrorEvent.model_validate(await line.until("error"))
        assert (error.error.code, error.error.event_id) == ("response_cancel_not_active", "mine")


async def test_what_was_not_heard_is_forgotten() -> None:
    """A truncated answer keeps only the words up to where it was heard."""
    model = FakeModel("hello", "go on")
    model.answers = ["one two three four"]
    async with served(model) as server, client_of(server) as line:
        await _configured(line)
        await line.say(1)
        await line.send("response.create")
        item = (await line.until("response.done"))["response"]["output"][0]
        await line.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=500)
        await line.until("conversation.item.truncated")
        await line.send("conversation.item.truncate", item_id=item["id"], content_index=0, audio_end_ms=99_000)
        assert "already shorter" in (await line.until("error"))["error"]["message"]
        await line.say(1)
        await line.send("response.create")
        await line.until("response.done")
        assert server.asked[1].items == (("user", "hello"), ("assistant", "one two"), ("user", "go on"))


async def test_a_function_is_called_and_its_output_taken() -> None:
    """The model calls a tool, and the next response gets the tool's output."""
    model = FakeModel("what did Bo say")
    model.answers = [FunctionCall("memory_search", '{"query": "Bo"}'), "Bo said yes"]
    async with served(model) as server, client_of(server) as line:
        await _configured(line, tools=[{"type": "function", "name": "memory_search", "parameters": {}}])
        await line.say(2)
        await line.send("response.create")
        call = await line.until("response.function_call_arguments.done")
        assert (call["name"], call["arguments"]) == ("memory_search", '{"query": "Bo"}')
        await line.until("response.done")
        output = {"type": "function_call_output", "call_id": call["call_id"], "output": "yes"}
        await line.send("conversation.item.create", item=output)
        await line.send("response.create")
        await line.until("response.done")
        assert server.asked[0].tools == ("memory_search",)
        assert server.asked[1].items[-1] == ("function_call_output", "yes")


async def test_a_session_can_expire_in_the_middle_of_an_answer() -> None:
    """A session can expire when half of an answer's sound has been sent."""
    model = FakeModel()
    model.answers = ["one two three four five six seven eight"]
    async with served(model, RealtimeBehaviour(expires_in_response=1)) as server, client_of(server) as line:
        await _configured(line)
        await line.send("response.create")
        await line.until("error")
        sound = [event for event in line.seen if event["type"] == "response.output_audio.delta"]
        assert 0 < len(sound) < 10
        assert "response.done" not in line.types
