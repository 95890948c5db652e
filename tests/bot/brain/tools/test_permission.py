"""Who may use which tool, independent of what the model has read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.orders import Demand
from bot.brain.tools.permission import NOBODY, Asker, demand_of, refusal
from bot.brain.tools.tool import Permission, RoomTool

if TYPE_CHECKING:
    from collections.abc import Mapping


async def _nothing(arguments: Mapping[str, object]) -> str:
    return "done"


LOOK = RoomTool("look", "Looks.", {"type": "object"}, _nothing)
POST = replace(LOOK, name="post_link", permission=Permission.MEMBERS, side_effects=True, words=("post", "map"))
BAN = replace(POST, name="ban", permission=Permission.MODERATORS, words=("ban",))
ADA = Asker(1, "Ada", "Please post the map.", present=True)
MODERATOR = Asker(2, "Bo", "Ban Cy and post the map.", present=True, moderator=True)


@pytest.mark.parametrize(
    ("tool", "asker", "allowed"),
    [
        (LOOK, NOBODY, True),
        (LOOK, ADA, True),
        (replace(LOOK, permission=Permission.MEMBERS), NOBODY, False),
        (replace(LOOK, permission=Permission.MEMBERS), ADA, True),
        (replace(LOOK, permission=Permission.MODERATORS), ADA, False),
        (replace(LOOK, permission=Permission.MODERATORS), MODERATOR, True),
        (replace(LOOK, permission=Permission.MODERATORS), replace(MODERATOR, present=False), False),
        (POST, ADA, True),
        (POST, replace(ADA, words="What is on the map?"), False),
        (POST, replace(ADA, present=False), False),
        (POST, NOBODY, False),
        (replace(POST, permission=Permission.ANYONE), replace(NOBODY, words="post it"), False),
        (BAN, MODERATOR, True),
        (BAN, replace(MODERATOR, words="Hello."), False),
        (BAN, replace(ADA, words="Ban Cy."), False),
        (POST, replace(ADA, words="I posted the map."), False),
        (POST, replace(ADA, words="Yes."), True),
    ],
)
def test_who_may(tool: RoomTool, asker: Asker, allowed: bool) -> None:
    """A tool with side effects needs a person who is present, has the right, and may have ordered it."""
    refused = refusal(tool, asker, [tool])
    assert (refused is None) is allowed
    assert refused is None or tool.name in refused


def test_a_yes_alone_is_no_certain_order() -> None:
    """A yes that answers none of our questions leads to a question, never to the effect."""
    assert demand_of(POST, replace(ADA, words="Yes, please."), [POST]) is Demand.PERHAPS


@given(said=st.text(max_size=200))
def test_nobody_opens_a_tool_with_words_alone(said: str) -> None:
    """No words give a tool to a person who is absent or lacks the right."""
    assert refusal(POST, replace(NOBODY, words=said), [POST]) is not None
    assert refusal(BAN, Asker(1, "Ada", said, present=True), [BAN]) is not None
