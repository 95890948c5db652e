"""Makes mentions of the commands in the bot's own sentences: Discord shows one in each reader's language, and pressing
it begins the command.

The ids in mentions are those that Discord has given this bot's commands. One process has one bot, so there is one
`COMMAND_LINKS`; before Discord is connected it links nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bot.texts.text import catalogue

if TYPE_CHECKING:
    from collections.abc import Mapping


class CommandLinks:
    """The mention of each command, by its English name; of a subcommand by both words."""

    def __init__(self) -> None:
        self._mentions: Mapping[str, str] = {}

    def know(self, mentions: Mapping[str, str]) -> None:
        """Take the mentions of all commands in the place of those before."""
        self._mentions = dict(mentions)

    def link(self, template: str, language: str) -> str:
        """Return a sentence of the catalogue, without its values, in which each `/command` is a mention."""
        if "/" not in template or not self._mentions:
            return template
        known = catalogue(language).commands
        named = {" ".join(known.get(word, word) for word in name.split()): name for name in self._mentions}
        names = "|".join(re.escape(each) for each in sorted(named, key=len, reverse=True))
        return re.sub(rf"(?<![\w/])/({names})(?![\w-])", lambda found: self._mentions[named[found[1]]], template)


COMMAND_LINKS: Final = CommandLinks()
