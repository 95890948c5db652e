"""What the pages quote of what the bot says, writes and shows, it says in these words."""

from __future__ import annotations

import pytest

from bot.brain.responder import FILLER
from bot.brain.speech_output import MODEL_FAILED, TOO_MUCH
from bot.discord.commands.catch_up import MISSED
from bot.discord.connection import translated
from bot.discord.consent_buttons import DO_NOT_HEAR_ME, HEAR_ME
from bot.discord.listening_mark import MARK
from bot.room.conversation.turn_recorder import UNSPOKEN
from config.schema import SETTINGS, WELL_KNOWN_VARIABLES
from tests.docs.pages import REPOSITORY, text_of

SHARE_PAGE = (REPOSITORY / "bot" / "web" / "static" / "share.html").read_text("utf-8")
FIRST_WORDS_OF_UNSPOKEN = UNSPOKEN.partition("{")[0].strip()

# Page, what it quotes, and the text that has these words.
QUOTED = [
    ("guide", "*Hear me*", HEAR_ME),
    ("guide", "*Do not hear me*", DO_NOT_HEAR_ME),
    ("guide", "*What did I miss?*", MISSED),
    ("guide", "*[LISTENING]*", MARK),
    ("privacy", "*Hear me*", HEAR_ME),
    ("privacy", "*[LISTENING]*", MARK),
    ("budget", f'*"{TOO_MUCH}"*', TOO_MUCH),
    ("tools", f'"{FILLER}"', FILLER),
    ("operations", f"`{FIRST_WORDS_OF_UNSPOKEN} …`", UNSPOKEN),
    ("operations", f'"{MODEL_FAILED}"', MODEL_FAILED),
    ("screen", "*Choose what to share…*", SHARE_PAGE),
    ("screen", "*Share something else…*", SHARE_PAGE),
    ("operations", "*This address is not secure*", SHARE_PAGE),
    ("operations", "*Opening your link…*", SHARE_PAGE),
]


@pytest.mark.parametrize(("page", "quoted", "source"), QUOTED, ids=lambda each: str(each)[:40])
def test_what_a_page_quotes_is_said_so(page: str, quoted: str, source: str) -> None:
    """Whoever looks for a button or a sentence finds it by the page's words."""
    assert quoted in text_of(page)
    assert quoted.strip('*"`').removesuffix(" …") in source


def test_the_token_that_discord_refuses_is_told_as_the_page_says() -> None:
    """The first line of the table is what somebody sees who reset the token."""
    import discord

    assert "| `Discord refused the bot's token` |" in text_of("operations")
    assert str(translated(discord.LoginFailure())).startswith("Discord refused the bot's token.")


def test_the_common_variables_are_all_named() -> None:
    """The page about settings names each variable with a short name, and how many there are."""
    page = text_of("settings")
    common = {name for name, key in WELL_KNOWN_VARIABLES.items() if key in SETTINGS}
    assert len(common) == 5
    assert "Five have common names too" in page
    assert {name for name in common if f"`{name}`" not in page} == set()
