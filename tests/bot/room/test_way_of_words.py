"""The way of a question through the bot, to the request at the model."""

from __future__ import annotations

import inspect
import re
from functools import partial
from typing import TYPE_CHECKING, Any

from openai.resources.chat.completions import AsyncCompletions

from bot.brain.embedded.chat import MODEL_AWAY, EmbeddedResponder
from bot.brain.replier import Replier
from bot.brain.responder import ModelOrMemory, ModelResponder
from bot.conversation.turn_taking import TurnTaking
from bot.llm.factory import open_model
from bot.llm.model_calls import OPERATOR
from bot.llm.paid_model import PaidModel
from bot.llm.settings import LlmSettings
from compaction.settings import BudgetSettings
from rehearsal.servers.chat import ChatBehaviour, LocalChatServer
from tests.bot.room.room_scene import a_house, living
from tests.fakes.room_channel import ADA
from tests.sources import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from types import FrameType

    import pytest

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
