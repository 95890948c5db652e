"""The Realtime protocol without a socket: which events are sent, and what survives a lost connection."""

from __future__ import annotations

import base64
import re
import weakref
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from voice.realtime.active_reply import MOST_CALLS, MOST_CHARS, MOST_ITEMS, MOST_SOUND_S, TOOL_STEPS
from voice.realtime.effects import (
    ConfigurationRefused,
    InputTranscribed,
    ResponseEnded,
    ResponseStatus,
    SendEvent,
    ServerError,
    SessionExpired,
    SessionReady,
    ToolRefused,
)
from voice.realtime.port import (
    Briefing,
    ConversationItem,
    ItemRole,
    RealtimeTool,
    RealtimeToolCall,
    ReplyPiece,
    ReplyResumed,
)
from voice.realtime.protocol import BROKEN_OFF, NO_SOUND, ONLY_CALLS, STILL_ANSWERING, TOO_LONG, RealtimeProtocol
from voice.realtime.wire import (
    APPEND_BYTES,
    LEAST_COMMIT_SAMPLES,
    MOST_ID_CHARS,
    TRANSCRIPTION_MODEL,
    decode_audio,
    input_events,
    label_ids,
    session_update,
)

SECOND = np.full(24_000, 7, np.int16)
BRIEFING = Briefing(
    "Be kind.",
    (
        ConversationItem("turn_1", ItemRole.USER, "[21:04] Ada: hi"),
        ConversationItem("turn_2", ItemRole.ASSISTANT, "Hi."),
    ),
)


def _protocol() -> RealtimeProtocol:
    return RealtimeProtocol("marin")


def _open() -> RealtimeProtocol:
    protocol = _protocol()
    protocol.on_connected(Briefing("Be kind."))
    return protocol


def _types(events: list[dict[str, Any]]) -> list[str]:
    return [event["type"] for event in events]


def _begun(protocol: RealtimeProtocol, response: str = "resp_1") -> None:
    protocol.request_reply()
    protocol.receive({"type": "response.created", "response": {"id": response}})


def _answering() -> RealtimeProtocol:
    """Return a protocol of which the server makes a reply, by the response `resp_1`."""
    protocol = _open()
    _begun(protocol)
    return protocol


def _created(request: dict[str, Any], response: str) -> dict[str, Any]:
    """Return the event with which the server begins a response, with what the request tells it to repeat."""
    return {"type": "response.created", "response": {"id": response, "metadata": request["response"]["metadata"]}}


def _refusal(code: str) -> dict[str, Any]:
    return {"type": "error", "error": {"code": code}}


def _sound(seconds: float = 1.0, *, item: str = "item_1", response: str = "resp_1") -> dict[str, Any]:
    raw = np.full(round(24_000 * seconds), 9, np.int16).tobytes()
    return {
        "type": "response.output_audio.delta",
        "response_id": response,
        "item_id": item,
        "delta": base64.b64encode(raw).decode(),
    }


def _called(call_id: str, *, response: str = "resp_1") -> dict[str, Any]:
    call = {"type": "response.function_call_arguments.done", "response_id": response, "item_id": "i"}
    return {**call, "call_id": call_id, "name": "look", "arguments": "{}"}


def _use_tools(protocol: RealtimeProtocol) -> dict[str, Any]:
    """Let the reply call a tool as often as it may. Return the last request for a response."""
    again: dict[str, Any] = {}
    for step in range(1, TOOL_STEPS + 1):
        protocol.receive(_called(f"c{step}", response=f"resp_{step}"))
        protocol.receive(_done(response=f"resp_{step}"))
        again = protocol.tool_output(f"c{step}", "a cat")[-1]
        protocol.receive({"type": "response.created", "response": {"id": f"resp_{step + 1}"}})
    return again


def _done(status: str = "completed", *, response: str = "resp_1", code: str = "") -> dict[str, Any]:
    details = {"error": {"code": code}} if code else None
    return {"type": "response.done", "response": {"id": response, "status": status, "status_details": details}}


def test_a_session_begins_with_settings_and_the_window() -> None:
    """The sound is 24 kHz both ways, the tools are offered, and each item has the type for its role."""
    first, *items = _protocol().on_connected(replace(BRIEFING, tools=(RealtimeTool("look", "Looks."),)))
    audio, tools = first["session"]["audio"], first["session"]["tools"]
    assert [way["format"] for way in audio.values()] == [{"type": "audio/pcm", "rate": 24_000}] * 2
    assert [tool["name"] for tool in tools] == ["look"]
    assert [item["item"]["content"][0]["type"] for item in items] == ["input_text", "output_text"]
    assert [item["item"]["id"] for item in items] == ["turn_1", "turn_2"]


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        (
            {"type": "invalid_request_error", "code": "invalid_value", "param": "session.audio.output.voice"},
            ConfigurationRefused("invalid_value", "session.audio.output.voice", mistaken=True),
        ),
        (
            {"type": "server_error", "code": None, "param": None},
            ConfigurationRefused("server_error", "", mistaken=False),
        ),
        (
            {"type": "invalid_request_error", "code": "invalid_value", "param": "What Ada said"},
            ConfigurationRefused("invalid_value", "", mistaken=True),
        ),
    ],
)
def test_a_refused_configuration_is_told_apart(said: dict[str, Any], refused: ConfigurationRefused) -> None:
    protocol = _protocol()
    configuring = protocol.on_connected(BRIEFING)[0]
    assert protocol.receive({"type": "error", "error": {**said, "event_id": configuring["event_id"]}}) == [refused]
    assert protocol.receive({"type": "error", "error": {**said, "event_id": None}}) != [refused]


@pytest.fixture
def opened() -> RealtimeProtocol:
    """A protocol that is connected."""
    return _open()


def test_a_refusal_of_tools_that_were_replaced_meanwhile_means_none_of_the_new_ones(opened: RealtimeProtocol) -> None:
    """The number of the refused tool is that in the list that was refused."""
    old, new = RealtimeTool("dig", "Digs."), RealtimeTool("look", "Looks.")
    refused, kept = opened.set_tools([old]), opened.set_tools([new])
    error = {"type": "invalid_request_error", "code": "x", "param": "session.tools[0].name"}
    told = opened.receive({"type": "error", "error": {**error, "event_id": refused[0]["event_id"]}})
    assert told == [ServerError("x")]
    (told_name, sent) = opened.receive({"type": "error", "error": {**error, "event_id": kept[0]["event_id"]}})
    assert told_name == ToolRefused("look", begins_anew=False)
    assert isinstance(sent, SendEvent)
    assert sent.event["session"]["tools"] == []


@pytest.mark.parametrize("param", ["session.tools[1].name", "session.tools[12345678].name", "session.tools", None])
def test_a_tool_that_was_not_offered_is_not_refused(param: str | None) -> None:
    """The settings as a whole are."""
    protocol = _protocol()
    protocol.on_connected(Briefing("Be kind.", tools=(RealtimeTool("look", "Looks."),)))
    error = {"type": "invalid_request_error", "code": "x", "param": param, "event_id": "configuration"}
    (told,) = protocol.receive({"type": "error", "error": error})
    assert isinstance(told, ConfigurationRefused)


@given(st.permutations(range(4)))
def test_texts_find_their_inputs_in_any_order(order: list[int]) -> None:
    """Transcriptions are matched to their inputs in any order, because the server transcribes asynchronously."""
    opened = _open()
    inputs = [opened.send_audio(SECOND, speakers=f"{number}")[0] for number in range(4)]
    for number in range(4):
        opened.receive({"type": "input_audio_buffer.committed", "item_id": f"item_{number}"})
    for number in order:
        event = {
            "type": "conversation.item.input_audio_transcription.completed",
            "item_id": f"item_{number}",
            "transcript": str(number),
        }
        assert opened.receive(event) == [InputTranscribed(inputs[number], f"item_{number}", str(number))]


def test_what_was_given_up_before_it_had_an_item_is_taken_out_when_it_has(opened: RealtimeProtocol) -> None:
    """If an input is dropped before the server names its item, the item is deleted when it appears. An existing item is
    kept.
    """
    first, _ = opened.send_audio(SECOND, speakers="Ada speaks:")
    second, _ = opened.send_audio(SECOND, speakers="Bo speaks:")
    assert opened.drop_input(first) is None
    gone = opened.receive({"type": "input_audio_buffer.committed", "item_id": "item_1"})
    assert gone == [
        SendEvent({"type": "conversation.item.delete", "item_id": each}) for each in label_ids(first, "item_1")
    ]
    assert opened.receive({"type": "input_audio_buffer.committed", "item_id": "item_2"}) == []
    assert opened.drop_input(second) == "item_2"
    assert opened.drop_input(second) is None


def test_no_sound_is_kept_for_a_server_that_names_no_items(opened: RealtimeProtocol) -> None:
    """Of an input that nobody waits for any more only the number is kept."""
    sound = SECOND.copy()
    kept = weakref.ref(sound)
    input_id, events = opened.send_audio(sound, speakers="Ada speaks:")
    opened.drop_input(input_id)
    del sound, events
    assert kept() is None
    assert opened.receive({"type": "input_audio_buffer.committed", "item_id": "item_1"}) != []


def test_short_words_are_filled_up_and_refused_ones_are_told(opened: RealtimeProtocol) -> None:
    """Sound under 100 ms is filled up, because the server takes no less. An input that is still refused has no text,
    and its label is deleted: what comes next may be somebody else's.
    """
    input_id, events = opened.send_audio(SECOND[:100], speakers="Ada speaks:")
    assert len(base64.b64decode(events[1]["audio"])) == 2 * 2_400
    refusal = {"type": "error", "error": {"code": "input_audio_buffer_commit_empty"}}
    assert opened.receive(refusal) == [
        SendEvent({"type": "conversation.item.delete", "item_id": events[0]["item"]["id"]}),
        InputTranscribed(input_id, "", None),
    ]


@pytest.fixture
def protocol() -> RealtimeProtocol:
    """A protocol of which the server makes a reply, by the response `resp_1`."""
    return _answering()


def test_an_answer_comes_as_sound_and_words_and_ends(protocol: RealtimeProtocol) -> None:
    """A reply's sound and text are returned as they come, and then its end."""
    assert not protocol.idle
    (sound,) = protocol.receive(_sound(0.5))
    assert isinstance(sound, ReplyPiece)
    assert sound.pcm is not None
    assert len(sound.pcm) == 12_000
    words = {"type": "response.output_audio_transcript.delta", "response_id": "resp_1", "item_id": "item_1"}
    assert protocol.receive({**words, "delta": "Hi "}) == [ReplyPiece("item_1", words="Hi ")]
    assert protocol.receive(_done()) == [ResponseEnded(ResponseStatus.COMPLETE)]
    assert protocol.idle


def test_a_response_that_begins_after_its_reply_was_given_up_is_cancelled(opened: RealtimeProtocol) -> None:
    """A response that begins only after its reply was interrupted is cancelled and deleted, and the next reply waits
    for its own response.
    """
    (first,) = opened.request_reply()
    opened.interrupt(0)
    (second,) = opened.request_reply()
    assert opened.receive(_created(first, "resp_1")) == [
        SendEvent({"type": "response.cancel", "response_id": "resp_1"})
    ]
    assert opened.receive(_sound(response="resp_1")) == []
    assert opened.receive(_created(second, "resp_2")) == []
    cancelled = _done("cancelled", response="resp_1")
    cancelled["response"]["output"] = [{"id": "item_1"}, "no item"]
    assert opened.receive(cancelled) == [SendEvent({"type": "conversation.item.delete", "item_id": "item_1"})]
    assert isinstance(opened.receive(_sound(response="resp_2"))[0], ReplyPiece)
    assert opened.receive(_done(response="resp_2")) == [ResponseEnded(ResponseStatus.COMPLETE)]


@pytest.mark.parametrize("ended", [_done("cancelled", response="resp_0"), _refusal("response_cancel_not_active")])
def test_a_refused_request_is_made_again_when_the_earlier_response_is_over(
    opened: RealtimeProtocol, ended: dict[str, Any]
) -> None:
    """If the server refuses to begin a response because it still makes an earlier one, that one is cancelled and then
    the request is made again, once.
    """
    opened.request_reply()
    assert opened.receive(_refusal(STILL_ANSWERING)) == [SendEvent({"type": "response.cancel"})]
    (again,) = opened.receive(ended)
    assert isinstance(again, SendEvent)
    assert opened.receive(ended) == []
    assert opened.receive(_created(again.event, "resp_1")) == []
    assert isinstance(opened.receive(_sound())[0], ReplyPiece)


def test_an_answer_in_writing_alone_has_failed(protocol: RealtimeProtocol) -> None:
    """A reply that has words and no sound has failed, because nobody heard it, and its item is deleted."""
    words = {"type": "response.output_text.delta", "response_id": "resp_1", "item_id": "item_1", "delta": "Hi."}
    protocol.receive(words)
    assert protocol.receive(_done()) == [
        SendEvent({"type": "conversation.item.delete", "item_id": "item_1"}),
        ResponseEnded(ResponseStatus.FAILED, NO_SOUND),
    ]
    assert protocol.idle


@pytest.mark.parametrize("complete", [False, True])
def test_a_barge_in_cancels_and_truncates_where_it_was_heard(protocol: RealtimeProtocol, complete: bool) -> None:
    """Later deltas are ignored. A complete reply that still plays is truncated without a cancel: the server makes it
    faster than it is played.
    """
    protocol.receive(_sound(2.0))
    if complete:
        protocol.receive(_done())
    truncate = {"type": "conversation.item.truncate", "item_id": "item_1", "content_index": 0, "audio_end_ms": 750}
    assert protocol.interrupt(750) == [*[{"type": "response.cancel"}][complete:], truncate]
    assert [*protocol.receive(_sound()), *protocol.receive(_done("cancelled")), *protocol.interrupt(0)] == []


@given(st.lists(st.integers(1, 30), min_size=1, max_size=5), st.integers(0, 20_000))
def test_never_truncated_beyond_what_came(hundreds: list[int], heard_ms: int) -> None:
    """An item is never truncated beyond the sound received, because the server refuses that. What remains adds up to
    what was heard.
    """
    protocol = _answering()
    for number, length in enumerate(hundreds):
        protocol.receive(_sound(length / 10, item=f"item_{number}"))
    cuts = {event["item_id"]: event["audio_end_ms"] for event in protocol.interrupt(heard_ms)[1:]}
    kept = [min(100 * length, cuts.get(f"item_{number}", 100 * length)) for number, length in enumerate(hundreds)]
    assert sum(kept) == min(heard_ms, 100 * sum(hundreds))


def test_a_reply_that_is_too_long_ends_where_the_room_keeps_it(protocol: RealtimeProtocol) -> None:
    """The server stops making it and shortens it to what is kept. A barge-in may cut it off still earlier."""
    for _ in range(3):
        protocol.receive(_sound())
    cancel, truncate = protocol.end_reply(lost_ms=1_000)
    assert (cancel["type"], truncate["audio_end_ms"]) == ("response.cancel", 2_000)
    assert protocol.receive(_sound()) == []
    assert protocol.idle
    assert [event["audio_end_ms"] for event in protocol.interrupt(500)] == [500]
    assert protocol.end_reply(lost_ms=0) == []


def _words(words: str, *, item: str = "item_1") -> dict[str, Any]:
    kind = "response.output_audio_transcript.delta"
    return {"type": kind, "response_id": "resp_1", "item_id": item, "delta": words}


@pytest.mark.parametrize(
    "pieces",
    [
        [_words("word " * 100) for _ in range(MOST_CHARS // 500 + 1)],
        [_words("w", item=f"item_{number}") for number in range(MOST_ITEMS + 1)],
        [_sound(0.001, item=f"item_{number}") for number in range(MOST_ITEMS + 1)],
        [_sound(60.0)] * (MOST_SOUND_S // 60 + 1),
        [_called(f"c{number}") for number in range(MOST_CALLS + 1)],
    ],
)
def test_a_reply_without_an_end_is_ended(protocol: RealtimeProtocol, pieces: list[dict[str, Any]]) -> None:
    """Whatever a server sends too much of. The piece that is too much has no effect, and nothing more is kept."""
    *within, beyond = pieces
    for piece in within:
        (effect,) = protocol.receive(piece)
        assert isinstance(effect, ReplyPiece | RealtimeToolCall)
    cancel, ended = protocol.receive(beyond)
    assert cancel == SendEvent({"type": "response.cancel"})
    assert ended == ResponseEnded(ResponseStatus.FAILED, TOO_LONG)
    assert protocol.receive(beyond) == []
    assert protocol.idle


def test_responses_that_nobody_waits_for_are_not_kept_for_ever(opened: RealtimeProtocol) -> None:
    """A server may begin as many as it likes. The newest are known when they end."""
    for number in range(1_000):
        opened.receive({"type": "response.created", "response": {"id": f"resp_{number}"}})
    ended = [{"id": f"resp_{number}", "output": [{"id": "item"}]} for number in (0, 999)]
    known = [opened.receive({"type": "response.done", "response": each}) for each in ended]
    assert known == [[], [SendEvent({"type": "conversation.item.delete", "item_id": "item"})]]


def test_what_a_server_names_is_cut_and_a_sentence_is_no_code(protocol: RealtimeProtocol) -> None:
    """Codes are logged, and tasks have the names of tools."""
    (called,) = protocol.receive({**_called("c" * 1_000), "name": "n" * 1_000, "arguments": "a" * 100_000})
    assert called == RealtimeToolCall("c" * MOST_ID_CHARS, "n" * MOST_ID_CHARS, "a" * 20_000)
    assert protocol.receive(_refusal("Ada said no")) == [ServerError("unknown")]
    assert protocol.receive(_done("failed", code="Ada said no")) == [ResponseEnded(ResponseStatus.FAILED, "unknown")]


def test_a_tool_is_called_and_the_answer_goes_on(protocol: RealtimeProtocol) -> None:
    """Tool calls belong to one reply, and after `TOOL_STEPS` of them the model must speak."""
    for step in range(1, TOOL_STEPS + 1):
        wanted = protocol.receive(_called(f"c{step}", response=f"resp_{step}"))
        assert wanted == [RealtimeToolCall(f"c{step}", "look", "{}")]
        assert protocol.receive(_done(response=f"resp_{step}")) == []
        output, again = protocol.tool_output(f"c{step}", "a cat")
        told = {"type": "function_call_output", "call_id": f"c{step}", "output": "a cat"}
        assert output["item"] == {**told, "id": output["item"]["id"]}
        assert again.get("response", {}).get("tool_choice") == ("none" if step == TOOL_STEPS else None)
        protocol.receive({"type": "response.created", "response": {"id": f"resp_{step + 1}"}})
    assert isinstance(protocol.receive(_sound(response=f"resp_{TOOL_STEPS + 1}"))[0], ReplyPiece)
    assert protocol.receive(_done(response=f"resp_{TOOL_STEPS + 1}")) == [ResponseEnded(ResponseStatus.COMPLETE)]


def test_calls_of_tools_and_their_results_can_be_deleted(protocol: RealtimeProtocol) -> None:
    """Both are items of the conversation. They are deleted once, and are gone with their connection."""
    protocol.receive({**_called("c1"), "item_id": "call_item"})
    output, *_ = protocol.tool_output("c1", "a cat")
    deleted = protocol.delete_tool_calls()
    assert [event["item_id"] for event in deleted] == ["call_item", output["item"]["id"]]
    assert protocol.delete_tool_calls() == []
    protocol.receive(_called("c2"))
    protocol.on_disconnected()
    protocol.on_connected(BRIEFING)
    assert protocol.delete_tool_calls() == []


def test_a_call_that_comes_after_an_interruption_can_be_deleted(protocol: RealtimeProtocol) -> None:
    """The server has made it by then, so it is in the conversation, although it is not run. However many come, not all
    are kept.
    """
    protocol.interrupt(0)
    assert protocol.receive({**_called("c1"), "item_id": "call_item"}) == []
    assert [event["item_id"] for event in protocol.delete_tool_calls()] == ["call_item"]
    # One that is broken off while it is written may have what another tool returned.
    added = {"type": "response.output_item.added", "response_id": "resp_1"}
    for kind in ("function_call", "message"):
        assert protocol.receive({**added, "item": {"id": f"half_{kind}", "type": kind}}) == []
    assert [event["item_id"] for event in protocol.delete_tool_calls()] == ["half_function_call"]
    for number in range(1_000):
        protocol.receive({**_called("c1"), "item_id": f"item_{number}"})
    kept = [event["item_id"] for event in protocol.delete_tool_calls()]
    assert len(kept) < 100
    assert kept[-1] == "item_999"


@pytest.mark.parametrize(
    ("heard", "ended"),
    [
        (True, ResponseEnded(ResponseStatus.COMPLETE)),
        (False, ResponseEnded(ResponseStatus.FAILED, ONLY_CALLS)),
    ],
)
def test_a_model_that_calls_tools_without_end_is_not_asked_again(
    protocol: RealtimeProtocol, heard: bool, ended: ResponseEnded
) -> None:
    """Not every server obeys that no tool may be called. Such a call is not run, and the reply ends: each further
    response would be paid for.
    """
    _use_tools(protocol)
    last = f"resp_{TOOL_STEPS + 1}"
    if heard:
        protocol.receive(_sound(response=last))
    assert protocol.receive(_called("c9", response=last)) == []
    assert protocol.receive(_done(response=last)) == [ended]
    assert protocol.idle


@pytest.mark.parametrize("all_early", [True, False])
def test_a_tool_that_is_ready_early_waits_for_the_end_of_the_response(
    protocol: RealtimeProtocol, all_early: bool
) -> None:
    """The next response is requested by whichever comes last: the end of this one, or a result."""
    for call in ("c1", "c2"):
        protocol.receive(_called(call))
    results = [_types(protocol.tool_output(call, "a cat")) for call in ("c1", "c2")[: 1 + all_early]]
    assert results == [["conversation.item.create"]] * (1 + all_early)
    ended = protocol.receive(_done())
    assert [type(effect) for effect in ended] == [SendEvent] * all_early
    if not all_early:
        assert _types(protocol.tool_output("c2", "a dog")) == ["conversation.item.create", "response.create"]


def test_what_was_not_understood_is_said_again_to_the_next_session(opened: RealtimeProtocol) -> None:
    """Inputs that were not transcribed are sent again with their sound to the next session, under the same input id."""
    input_id, _ = opened.send_audio(SECOND, speakers="Ada speaks:")
    opened.receive({"type": "input_audio_buffer.committed", "item_id": "item_1"})
    assert opened.on_disconnected() == []
    later, _ = opened.send_audio(SECOND, speakers="Bo speaks:")
    events = opened.on_connected(BRIEFING)
    assert [event["item"]["content"][0]["text"] for event in events if "item" in event] == [
        "[21:04] Ada: hi",
        "Hi.",
        "Ada speaks:",
        "Bo speaks:",
    ]
    for item in ("item_a", "item_b"):
        opened.receive({"type": "input_audio_buffer.committed", "item_id": item})
    completed = {"type": "conversation.item.input_audio_transcription.completed", "transcript": "x"}
    assert opened.receive({**completed, "item_id": "item_a"}) == [InputTranscribed(input_id, "item_a", "x")]
    assert opened.receive({**completed, "item_id": "item_b"}) == [InputTranscribed(later, "item_b", "x")]


def test_after_a_loss_the_model_may_look_again(protocol: RealtimeProtocol) -> None:
    """The next conversation has nothing of what tools found in the one before."""
    assert _use_tools(protocol)["response"]["tool_choice"] == "none"
    protocol.on_disconnected()
    assert "tool_choice" not in protocol.on_connected(BRIEFING)[-1]["response"]


def test_an_answer_broken_in_the_middle_goes_on_once(protocol: RealtimeProtocol) -> None:
    """A reply that breaks off in the middle is continued once by the next session, which gets the words spoken so far.
    A second break ends it.
    """
    protocol.receive(_sound())
    protocol.receive(_words("Well, "))
    assert protocol.on_disconnected() == []
    _, spoken, why, again = protocol.on_connected(Briefing("Be kind."))
    assert spoken["item"]["content"][0] == {"type": "output_text", "text": "Well,"}
    assert why["item"]["content"][0]["text"] == BROKEN_OFF
    assert again["type"] == "response.create"
    assert protocol.resumed == ReplyResumed("Well,", (spoken["item"]["id"], why["item"]["id"]))
    protocol.receive({"type": "response.created", "response": {"id": "resp_2"}})
    assert isinstance(protocol.receive(_sound(response="resp_2"))[0], ReplyPiece)
    assert protocol.on_disconnected() == [ResponseEnded(ResponseStatus.FAILED, "connection_lost")]
    assert _types(protocol.on_connected(Briefing("Be kind."))) == ["session.update"]


@pytest.mark.parametrize(
    ("came", "said"),
    [
        ("Well, I think that we should go home.", "Well, I think"),
        # A script without spaces is cut where its sound ended, like any other: it is not one word.
        ("今天天气很好，我们一起去公园散步吧。", "今天天气很好，"),
    ],
)
def test_words_that_lost_their_sound_are_said_to_nobody(protocol: RealtimeProtocol, came: str, said: str) -> None:
    """Words come before their sound. After a lost connection the model is told only of those whose sound has come."""
    protocol.receive(_words(came))
    protocol.receive(_sound(1.0))
    protocol.on_disconnected()
    _, spoken, _, _ = protocol.on_connected(Briefing("Be kind."))
    assert spoken["item"]["content"][0]["text"] == said
    assert protocol.resumed is not None
    assert protocol.resumed.said == said


def test_words_without_any_sound_are_not_kept_over_a_loss(protocol: RealtimeProtocol) -> None:
    """They are asked for again, and a later loss tells the model each word once."""
    protocol.receive(_words("Well, I think"))
    protocol.on_disconnected()
    assert _types(protocol.on_connected(Briefing("Be kind."))) == ["session.update", "response.create"]
    assert protocol.resumed == ReplyResumed("")
    protocol.receive({"type": "response.created", "response": {"id": "resp_1"}})
    protocol.receive(_words("Well, I think", item="item_2"))
    protocol.receive(_sound(3.0, item="item_2"))
    protocol.on_disconnected()
    _, spoken, *_ = protocol.on_connected(Briefing("Be kind."))
    assert spoken["item"]["content"][0]["text"] == "Well, I think"


@pytest.mark.parametrize("heard_ms", [500, 1_500])
def test_an_answer_that_went_on_after_a_loss_is_deleted_when_it_is_interrupted(
    protocol: RealtimeProtocol, heard_ms: int
) -> None:
    """Its beginning is text there, which cannot be truncated, and the lost connection's item is unknown there."""
    protocol.receive(_words("Well, I"))
    protocol.receive(_sound(1.0))
    protocol.on_disconnected()
    events = protocol.on_connected(Briefing("Be kind."))
    protocol.receive({"type": "response.created", "response": {"id": "resp_2"}})
    protocol.receive(_sound(1.0, item="item_2", response="resp_2"))
    assert not protocol.can_truncate
    cancel, truncate, *deleted = protocol.interrupt(heard_ms)
    assert cancel["type"] == "response.cancel"
    assert (truncate["item_id"], truncate["audio_end_ms"]) == ("item_2", max(0, heard_ms - 1_000))
    assert {event["type"] for event in deleted} == {"conversation.item.delete"}
    texts = [event["item"]["id"] for event in events if "item" in event]
    assert [event["item_id"] for event in deleted] == [*texts, "item_2"]


def test_an_answer_that_was_complete_before_a_loss_is_not_truncated_after_it(protocol: RealtimeProtocol) -> None:
    """The new connection does not know the item. The briefing or the recorded turn tells it what was heard."""
    protocol.receive(_sound(2.0))
    protocol.receive(_done())
    protocol.on_disconnected()
    protocol.on_connected(Briefing("Be kind."))
    assert protocol.resumed is None
    assert not protocol.can_truncate
    assert protocol.interrupt(500) == []


@pytest.mark.parametrize(
    ("event", "effect"),
    [
        ({"type": "session.updated"}, [SessionReady()]),
        ({"type": "error", "error": {"code": "session_expired"}}, [SessionExpired()]),
        ({"type": "error", "error": {"code": "response_cancel_not_active"}}, []),
        ({"type": "error", "error": {"code": "x", "message": "y"}}, [ServerError("x")]),
        ({"type": "rate_limits.updated"}, []),
        ({"type": "some.event.of.tomorrow"}, []),
        ({}, []),
    ],
)
def test_other_events(event: dict[str, Any], effect: list[object]) -> None:
    """Each event has its effect, and unknown events are ignored, so that a newer server does no harm."""
    assert _open().receive(event) == effect


@pytest.mark.parametrize("written", [None, 7, True, ["words"], {"text": "words"}])
def test_what_is_no_text_is_not_taken_for_words(opened: RealtimeProtocol, written: object) -> None:
    """Some servers send null for what they do not have. The room's recogniser hears what they did not write down."""
    heard, _ = opened.send_audio(SECOND, speakers="Ada speaks:")
    opened.receive({"type": "input_audio_buffer.committed", "item_id": "item_1"})
    completed = "conversation.item.input_audio_transcription.completed"
    told = opened.receive({"type": completed, "item_id": "item_1", "transcript": written})
    assert told == [InputTranscribed(heard, "item_1", None)]
    _begun(opened)
    for kind in ("output_audio", "output_audio_transcript", "output_text"):
        piece = {"type": f"response.{kind}.delta", "response_id": "resp_1", "item_id": "item_2", "delta": written}
        assert opened.receive(piece) == []
    call = {"type": "response.function_call_arguments.done", "response_id": "resp_1", "call_id": "c", "name": "time"}
    assert opened.receive({**call, "arguments": written}) == [RealtimeToolCall("c", "time", "")]


def test_without_a_connection_nothing_is_sent() -> None:
    """Without a connection nothing is sent. What still matters is kept or is part of the next briefing."""
    protocol = _protocol()
    assert protocol.add_item(ConversationItem("t", ItemRole.USER, "x")) == []
    assert protocol.delete_items(["t"]) == []
    assert protocol.set_instructions("x") == []
    assert protocol.request_reply() == []
    assert protocol.send_audio(SECOND, speakers="Ada:")[1] == []
    assert _types(protocol.on_connected(Briefing("x")))[-1] == "response.create"


_KINDS = ("error", "session.updated", "response.created", "response.done", "response.output_audio.delta", "anything")
_IDS = st.sampled_from(["resp_1", "item_1", "", None, 7])
_VALUES = st.none() | st.booleans() | st.integers() | st.text()
_OBJECTS = st.recursive(
    _VALUES,
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["id", "status", "status_details", "error", "code", "metadata", "output", "request"]),
            inner | st.sampled_from(["failed", "completed", "cancelled"]),
        )
    ),
    max_leaves=8,
)


@pytest.mark.slow
@given(
    st.lists(
        st.fixed_dictionaries(
            {"type": st.sampled_from(_KINDS) | _VALUES},
            optional={"item_id": _IDS, "response_id": _IDS, "delta": _VALUES, "error": _OBJECTS, "response": _OBJECTS},
        ),
        max_size=20,
    )
)
def test_it_survives_whatever_a_server_sends(events: list[dict[str, Any]]) -> None:
    """Invalid events from the server raise no error."""
    protocol = _answering()
    for event in events:
        protocol.receive(event)


@pytest.mark.parametrize("error", ["It went wrong.", None, 7, ["x"]])
def test_an_error_that_is_no_object_is_an_error(opened: RealtimeProtocol, error: object) -> None:
    """Some servers write a sentence in its place. The session goes on, or its reply fails."""
    assert opened.receive({"type": "error", "error": error}) == [ServerError("unknown")]
    _begun(opened)
    failed = _done("failed")
    failed["response"]["status_details"] = {"error": error}
    assert opened.receive(failed) == [ResponseEnded(ResponseStatus.FAILED, "unknown")]


def test_what_is_abandoned_is_not_brought_up_again(opened: RealtimeProtocol) -> None:
    """After a reset the next session sends only its briefing, because the room has handled the rest by other means."""
    opened.send_audio(SECOND, speakers="Ada speaks:")
    _begun(opened)
    opened.receive(_sound())
    opened.reset()
    assert opened.on_disconnected() == []
    assert _types(opened.on_connected(BRIEFING)) == [
        "session.update",
        "conversation.item.create",
        "conversation.item.create",
    ]
    assert opened.interrupt(500) == []
    assert opened.idle


@given(st.integers(1, 3 * APPEND_BYTES // 2))
def test_an_input_is_a_name_its_sound_and_a_commit(length: int) -> None:
    """An input is a name, all its sound in order and a commit. Sound that is too short is filled up with silence."""
    pcm = (np.arange(length) % 3000 + 1).astype(np.int16)
    who, *sound, commit = input_events(5, "Ada speaks:", pcm)
    assert who["item"]["content"] == [{"type": "input_text", "text": "Ada speaks:"}]
    assert commit == {"type": "input_audio_buffer.commit"}
    assert all(len(base64.b64decode(each["audio"])) <= APPEND_BYTES for each in sound)
    heard = np.concatenate([decode_audio(each["audio"]) for each in sound])
    assert len(heard) == max(length, LEAST_COMMIT_SAMPLES)
    assert np.array_equal(heard[:length], pcm)
    assert not heard[length:].any()


@pytest.mark.parametrize(("encoded", "length"), [("", 0), ("not base64!", 0), ("AAAA", 1), ("AAAAAA==", 2)])
def test_sound_that_cannot_be_read_is_none(encoded: str, length: int) -> None:
    """Sound with invalid base64 is empty, and half a sample is left out."""
    assert len(decode_audio(encoded)) == length


def test_settings_leave_turns_to_the_room() -> None:
    """The settings turn the server's turn detection off and name the language if there is one, and all if several are
    spoken.
    """
    tool = RealtimeTool("look", "Looks.", {"type": "object"})
    session = session_update("marin", Briefing("Be kind.", tools=(tool,), languages=("de",)))["session"]
    assert session["instructions"] == "Be kind."
    assert session["audio"]["input"]["turn_detection"] is None
    assert session["audio"]["input"]["transcription"] == {"model": TRANSCRIPTION_MODEL, "language": "de"}
    assert [each["name"] for each in session["tools"]] == ["look"]
    anything = session_update("marin", Briefing(""))["session"]
    assert anything["audio"]["input"]["transcription"] == {"model": TRANSCRIPTION_MODEL}
    several = session_update("marin", Briefing("", languages=("de", "en")))["session"]["audio"]["input"]
    assert {"German", "English"} <= set(re.findall(r"\w+", several["transcription"]["prompt"]))
    assert "language" not in several["transcription"]


def test_a_tool_s_choice_of_parameters_costs_no_session() -> None:
    """OpenAI refuses a choice at the top of a tool's schema, and with it the whole session. Elsewhere it takes one."""
    when: dict[str, object] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    shown: dict[str, object] = {"type": "object", "properties": {"when": when}}
    tool = RealtimeTool("timer", "Starts.", {**shown, "anyOf": [{"required": ["when"]}]})
    session = session_update("marin", Briefing("", tools=(tool,)))["session"]
    assert session["tools"][0]["parameters"] == shown
