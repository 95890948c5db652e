"""Who may use which tool, independent of what the model has read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.brain.tools.permission import NOBODY, Asker, asks_for, refusal
from bot.brain.tools.tool import Permission, RoomTool

if TYPE_CHECKING:
    from collections.abc import Mapping


async def _nothing(arguments: Mapping[str, object]) -> str:
    return "done"


LOOK = RoomTool("look", "Looks.", {"type": "object"}, _nothing)
POST = replace(LOOK, name="post_link", permission=Permission.MEMBERS, side_effects=True, words=("post", "url"))
BAN = replace(POST, name="ban", permission=Permission.MODERATORS, words=("ban",))
ADA = Asker(1, "Ada", "Please post the map.", present=True)
MODERATOR = Asker(2, "Bo", "Ban Cy and post it.", present=True, moderator=True)


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
        (replace(POST, words=()), ADA, False),
    ],
)
def test_who_may(tool: RoomTool, asker: Asker, allowed: bool) -> None:
    """A tool with side effects needs a person who is present, has the right, and asked for such an action."""
    refused = refusal(tool, asker)
    assert (refused is None) is allowed
    assert refused is None or tool.name in refused


@pytest.mark.parametrize(
    ("said", "asks"),
    [
        ("POST it", True),
        ("Are you posting?", True),
        ("Give me the URL!", True),
        ("curls", False),
        ("urls", False),
        ("compost", False),
        ("", False),
    ],
)
def test_what_counts_as_asking(said: str, asks: bool) -> None:
    """A short word must match as a whole; a longer one also matches the beginning of a word."""
    assert asks_for(POST, said) is asks


@pytest.mark.parametrize(
    ("word", "said", "asks"),
    [
        ("投稿", "リンクを投稿してください", True),
        ("投稿", "リンクを読んでください", False),
        ("링크", "링크를 올려줘", True),
        ("ссылк", "Дай ссылку", True),
    ],
)
def test_a_servers_own_words_may_be_of_any_writing(word: str, said: str, asks: bool) -> None:
    """An operator's own words work in any script, also where no spaces separate words."""
    assert asks_for(replace(POST, words=(word,)), said) is asks


@given(said=st.text(max_size=200))
def test_nobody_opens_a_tool_with_words_alone(said: str) -> None:
    """No words give a tool to a person who is absent or lacks the right."""
    assert refusal(POST, replace(NOBODY, words=said)) is not None
    assert refusal(BAN, Asker(1, "Ada", said, present=True)) is not None
