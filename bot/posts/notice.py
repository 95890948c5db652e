"""The notice that the bot listens, and giving it to everybody in one voice channel.

It says what the bot does, what leaves its machine, and how to refuse. A server can reword the first sentences
(`/settings`). The rest follows from the settings and is always there.
The notice is written into the voice channel's own chat: at the start, and again for people who come later, once for
each person and session. Where the chat cannot be written it is spoken. Where neither works, `NotAnnouncedError` ends
the room, because nobody may be heard who could not know it.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from bot.errors import BotError
from bot.outgoing_address import host_of
from bot.texts.text import Text, joined, verbatim

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Sequence

    from bot.channel.port import Person, RoomChannel
    from bot.clock import Clock
    from bot.participation.guild_state import SessionConsent
    from bot.server_settings import ListenRequest, ServerSettings

log = structlog.get_logger()

ONLY_LISTENING = Text("I am listening in this channel. I write down and remember what is said.")
TO_FILE = Text("I only write down what is said. When I leave, I post it in this chat as a file. I do not speak.")
TO_THREAD = Text("I only write down what is said, and post it in a thread of {channel}. I do not speak.")
TO_CAPTIONS = Text(
    "I also write down what is said and post it in {channel}. Everybody who can read {channel} can read it."
)
# A mention is nothing to say aloud.
CAPTIONS_ALOUD = Text("I also write down what is said and post it in a text channel.")
# Said aloud where the chat cannot be written: whether the words arrive where they were asked for is not known then.
LISTENS_ALOUD = Text("I only write down what is said. I do not answer.")
NO_SOUND_KEPT = Text("I do not keep the sound.")
ALL_LOCAL = Text("What you say goes to Discord and to the computer that runs me, and nowhere else.")
LEAVES = Text("Some of our conversation goes to other computers. {what}")
ASKING = Text(
    "In this session I hear only people who press *Hear me*. I throw away the sound of all other people, "
    "and do not listen to it."
)
HEARD_IS_READ = Text(
    "You can later read what was said while you were in this channel. If you come late, you can read "
    "what you missed while I am still here."
)
MANAGERS_READ = Text("Server managers can read all of it.")
ROLE_READS = Text("Server managers and members with the role {role} can read all of it.")
# A role's mention is nothing to say aloud.
OTHERS_READ = Text("Server managers, and members with a role that they chose, can read all of it.")
CHAT_READ = Text(
    "You can also ask me questions in {channel}: mention me there. My answers there can repeat what "
    "was said here. Everybody who can read {channel} sees my answers."
)
WHOLE_SESSIONS = Text("the recap and transcript of each session")
CHOSEN_BY_MANAGERS = Text("was chosen by server managers")
# As above.
CHAT_READ_ALOUD = Text(
    "Server managers have chosen a text channel where I also answer in writing. My answers there can "
    "repeat what was said here."
)
COMMANDS = Text(
    "If you do not want me to hear you, use /opt-out. If you want me to be silent, use /quiet. If you want me to go "
    "away, use /leave."
)
SPOKEN_COMMANDS = Text(
    "If you do not want me to hear you, use the command opt-out. If you want me to go away, use the command leave."
)
WHY_SPOKEN = Text("I cannot write in the chat of this channel, so I say this aloud.")
NO_MARK = Text("My name does not show that I am listening. For this, my role needs the permission Change Nickname.")


DEFAULT_NOTICE = Text(
    "I am listening in this channel. I write down and remember what is said, so that I can talk with you."
)


@dataclass(frozen=True, slots=True)
class Recipient:
    """Somebody besides Discord who gets a part of the conversation. `host`: the name of their server.

    `what` is sent there, for example "the sound of your voice". `role`: what they do with it, for example "recogniser".
    `host_aloud`: what to say for a `host` that means nothing without the role; None: the host itself.
    """

    what: Text
    host: str
    role: Text
    host_aloud: Text | None = None

    @property
    def text(self) -> Text:
        return Text("{host} gets {what}. It {role}.", what=self.what, host=self.host, role=self.role)

    @property
    def spoken(self) -> Text:
        """Return it without brackets and names of models, which no voice reads well."""
        return Text("{host} gets {what}.", what=self.what, host=self.host_aloud or self.host)


@dataclass(frozen=True, slots=True)
class ListeningNotice:
    """The notice of one process. `recipients`: who gets a part of the conversation. `wording`: its first sentences."""

    recipients: Sequence[Recipient] = ()
    wording: str = DEFAULT_NOTICE
    # What becomes of the words where the bot only writes down.
    transcript: Text | None = None
    # Where what is said can be read meanwhile, though the bot takes part.
    captions: Text | None = None
    # Who else than the people in the channel may read what is said.
    history: Text | None = None
    # Where it answers in writing besides, and who reads that.
    chat: Text | None = None

    def for_room(self, settings: ServerSettings, *, listen: ListenRequest | None = None) -> ListeningNotice:
        """Return the notice of one room on a server with these settings.

        `listen`: what is said there is written down.
        """
        transcript = captions = None
        if listen is not None:
            where = verbatim(f"<#{listen.channel_id}>")
            if listen.captions:
                captions = TO_CAPTIONS.fill(channel=where)
            else:
                transcript = TO_FILE if listen.target == "file" else TO_THREAD.fill(channel=where)
        history = None
        if settings.opens_history:
            role = settings.history_role
            history = MANAGERS_READ if role is None else ROLE_READS.fill(role=verbatim(f"<@&{role}>"))
        chat = None
        if settings.chat_channel is not None and transcript is None:
            chat = CHAT_READ.fill(channel=verbatim(f"<#{settings.chat_channel}>"))
        recipients = self.recipients
        if settings.webhook is not None:
            host = host_of(settings.webhook.address)
            recipients = (*recipients, Recipient(WHOLE_SESSIONS, host, CHOSEN_BY_MANAGERS))
        return replace(
            self,
            recipients=recipients,
            wording=settings.notice or self.wording,
            transcript=transcript,
            captions=captions,
            history=history,
            chat=chat,
        )

    @property
    def facts(self) -> Text:
        """Return what is kept of the sound and what leaves the machine."""
        return _facts(each.text for each in self.recipients)

    def written(self, *, marked: bool = True, asks: bool = False) -> Text:
        """Return the text for the chat.

        `marked`: whether the bot's name shows it too. `asks`: whether people must agree first.
        """
        return joined(
            (
                self._first,
                self.transcript or self.captions or "",
                ASKING if asks else "",
                self.facts,
                joined((HEARD_IS_READ, self.history or "", self.chat or "")),
                COMMANDS,
                "" if marked else NO_MARK,
            ),
            "\n",
        )

    def digest(self, *, asks: bool = False) -> str:
        """Return what tells this notice from one that says something else."""
        return hashlib.sha256(str(self.written(asks=asks)).encode()).hexdigest()[:16]

    def spoken(self) -> tuple[Text, ...]:
        """Return the sentences to say aloud where the chat cannot be written."""
        written = () if self.transcript is None else (LISTENS_ALOUD,)
        if self.captions is not None:
            written = (CAPTIONS_ALOUD,)
        facts = _facts(each.spoken for each in self.recipients)
        history = () if self.history is None else (OTHERS_READ,)
        chat = () if self.chat is None else (CHAT_READ_ALOUD,)
        return (self._first, *written, facts, *history, *chat, WHY_SPOKEN, SPOKEN_COMMANDS)

    @property
    def _first(self) -> Text:
        """The first sentences: the default ones in the server's language, the operator's as they are."""
        if self.wording != DEFAULT_NOTICE:
            return verbatim(self.wording.strip())
        return DEFAULT_NOTICE if self.transcript is None else ONLY_LISTENING


def _facts(sent: Iterable[Text]) -> Text:
    """Return what is kept of the sound and, once each, what leaves the machine."""
    different = list(dict.fromkeys(sent))
    where = LEAVES.fill(what=joined(different)) if different else ALL_LOCAL
    return joined((NO_SOUND_KEPT, where))


# Notices are at least this far apart, so that several newcomers share one. Until it comes, they see the last one in the
# chat that they have just opened.
GATHER_S = 30.0


class NotAnnouncedError(BotError):
    """Nobody could be told that the bot listens. The message has the remedy."""


class Announcer:
    """The notices of one room. `speak` says sentences aloud and returns whether all of them were played.

    `asks`: people must press a button below the notice, so it must be written. `consent`: knows who has had it in this
    session, also from a room before, which crashed.

    *Ownership*: the room calls `begin` before anybody is heard, and runs `run` in a task.
    """

    def __init__(
        self,
        channel: RoomChannel,
        notice: ListeningNotice,
        *,
        speak: Callable[[Sequence[Text]], Awaitable[bool]],
        clock: Clock,
        consent: SessionConsent,
        asks: bool = False,
    ) -> None:
        self._asks = asks
        self._channel = channel
        self._notice = notice
        self._speak = speak
        self._clock = clock
        self._consent = consent
        # Who had the notice in this session before this room began. Threads read it.
        self.had_notice = self._notified
        self._given_at = float("-inf")
        self._is_marked = False
        self._somebody_came = asyncio.Event()

    @property
    def _notified(self) -> frozenset[int]:
        """Return who has had the notice as it is now."""
        return self._consent.notified_of(self._notice.digest(asks=self._asks))

    def _note(self, people: frozenset[int]) -> None:
        self._consent.note_notified(self._notice.digest(asks=self._asks), people)

    async def begin(self) -> None:
        """Give the notice, unless everybody present has had it in this session. Raises `NotAnnouncedError`.

        Nobody waits for Discord then: a room that goes on hears at once.
        """
        if not self._notified or without_notice(self._channel.members(), self._notified):
            await self._give()

    async def change(self, notice: ListeningNotice) -> None:
        """Give another notice from now on, and at once if there are captions now. Raises `NotAnnouncedError`."""
        told, self._notice = self._notified, notice
        if notice.captions is None:
            # Whoever knows of captions knows enough.
            self._note(told)
        else:
            await self.begin()

    def on_joined(self) -> None:
        """Somebody came into the channel. Does not wait."""
        self._somebody_came.set()

    async def run(self) -> None:
        """Give the notice to people who come later. Never returns. Raises `NotAnnouncedError`."""
        if not self._is_marked:
            # Usually it is there: a room that has crashed leaves it.
            await self._channel.show_listening(on=True)
        while True:
            await self._somebody_came.wait()
            self._somebody_came.clear()
            if (wait_s := self._given_at + GATHER_S - self._clock.monotonic()) > 0:
                await self._clock.sleep(wait_s)
            if without_notice(self._channel.members(), self._notified):
                await self._give()

    async def _give(self) -> None:
        people = without_notice(self._channel.members(), self._notified)
        marked = await self._channel.show_listening(on=True)
        if await self._channel.write_notice(self._notice.written(marked=marked, asks=self._asks), asks=self._asks):
            how = "written"
        elif not self._asks and await self._speak(self._notice.spoken()):
            how = "spoken"
        else:
            log.warning("notice_refused", channel_id=self._channel.channel_id)
            raise NotAnnouncedError(
                Text(
                    "People must know that I listen. But I could not write in the chat of {channel}, "
                    "and I could not speak there. Give my role the permissions View Channel and Send "
                    "Messages there. Then use /join.",
                    channel=self._channel.name,
                )
            )
        self._note(frozenset(person.id for person in people))
        self._is_marked = True
        self._given_at = self._clock.monotonic()
        log.info("notice_given", how=how, person_count=len(people), marked=marked)


def without_notice(members: Iterable[Person], notified: frozenset[int]) -> list[Person]:
    """Return the people among `members` who have not had the notice. Bots need none: they are never heard."""
    return [person for person in members if not person.is_bot and person.id not in notified]
