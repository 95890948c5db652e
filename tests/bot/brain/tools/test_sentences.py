"""Sixty sentences in three languages: nothing runs without a press, whatever is said and whatever a model proposes."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from bot.brain.responder import PRESS_FIRST, ModelResponder
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Reach, Toolbox
from bot.llm.port import FinishReason, StreamEnd, StreamItem
from compaction.payload import MessageToolCall
from tests.bot.brain.thinker import CONTEXT, Thinker
from tests.bot.brain.tools.calls import for_all
from tests.fakes.room_channel import ADA, BO, FakeRoomChannel
from tests.patience import PATIENCE_S

SAID: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("sentences.toml").read_text("utf-8"))["said"]
TOOLS = (
    "files_delete_file",
    "files_write_file",
    "mail_send_mail",
    "home_set_light",
    "tracker_create_issue",
    "music_play",
)
END = StreamEnd(FinishReason.STOP)


async def play(said: dict[str, Any], *, pressed: bool) -> tuple[list[str], list[tuple[str, dict[str, object]]]]:
    """Let Ada say a sentence to a bot whose tools all ask first, Bo press each button and then, if `pressed`, Ada.

    Return what the bot answered, and the tools that ran with their arguments.
    """
    channel, done = FakeRoomChannel(people=[ADA, BO]), list[tuple[str, dict[str, object]]]()

    def tool(name: str) -> RoomTool:
        async def call(arguments: Mapping[str, object]) -> str:
            done.append((name, dict(arguments)))
            return "Done."

        return RoomTool(name, "", {"type": "object"}, for_all(call))

    toolbox = Toolbox(
        [tool(name) for name in TOOLS],
        ask_for_press=channel.ask_for_press,
        reach=lambda: Reach((Asker(ADA.id, "Ada", present=True),)),
    )
    answer: tuple[StreamItem, ...] = ("I see.", END)
    if "call" in said:
        call = MessageToolCall("c", said["call"]["tool"], json.dumps(said["call"]["arguments"]))
        answer = (StreamEnd(FinishReason.TOOL_CALLS, (call,)),)
    turn = replace(CONTEXT.current, parts=(replace(CONTEXT.current.parts[0], text=said["text"]),))
    context = replace(CONTEXT, current=turn, tools=toolbox.for_asker(Asker(ADA.id, "Ada", present=True)))
    answered = [piece async for piece in ModelResponder(Thinker(answer), max_output_tokens=9).respond(context)]
    assert done == []
    assert len(channel.calls) == ("call" in said)
    for posted in channel.calls:
        assert posted.press(BO) is not None
        if pressed:
            assert posted.press(ADA) is None
    await toolbox.frozen.finish(within_s=PATIENCE_S)
    return answered, done


async def test_nothing_runs_without_a_press() -> None:
    """Of the sixty none runs a tool, whatever a model proposes for them: somebody else's press counts for nothing."""
    for said in SAID:
        wanted = "I see." if "call" not in said else f"{PRESS_FIRST}\n"
        assert await play(said, pressed=False) == ([wanted], []), said["text"]


async def test_a_press_runs_exactly_what_the_model_proposes() -> None:
    """Where it proposes nothing, nobody is asked."""
    for said in SAID:
        call = said.get("call")
        wanted = (["I see."], []) if call is None else ([f"{PRESS_FIRST}\n"], [(call["tool"], call["arguments"])])
        assert await play(said, pressed=True) == wanted, said["text"]
