"""The real place of a rehearsal: the local Discord and people with mouths and ears, as the stage's `Venue`."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import numpy as np

from rehearsal.discord.guild import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.people.person import Person
from rehearsal.people.sharer import Sharer
from rehearsal.runner.venue import Addresses, Speech

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from rehearsal.discord.interactions import InteractionResult
    from rehearsal.people.hearing import HeardSpeech
    from rehearsal.script.scenario import NetworkSpec, OptionValue, Scenario

_GUILD_ID, _VOICE_ID, _TEXT_ID = 500, 600, 601
# A bot's token begins with its id; the rest is only there because Discord's tokens have a rest.
TOKEN = f"{ROOMTONE_BOT_ID}.local.rehearsal"


@asynccontextmanager
async def open_local_venue(scenario: Scenario) -> AsyncIterator[LocalVenue]:
    """Open a local Discord for this scenario, with its clips loaded; end everything in it afterwards.

    Raises `RehearsalError` when a clip is no sound or the Discord cannot listen.
    """
    clips = {}
    for path in dict.fromkeys(step.audio for step in scenario.says):
        clips[path] = await asyncio.to_thread(Clip.load, path)
    async with LocalDiscord(guild=_guild(scenario)) as discord, contextlib.AsyncExitStack() as stack:
        yield LocalVenue(scenario, discord, clips, stack)


class LocalVenue:
    """People of one scenario in one local Discord. Belongs to `open_local_venue`."""

    def __init__(
        self, scenario: Scenario, discord: LocalDiscord, clips: Mapping[Path, Clip], stack: contextlib.AsyncExitStack
    ) -> None:
        """`stack` ends the people who are still there at the end."""
        self.discord = discord
        self._clips = clips
        self._stack = stack
        self._tls = ssl.create_default_context(cafile=str(discord.certificate_path))
        self._names = {person.id: person.name for person in scenario.people}
        # What a person writes in an option, where Discord's client sends a number.
        self._numbers = {person.name: person.id for person in scenario.people} | {
            channel.name: channel.id for channel in discord.guild.channels
        }
        self._inside: dict[int, tuple[Person, contextlib.AsyncExitStack]] = {}
        # Everybody who was ever inside: what they heard outlives their stay.
        self._ears: dict[int, list[HeardSpeech]] = {}
        self._results: list[InteractionResult] = []
        self._sharers: dict[int, tuple[Sharer, contextlib.AsyncExitStack]] = {}

    @property
    def addresses(self) -> Addresses:
        """Where the bot finds it."""
        return Addresses(
            api_base=self.discord.api_base,
            gateway_url=self.discord.gateway_url,
            certificate_path=self.discord.certificate_path,
            token=TOKEN,
            guild_id=_GUILD_ID,
            voice_channel_id=_VOICE_ID,
            text_channel_id=_TEXT_ID,
        )

    @property
    def messages(self) -> tuple[str, ...]:
        """Every text the bot wrote: in the channel, then what only one person saw."""
        posted = [one.content for one in self.discord.messages if one.author_id == ROOMTONE_BOT_ID]
        hidden = [reply.content for result in self._results for reply in result.replies if reply.ephemeral]
        return (*posted, *hidden)

    async def enter(self, user_id: int) -> None:
        """Bring a person into the voice channel; returns when they can speak and hear."""
        if user_id in self._inside:
            return

        async def join() -> Mapping[str, object]:
            credentials = await self.discord.join(user_id, channel_id=_VOICE_ID)
            return {"state": credentials.state, "server": credentials.server}

        async def leave() -> None:
            await self.discord.leave(user_id)

        person = Person(user_id=user_id, name=self._names[user_id], join=join, leave=leave, tls=self._tls)
        stay = await self._stack.enter_async_context(contextlib.AsyncExitStack())
        await stay.enter_async_context(person)
        self._inside[user_id] = person, stay
        self._ears.setdefault(user_id, []).append(person.heard(ROOMTONE_BOT_ID))

    async def leave(self, user_id: int) -> None:
        """Take a person out of it."""
        if user_id in self._inside:
            _, stay = self._inside.pop(user_id)
            await stay.aclose()

    async def meet(self, user_id: int) -> None:
        """Wait until this person and the bot share a call's keys."""
        await self._person(user_id).meet(ROOMTONE_BOT_ID)

    async def invoke(self, user_id: int, command: str, options: Mapping[str, OptionValue]) -> None:
        """Use a slash command; names of people and channels in the options become their ids."""
        numbered = {
            name: self._numbers.get(value, value) if isinstance(value, str) else value
            for name, value in options.items()
        }
        self._results.append(await self.discord.invoke(user_id, command, numbered))

    async def show(self, user_id: int, picture: Path, *, timeout_s: float) -> bool:
        """Share a picture of this person's screen; the first opens the bot's page with a link of their own."""
        if user_id not in self._sharers:
            # Not among the messages: nobody else is to see the link.
            given = await self.discord.invoke(user_id, "watch start", {})
            told = given.replies[-1].content if given.replies else "no answer"
            page = await self._stack.enter_async_context(contextlib.AsyncExitStack())
            sharer = await page.enter_async_context(Sharer(self._names[user_id], told))
            self._sharers[user_id] = sharer, page
        data = await asyncio.to_thread(picture.read_bytes)
        return await self._sharers[user_id][0].show(data, timeout_s=timeout_s)

    async def stop_sharing(self, user_id: int) -> None:
        """Press the page's button, and close it."""
        if user_id not in self._sharers:
            raise PersonError(f"{self._names[user_id]} shares no screen. Let them show something first.")
        sharer, page = self._sharers.pop(user_id)
        await sharer.stop()
        await page.aclose()

    def speech_s(self, clip: Path) -> float:
        """Return how long until the voice of this clip ends."""
        return self._clips[clip].voiced_end_s

    async def say(self, user_id: int, clip: Path) -> Speech:
        """Speak a clip in real time."""
        said = await self._person(user_id).say(self._clips[clip])
        return Speech(said.started_at, said.speech_started_at, said.speech_ended_at)

    def set_network(self, network: NetworkSpec) -> None:
        """Let voice packets fare like this from now on."""
        self.discord.network.update(network.model_dump())

    async def fault(self, name: str, user_id: int | None, options: Mapping[str, float]) -> None:
        """Misbehave once, towards this person or, with None, the bot."""
        await self.discord.fault(name, user_id=user_id, **options)

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """Return when this person received the bot's first and last voiced sound of a stretch, if any."""
        for heard in self._ears.get(listener_id, []):
            first, last = (
                heard.first_voiced_at(since=since, until=until),
                heard.last_voiced_at(since=since, until=until),
            )
            if first is not None and last is not None:
                return first, last
        return None

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """Return what this person received of the bot: mono int16 at 16 kHz."""
        pieces = [heard.pcm(since=since, until=until) for heard in self._ears.get(listener_id, [])]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def _person(self, user_id: int) -> Person:
        if user_id not in self._inside:
            raise PersonError(f"{self._names[user_id]} is not in the voice channel. Let them join first.")
        return self._inside[user_id][0]


def _guild(scenario: Scenario) -> GuildSpec:
    # The first person may do everything, as whoever invited the bot could.
    people = tuple(
        Member(one.id, one.name, moderator=one.moderator or at == 0) for at, one in enumerate(scenario.people)
    )
    return GuildSpec(
        id=_GUILD_ID,
        name=scenario.guild,
        voice_channels=(Channel(_VOICE_ID, scenario.channel),),
        text_channel=Channel(_TEXT_ID, scenario.text_channel),
        people=people,
        bots=(Member(ROOMTONE_BOT_ID, scenario.bot.name),),
    )
