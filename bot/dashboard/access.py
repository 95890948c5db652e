"""Who looks at the dashboard, what they may see, and how that is written as JSON: which rooms, and of stored words
those that they may read (`bot.viewers`), without those of people who opted out. Pure; `bot.discord.dashboard_access`
finds out about people, and the page escapes texts.

Forgotten words are in no store any more. Of people who opted out, their own words are left out, and all that may repeat
them: what the bot said and noted, and summaries, in every session in which they spoke or may have been quoted.
`bot.memory.recall` leaves out the same.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from bot.errors import BotError
from bot.texts.text import Text, all_in_language
from bot.viewers import NOTHING as NO_WORDS
from bot.viewers import WHOLE, AttendedSession, Viewer, Viewing, viewing_of
from compaction.model import Note, Segment, Turn, TurnKind
from compaction.payload import PartKind, PayloadPart

if TYPE_CHECKING:
    from compaction.memory.chapters import Chapter


Json: TypeAlias = Mapping[str, object]


@dataclass(frozen=True, slots=True)
class DashboardUser:
    """Somebody who looks at the dashboard. `user_id`: theirs on Discord, by which people are told apart; None: the
    operator, who used a login link.
    """

    name: str
    user_id: int | None = None

    @property
    def is_operator(self) -> bool:
        return self.user_id is None


OPERATOR: Final = DashboardUser("Operator")


class NotShownError(BotError):
    """There is nothing to show: it does not exist, or this viewer may not see it. The message does not tell which."""


class AccessUnknownError(BotError):
    """Discord has not said what this viewer may see. The message is a plain sentence for them."""


class LoginRefusedError(BotError):
    """Somebody could not be logged in. The message is a plain sentence for them."""


@dataclass(frozen=True, slots=True)
class Access:
    """What one person may see. `channels`: by server, the voice channels whose rooms they see; None: all of them.

    `prompts`: the servers of which they see what the model saw. `viewers`: by server, the person as `bot.viewers` knows
    them: which of the words in these rooms and prompts they may read.
    `is_whole`: False: Discord has not answered about some server, of which they see nothing meanwhile.
    """

    channels: Mapping[int, frozenset[int]] | None = field(default_factory=dict)
    prompts: frozenset[int] = frozenset()
    viewers: Mapping[int, Viewer] = field(default_factory=dict)
    is_whole: bool = True

    @property
    def is_nothing(self) -> bool:
        return self.channels is not None and not self.channels and not self.prompts

    def sees(self, guild_id: int | None, channel_id: int | None) -> bool:
        if self.channels is None:
            return True
        return guild_id is not None and channel_id in self.channels.get(guild_id, frozenset())

    def viewing(self, session: AttendedSession) -> Viewing:
        """Return what they may read of a session. Whoever runs the bot may read all that is stored."""
        if self.channels is None:
            return WHOLE
        viewer = self.viewers.get(session.guild_id or 0)
        return NO_WORDS if viewer is None else viewing_of(viewer, session)

    def hears(self, guild_id: int, channel_id: int, present: Collection[str]) -> bool:
        """Return whether they may read what was just said in a channel. `present`: the ids of those who heard it."""
        viewer = self.viewers.get(guild_id)
        if self.reads_whole(guild_id, channel_id):
            return True
        return viewer is not None and channel_id in viewer.allowed and viewer.person_id in present

    def reads_whole(self, guild_id: int, channel_id: int) -> bool:
        """Return whether the whole history of a channel is open to them."""
        viewer = self.viewers.get(guild_id)
        return self.channels is None or (viewer is not None and channel_id in viewer.opened)

    def reads_everything(self, guild_id: int | None) -> bool:
        """Return whether they may read what was said in all voice channels of a server."""
        viewer = self.viewers.get(guild_id or 0)
        return self.channels is None or (viewer is not None and viewer.reads_everything)

    def sees_prompts(self, guild_id: int | None) -> bool:
        return self.channels is None or guild_id in self.prompts


EVERYTHING = Access(None)
NOTHING = Access()


class Directory(Protocol):
    """Names and people of the servers that the bot is on. `bot.discord.dashboard_access` implements it."""

    @property
    def client_id(self) -> int | None:
        """Return the id of the bot's application on Discord, which is its OAuth2 client id too."""

    @property
    def server_names(self) -> Mapping[int, str]:
        """Return the names of the servers that this process is on, by their ids."""

    async def names(self, channels: Collection[tuple[int, int]]) -> Mapping[tuple[int, int], tuple[str, str]]:
        """Return the names of servers and voice channels, by their ids, as far as the bot is there. Never raises."""

    async def access_of(self, user_id: int) -> Access:
        """Return what a person may see now, by their roles and permissions. Never raises: the unknown see nothing."""


UNHEARD = Text("Not shown, because it is about what was said while you were not there.")
WITHHELD = Text("Not shown, because it can have words of somebody who used /opt-out.")


@dataclass(frozen=True, slots=True)
class SpeechFilter:
    """What may be shown of one session. `withheld`: the ids of people of the server who opted out.

    `speakers`: the ids of everybody who spoke in the session, or may have been quoted there. `viewing`: what the viewer
    may read of it. `heard_all`: that is all of it. `reads_everything`: and all that was said on its server.
    """

    withheld: frozenset[str]
    speakers: frozenset[str]
    viewing: Viewing = WHOLE
    heard_all: bool = True
    reads_everything: bool = True
    # A result belongs to those who may use its tool, and who manages a server need not be one of them.
    is_operator: bool = True

    @property
    def hidden(self) -> Text | None:
        """Return why what was made of this session's words is not shown: notes, summaries; None: it is."""
        if not self.heard_all:
            return UNHEARD
        return WITHHELD if self.withheld & self.speakers else None

    @property
    def shows_derived(self) -> bool:
        """Return whether to show what was made of this session's words: notes, summaries."""
        return self.hidden is None

    @property
    def filters(self) -> bool:
        """Return whether some of what was said on the server may not be shown."""
        return bool(self.withheld) or not (self.heard_all and self.reads_everything)

    def turn(self, turn: Turn) -> Turn:
        """Return a turn as it may be shown. Without any part that may be shown it looks forgotten."""
        turn = self.viewing.turn(turn)
        if not self.withheld & self.speakers:
            return turn
        is_reply = turn.kind is TurnKind.ASSISTANT
        parts = () if is_reply else tuple(part for part in turn.parts if part.speaker_id not in self.withheld)
        return turn.with_parts(parts)

    def prompt_part(self, part: PayloadPart, turns: Mapping[int, Turn]) -> str | None:
        """Return the text of a part of a prompt, or None if it may not be shown. `turns`: the session's, unfiltered."""
        if part.kind is PartKind.TOOL and not self.is_operator:
            return None
        if part.kind is PartKind.SYSTEM or not self.filters:
            return part.content
        if part.kind in {PartKind.TURN, PartKind.CURRENT}:
            if part.seq_from is None or part.seq_to is None:
                return None
            said = [turns.get(seq) for seq in range(part.seq_from, part.seq_to + 1)]
            whole = all(turn is not None and self.turn(turn) is turn for turn in said)
            return part.content if whole else None
        if part.kind in {PartKind.SUMMARY, PartKind.CHAPTER, PartKind.NOTE, PartKind.EVICTION_NOTE}:
            return part.content if self.shows_derived else None
        # Quotes, facts about people, tools' results and earlier sessions may come from any session of the server.
        return None


def turn_json(turn: Turn) -> Json:
    """Return a turn. `gone`: its words were forgotten or are withheld."""
    return {
        "seq": turn.seq,
        "kind": turn.kind.value,
        "at": turn.started_at,
        "gone": turn.tombstone,
        "answers": turn.answers,
        "parts": [{"id": part.speaker_id, "who": part.speaker, "text": part.text} for part in turn.parts],
    }


def note_json(note: Note) -> Json:
    return {
        "id": note.id,
        "at": note.at,
        "who": note.who,
        "what": note.what,
        "source": note.source.value,
    }


def chapter_json(chapter: Chapter) -> Json:
    """Return a chapter, with its first and its last turn."""
    return {"text": chapter.whole, "turns": [chapter.start, chapter.end - 1]}


def segment_json(segment: Segment, *, with_gist: bool) -> Json:
    """Return a fold. `with_gist`: with what its turns were about."""
    return {
        "start": segment.start,
        "end": segment.end,
        "at": segment.created_at,
        "facts": len(segment.facts),
        "prompt_version": segment.prompt_version,
        "gist": segment.gist if with_gist else "",
    }


def server_sent_event(number: str, kind: str, data: Json, language: str) -> str:
    """Return one event as a page in that language receives it. JSON has no line breaks of its own."""
    return f"id: {number}\nevent: {kind}\ndata: {json.dumps(all_in_language(data, language))}\n\n"
