"""The rooms: each is a server of the local Discord with two people, who speak in turn, hear the bot and never each end.

Two shared cores do not carry a dozen rooms in which somebody always speaks. So at most a few rooms have somebody
speaking at once, and those that are being looked at come before the others.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.discord.voice.gateway import VoiceSessionChange
from rehearsal.errors import PersonError
from rehearsal.people.person import ScriptedPerson, scripted_member
from rehearsal.people.received_speech import HeardTalkspurt
from tests.cluster_faults.evidence import VoiceChange
from tests.cluster_faults.takes import Sample, Take, Takes

SPEAKERS = ((2001, "Ada"), (2002, "Ben"))
# People pause between two sentences.
GAP_S = 0.3
# Whoever asks the bot something after a sentence to others pauses longer: otherwise the bot hears one sentence, in
# which its name stands in the middle.
ASK_PAUSE_S = 2.0
# A slow machine loads a model, connects and recognises a sentence within this time.
PATIENCE_S = 90.0
MOST_CALLS = 3
# Rooms in which somebody speaks all the time: more would keep two cores busy alone.
WATCHED = 2
REPLY_WITHIN_S = 20.0
# A second process that has heard a question answers as soon as the first one, and not so much later.
SECOND_REPLY_S = 6.0
# Between two sentences of an answer is less, between two answers more.
REPLY_PAUSE_S = 1.0


def server(number: int, *, shards: int = 1) -> GuildSpec:
    """Return the server of a room. Those of a bot with so many shards are spread over them."""
    return GuildSpec(
        id=(number % shards << 22) + 500 + number,
        name=f"Server {number}",
        voice_channels=(Channel(1_000 + number, f"Evening {number}"),),
        text_channel=Channel(2_000 + number, "chat"),
        people=tuple(Member(person, name, moderator=True) for person, name in SPEAKERS),
    )


@dataclass(slots=True)
class RoomUnderTest:
    """One room. `samples`: what its people say, which nobody says elsewhere. `question`: what they ask the bot, and
    never say otherwise: the recogniser takes a recording for the last time that it was played, so a sentence said just
    before would be heard as the question. `turns`: who may speak now. `voices`: what became of the bot's voice
    connection in this trial. `asked_at`: when its people asked the bot something.
    """

    number: int
    discord: LocalDiscord
    takes: Takes
    samples: Sequence[Sample]
    question: Sample
    turns: asyncio.Semaphore
    people: list[ScriptedPerson] = field(default_factory=list)
    voices: list[VoiceChange] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)
    # While it is set, somebody speaks here all the time.
    watched: asyncio.Event = field(default_factory=asyncio.Event)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)
    _saying: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def guild_id(self) -> int:
        return self.discord.guild.id

    @property
    def bot_port(self) -> int | None:
        """Return the UDP port of the bot's voice connection, as Discord sees it."""
        leg = self.discord.media.leg_of(ROOMTONE_BOT_ID)
        return None if leg is None or leg.address is None else leg.address[1]

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Bring the people in, and let them talk until the block ends."""
        self.discord.voice_gateway.watch = self._on_voice
        first, second = (scripted_member(self.discord, person) for person, _ in SPEAKERS)
        async with first, second:
            self.people = [first, second]
            talking = asyncio.create_task(self._talk(), name=f"talk-{self.number}")
            try:
                yield
            finally:
                talking.cancel()
                await asyncio.gather(talking, return_exceptions=True)

    def begin_trial(self) -> None:
        """Forget what was heard, asked and connected until now."""
        self.voices.clear()
        self.asked_at.clear()
        for person in self.people:
            person.forget_heard()

    async def call_bot(self) -> None:
        """Let Ada call the bot until both have met it. Raises `PersonError`.

        A busy machine may take longer to load a process than the bot waits; she is told to call again.
        """
        for calls_left in reversed(range(MOST_CALLS)):
            await self.discord.invoke(SPEAKERS[0][0], "join")
            try:
                await self.meet_bot()
            except PersonError:
                if not calls_left:
                    raise
            else:
                return

    async def meet_bot(self) -> None:
        """Wait until the bot is in the call, with everybody's keys."""
        for person in self.people:
            await person.meet(ROOMTONE_BOT_ID, timeout_s=PATIENCE_S)

    async def say(self, sample: Sample, *, speaker: int = 0, question: bool = False) -> Take:
        """Let a person say something, and return the take."""
        async with self._saying:
            person = self.people[speaker]
            take = self.takes.begin(self.number, person.user_id, sample, question=question)
            take.played = await person.say(sample.clip)
            return take

    async def ask(self) -> None:
        """Let Ada ask the bot something. From then on nobody else speaks, until `quiet` is cleared."""
        self.quiet.set()
        await self.silent()
        await asyncio.sleep(ASK_PAUSE_S)
        take = await self.say(self.question, question=True)
        self.asked_at.append(take.asked_at)

    async def answered(self) -> None:
        """Wait until both people have heard an answer to the last question, and a second one would have come too."""
        until = time.monotonic() + REPLY_WITHIN_S
        while time.monotonic() < until:
            await asyncio.sleep(0.5)
            last = [person.heard(ROOMTONE_BOT_ID).last_sound_at or 0.0 for person in self.people]
            if min(last) > self.asked_at[-1] and time.monotonic() - max(last) >= SECOND_REPLY_S:
                return

    def bot_heard(self) -> list[list[HeardTalkspurt]]:
        """Return what each person has heard of the bot in this trial, parted by pauses and voice sessions."""
        return [person.heard(ROOMTONE_BOT_ID).talkspurts(since=0.0, pause_s=REPLY_PAUSE_S) for person in self.people]

    async def silent(self) -> None:
        """Return when nobody is saying anything any more."""
        async with self._saying:
            return

    async def _talk(self) -> None:
        """Let the people speak in turn: all the time while the room is watched, else when it is their room's turn."""
        for number, sample in enumerate(itertools.cycle(self.samples)):
            if self.quiet.is_set():
                await asyncio.sleep(GAP_S)
            elif self.watched.is_set():
                await self.say(sample, speaker=number % 2)
                await asyncio.sleep(GAP_S)
            else:
                async with self.turns:
                    if not self.watched.is_set() and not self.quiet.is_set():
                        await self.say(sample, speaker=number % 2)
                await asyncio.sleep(GAP_S)

    def _on_voice(self, user_id: int, ssrc: int, change: VoiceSessionChange) -> None:
        if user_id == ROOMTONE_BOT_ID:
            self.voices.append(VoiceChange(time.monotonic(), change))
