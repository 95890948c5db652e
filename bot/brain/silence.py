"""How the bot is sent into silence: aloud by its name and a fixed phrase, or by the tool `be_quiet`.

The phrases are in the languages' files (`bot/texts/*.toml`), a handful in each. Whatever else people say only
interrupts the reply in progress (`voice.speaking.barge_in`). Models have the tool for other words.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from bot.brain.tools.tool import RoomTool
from bot.brain.wakeword import SpokenWords, use_of_name
from bot.guild import MOST_SILENT_MINUTES
from bot.texts.catalogue import catalogue, languages
from compaction.language.text import QUESTION_MARKS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from bot.brain.tools.tool import Asker

# A silence that somebody asks for aloud always lapses. /quiet has longer ones.
SILENT_MINUTES = 10
SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "minutes": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_SILENT_MINUTES,
            "description": f"How long. Default {SILENT_MINUTES}.",
        }
    },
    "additionalProperties": False,
}


def asks_for_silence(text: str, wake_names: tuple[str, ...]) -> bool:
    """Return whether `text` is one of the bot's names and a phrase of any language: people mix them."""
    name = use_of_name(text, wake_names)
    return name.mentioned and not text.rstrip().endswith(QUESTION_MARKS) and _words(name.rest) in _phrases()


@lru_cache(maxsize=1)
def _phrases() -> frozenset[tuple[str, ...]]:
    return frozenset(_words(phrase) for code in languages() for phrase in catalogue(code).quiet)


def _words(text: str) -> tuple[str, ...]:
    return tuple(SpokenWords(text).texts)


def be_quiet_tools(asker: Asker, be_quiet: Callable[[int, int], None]) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nobody asks. It never asks first: whoever is in the channel may
    silence the bot. `be_quiet`: silences it for so many minutes, for the person with that id, and stops what it says.
    """
    if (user_id := asker.user_id) is None:
        return ()

    async def silence(arguments: Mapping[str, object]) -> str:
        minutes = arguments.get("minutes", SILENT_MINUTES)
        assert isinstance(minutes, int), "the schema says so"
        be_quiet(minutes, user_id)
        return "You are silent now. Say nothing more."

    tool = RoomTool(
        "be_quiet",
        "Makes you say nothing for some minutes, while you go on listening. Use it when somebody wants you to be "
        "quiet, not when they only interrupt you.",
        SCHEMA,
        silence,
        asks=False,
    )
    return (tool,)
