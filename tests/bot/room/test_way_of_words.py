"""The way of a group's words through the bot's modules, from turn-taking to the recorded and decided turn."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import pytest

from bot.brain.wakeword import SpokenWords
from bot.events import SpokenText
from bot.room.conversation.turn_taking import TurnTaking
from compaction.sentence_cache import clear_sentence_caches
from tests.bot.room.room_scene import a_house, living, settle
from tests.fakes.place import ADA

if TYPE_CHECKING:
    from pathlib import Path
    from types import FrameType

PLACES = ("bot.room.conversation", "bot.participation", "bot.brain")


class Way:
    """Notes which modules are called with the words, in order. Functions that look at no words are no stop."""

    def __init__(self, text: str) -> None:
        self.stops: list[str] = []
        self._text = text
        self._task = asyncio.current_task()
        # Coroutines are called again when they go on.
        self._frames: list[FrameType] = []

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Be the profile function of `sys.setprofile`."""
        module = str(frame.f_globals.get("__name__"))
        if event != "call" or not module.startswith(PLACES) or asyncio.current_task() is not self._task:
            return
        caller = frame.f_back
        if any(frame is each for each in self._frames) or (caller and caller.f_globals.get("__name__") == module):
            return
        self._frames.append(frame)
        code = frame.f_code
        given = [frame.f_locals.get(name) for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]]
        if any(map(self._is_words, given)) and self.stops[-1:] != [module]:
            self.stops.append(module)

    def _is_words(self, value: object) -> bool:
        of_group = isinstance(value, tuple) and any(isinstance(each, SpokenText) for each in value)
        return of_group or isinstance(value, SpokenText | SpokenWords) or value == self._text


@pytest.mark.parametrize(
    "text", ["Roomtone, when does Ben come home?", "Well, I will be in the garden until Ben comes home."]
)
async def test_words_go_through_few_modules_and_back_into_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    """At most twelve stops, and each module is left once."""
    ways: list[Way] = []
    on_group = TurnTaking.on_group

    async def watched(self: TurnTaking, group: Any) -> None:
        # Its name is looked for as soon as there is a text, and the result is remembered.
        clear_sentence_caches()
        ways.append(Way(text))
        sys.setprofile(ways[-1])
        try:
            await on_group(self, group)
        finally:
            sys.setprofile(None)

    monkeypatch.setattr(TurnTaking, "on_group", watched)
    async with a_house(tmp_path) as house, living(house):
        await house.say(ADA.id, text)
        await settle(lambda: bool(house.turns and ways))
    (way,) = ways
    assert len(way.stops) <= 12
    assert len(set(way.stops)) == len(way.stops), way.stops
