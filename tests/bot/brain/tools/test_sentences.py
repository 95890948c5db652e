"""Sixty sentences in three languages: nothing runs without a press, whatever is said and whatever a model proposes."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from bot.brain.responder import PRESS_FIRST, ModelResponder
from bot.brain.tools.tool import Asker, RoomTool
from bot.brain.tools.toolbox import Toolbox
from bot.llm.port import FinishReason, StreamEnd
from compaction.payload import MessageToolCall
from tests.bot.brain.test_responder import CONTEXT, Thinker
from tests.fakes.place import ADA, BO, FakePlace
from tests.patience import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bot.llm.port import StreamItem

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


def test_there_are_sixty_of_which_twenty_are_apart() -> None:
    """In English, German and French; orders and others in both parts."""
    for part, count in ((False, 40), (True, 20)):
        said = [each for each in SAID if bool(each.get("apart")) is part]
        assert len(said) == count
        assert 0 < sum("call" in each for each in said) < count
    assert {each["call"]["tool"] for each in SAID if "call" in each} == set(TOOLS)


@pytest.mark.parametrize("said", SAID, ids=[each["text"] for each in SAID])
@pytest.mark.parametrize("pressed", [True, False])
async def test_only_a_press_runs_what_the_model_proposes(said: dict[str, Any], pressed: bool) -> None:
    """Before the press nothing has run, and somebody else's press counts for nothing. With Ada's, exactly the proposed
    call runs; without, nothing does. Where the model proposes nothing, nobody is asked.
    """
    place, done = FakePlace(people=[ADA, BO]), list[tuple[str, dict[str, object]]]()

    def tool(name: str) -> RoomTool:
        async def call(arguments: Mapping[str, object]) -> str:
            done.append((name, dict(arguments)))
            return "Done."

        return RoomTool(name, "", {"type": "object"}, call)

    toolbox = Toolbox(
        [tool(name) for name in TOOLS], ask_for_press=place.ask_for_press, is_present=lambda user_id: user_id == ADA.id
    )
    proposed = said.get("call")
    answer: tuple[StreamItem, ...] = ("I see.", END)
    if proposed is not None:
        call = MessageToolCall("c", proposed["tool"], json.dumps(proposed["arguments"]))
        answer = (StreamEnd(FinishReason.TOOL_CALLS, (call,)),)
    turn = replace(CONTEXT.current, parts=(replace(CONTEXT.current.parts[0], text=said["text"]),))
    context = replace(CONTEXT, current=turn, tools=toolbox.for_asker(Asker(ADA.id, "Ada", present=True)))
    words = [piece async for piece in ModelResponder(Thinker(answer), max_output_tokens=9).respond(context)]
    assert words == [f"{PRESS_FIRST}\n" if proposed else "I see."]
    assert done == []
    for posted in place.calls:
        assert posted.press(BO) is not None
        if pressed:
            assert posted.press(ADA) is None
    await toolbox.frozen.finish(within_s=PATIENCE_S)
    assert done == ([(proposed["tool"], proposed["arguments"])] if proposed and pressed else [])
