"""Makes what people said or are called harmless in a message of the bot: Discord shows it, and does no more. Makes
mentions of the commands in the bot's own sentences: Discord shows one in each reader's language, and pressing it begins
the command.

The ids in mentions are those that Discord has given this bot's commands. One process has one bot, so there is one
`COMMAND_LINKS`; before Discord is connected it links nothing.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from bot.texts.text import catalogue, in_language

if TYPE_CHECKING:
    from collections.abc import Mapping

# What Discord reads as formatting or as part of a mention, a masked link or a timestamp; the colon of an address,
# without which it is no link; the first colon of an emoji by its name (`:fire:`), whose second may come after the text;
# and the slash behind a host's name, without which an invitation (`discord.gg/…`, also without a scheme) gets no card.
_ANYWHERE = r"[\\*_~`|<>\[\]#]|:(?=/|[\w+-]+(?::|$))|(?:(?<=\.\w\w)|(?<=\.\w{3})|(?<=\.\w{4}))/"
# At the beginning of a line: an item of a list, or small text (`-#`).
_ITEM = r"^[-+]"
_SIGN = re.compile(f"({_ANYWHERE}|{_ITEM})")
_NUMBERED_ITEM = re.compile(r"^(\d+)\.(?= )")
# Control characters, and those that turn the direction of what follows. Neither can be seen.
_UNSEEN = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u202a-\u202e\u2066-\u2069]")


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


def in_message(text: str, language: str) -> str:
    """Return a text in a language as a message of Discord: the names and other values in its sentences are escaped, and
    the commands in them mentioned.

    What is `verbatim` is not: a mention, a link, or what is escaped already.
    """
    return in_language(text, language, escape=escape_markdown, link=COMMAND_LINKS.link)


def escape_markdown(text: str) -> str:
    """Return a text on one line that Discord shows as it is: nothing in it formats, links or mentions anybody.

    A backslash makes Discord's apps show the sign behind it. Its servers look for mentions too, and know no backslash;
    so a character without width follows each `@`.
    """
    line = " ".join(_UNSEEN.sub("", text).split())
    escaped = _NUMBERED_ITEM.sub(r"\1\\.", _SIGN.sub(r"\\\1", line))
    return escaped.replace("@", "@\u200b")
