"""The way of a group's words through the bot: to the recorded and decided turn, and to the request at the model."""

from __future__ import annotations

import asyncio
import inspect
import re
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from openai.resources.chat.completions import AsyncCompletions

from bot.brain.embedded.chat import MODEL_AWAY, EmbeddedResponder
from bot.brain.replier import Replier
from bot.brain.responder import ModelOrMemory, ModelResponder
from bot.brain.wakeword import SpokenWords
from bot.conversation.turn_taking import TurnTaking
from bot.events import SpokenText
from bot.llm.factory import open_model
from bot.llm.model_calls import OPERATOR
from bot.llm.paid_model import PaidModel
from bot.llm.settings import LlmSettings
from compaction.sentence_cache import clear_sentence_caches
from compaction.settings import BudgetSettings
from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from tests.bot.room.room_scene import a_house, living
from tests.fakes.room_channel import ADA
from tests.patience import settle
from tests.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

PLACES = ("bot.conversation", "bot.participation", "bot.brain")


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


MOST_CALLS = 10
_ROW = re.compile(r"^\| \d+\. `(?:bot\.[a-z_.]+\.)?(\w+)[^`]*`[^|]* \| [^|]{20,} \|$", re.MULTILINE)


def callers() -> list[str]:
    """Return whose methods, and which functions, of the bot run now, the outermost first. What an object calls of its
    own is no call. It ends where turn-taking begins.
    """
    frame = inspect.currentframe()
    assert frame is not None, "CPython has them"
    assert frame.f_back is not None, "somebody has called"
    return [name for _, name in reversed(list(_owners(frame.f_back)))]


def _owners(frame: FrameType | None) -> Iterator[tuple[object, str]]:
    before: object = None
    while frame is not None:
        owner = frame.f_locals.get("self", frame.f_code)
        if str(frame.f_globals.get("__name__")).startswith("bot.") and owner is not before:
            before = owner
            yield owner, type(owner).__name__ if "self" in frame.f_locals else frame.f_code.co_name
        frame = None if frame.f_code is TurnTaking.on_group.__code__ else frame.f_back


async def test_a_question_reaches_the_model_in_ten_calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/architecture.md lists the calls from object to object that there are, each with its reason."""
    ways: dict[str, list[str]] = {}

    def watch(owner: type, method: str) -> None:
        """Note who calls a method for the first time. A generator, which is read later, is noted when it is made."""
        original: Callable[..., Any] = getattr(owner, method)

        def watched(*given: Any, **named: Any) -> Any:
            ways.setdefault(owner.__name__, [*callers(), owner.__name__])
            return original(*given, **named)

        monkeypatch.setattr(owner, method, watched)

    watch(Replier, "ask")
    watch(ModelOrMemory, "respond")
    watch(AsyncCompletions, "create")
    answering = ChatBehaviour(answer=lambda _: "In the evening.")
    async with LocalChatServer(answering) as server, a_house(tmp_path) as house:
        endpoint = LlmSettings(base_url=server.base_url, model="local-chat")
        async with open_model(endpoint, BudgetSettings()) as model:
            stand_in = partial(EmbeddedResponder, MODEL_AWAY)
            house.new_responder = lambda _: ModelOrMemory(
                ModelResponder(PaidModel(model, OPERATOR), max_output_tokens=50), stand_in
            )
            async with living(house):
                await house.say(ADA.id, "Roomtone, when does Ben come home?")
                await house.reply(1)
    asked, begun, requested = ways["Replier"], ways["ModelOrMemory"], ways["AsyncCompletions"]
    # Two tasks go on where another has stopped: the replier's with the question, the reader's with the answer.
    assert (asked[0], begun[0], requested[:2]) == ("TurnTaking", "Replier", ["ReadAhead", "ModelOrMemory"])
    calls = [*asked[1:], *begun[1:], requested[0], *requested[2:]]
    assert calls == _ROW.findall((ROOT / "docs" / "architecture.md").read_text("utf-8"))
    assert len(calls) <= MOST_CALLS
