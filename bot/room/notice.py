"""The text of the notice that the bot listens: what it does, what leaves its machine, and how to refuse.

Operators can reword the first sentences (`room.notice`). The rest follows from the settings and is always there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.settings import DEFAULT_NOTICE
from bot.texts.text import Text, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Sequence

NO_SOUND_KEPT = Text("I keep no sound.")
ALL_LOCAL = Text("Apart from Discord, nothing that you say leaves the machine that I run on.")
LEAVES = Text("This leaves the machine that I run on: {what}.")
ASKING = Text("I hear only people who press *Hear me*, in this session; nobody else's sound is even decrypted.")
COMMANDS = Text("Use /opt-out if I should not hear you, /quiet to silence me, /leave to send me away.")
SPOKEN_COMMANDS = Text("Use the command opt-out if I should not hear you, or the command leave to send me away.")
WHY_SPOKEN = Text("I cannot write into the chat of this channel, so I say it aloud.")
NO_MARK = Text("My name does not show that I listen: my role lacks the permission Change Nickname.")


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody besides Discord who gets a part of the conversation. `host`: the name of their server.

    `what` is sent there, for example "the sound of your voice". `role`: what they do with it, for example "recogniser".
    """

    what: str
    host: str
    role: str

    def __str__(self) -> str:
        return f"{self.what} to {self.host} ({self.role})"


@dataclass(frozen=True, slots=True)
class ListeningNotice:
    """The notice of one process. `wording`: the operator's. `recipients`: who gets a part of the conversation."""

    wording: str
    recipients: Sequence[Recipient] = ()

    def worded(self, wording: str | None) -> ListeningNotice:
        """Return the notice with a server's own first sentences; None: unchanged."""
        return self if wording is None else replace(self, wording=wording)

    @property
    def facts(self) -> Text:
        """Return what is kept of the sound and what leaves the machine."""
        sent = list(dict.fromkeys(map(str, self.recipients)))
        where = LEAVES.fill(what="; ".join(sent)) if sent else ALL_LOCAL
        return joined((NO_SOUND_KEPT, where))

    def written(self, *, marked: bool = True, asks: bool = False) -> Text:
        """Return the text for the chat.

        `marked`: whether the bot's name or the channel's status shows it too. `asks`: whether people must agree first.
        """
        return joined(
            (self._first, ASKING if asks else "", self.facts, COMMANDS, "" if marked else NO_MARK),
            "\n",
        )

    def spoken(self) -> tuple[str, ...]:
        """Return the sentences to say aloud where the chat cannot be written."""
        return (self._first, self.facts, WHY_SPOKEN, SPOKEN_COMMANDS)

    @property
    def _first(self) -> Text:
        """The first sentences: the default ones in the server's language, the operator's as they are."""
        return DEFAULT_NOTICE if self.wording == DEFAULT_NOTICE else verbatim(self.wording.strip())
