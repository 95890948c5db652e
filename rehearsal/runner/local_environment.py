"""The environment of a rehearsal: the local Discord and scripted people."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rehearsal.discord.guild.payloads import message_text
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.guild.state import PostedMessage
from rehearsal.discord.interactions.result import InteractionResult
from rehearsal.discord.server import LocalDiscord, VoiceMessage
from rehearsal.errors import PersonError
from rehearsal.people.clip import RATE_HZ, Clip
from rehearsal.people.person import ScriptedPerson, scripted_member
from rehearsal.people.received_speech import ReceivedSpeech
from rehearsal.runner.ports import DiscordAddresses
from rehearsal.runner.screen_share import ScreenSharePage
from rehearsal.script.scenario import (
    CommandStep,
    OptionValue,
    PersonStep,
    SayStep,
    Scenario,
    SendStep,
    ShowStep,
    StopSharingStep,
)

_GUILD_ID, _VOICE_ID, _TEXT_ID = 500, 600, 601
# How often to look whether the bot has answered a voice message.
SEND_POLL_S = 0.1
# A bot's token begins with its id. The rest is only there because Discord's own tokens have more parts.
TOKEN = f"{ROOMTONE_BOT_ID}.local.rehearsal"


@asynccontextmanager
async def open_local_environment(scenario: Scenario) -> AsyncIterator[LocalEnvironment]:
    """Load the scenario's clips and start a local Discord for it. Shut everything down when the block ends.

    Raises `RehearsalError` when a clip cannot be read or a port cannot be opened.
    """
    clips = {}
    for path in dict.fromkeys(step.audio for step in scenario.says if step.audio is not None):
        clips[path] = await asyncio.to_thread(Clip.load, path)
    async with LocalDiscord(guild=_guild(scenario)) as discord, contextlib.AsyncExitStack() as stack:
        discord.network.update(scenario.network.model_dump())
        yield LocalEnvironment(scenario, discord, clips, stack)


class LocalEnvironment:
    """The `Stage` of a scenario with sound: its people in a local Discord. `open_local_environment` creates it."""

    def __init__(
        self, scenario: Scenario, discord: LocalDiscord, clips: Mapping[Path, Clip], stack: contextlib.AsyncExitStack
    ) -> None:
        """`stack` disconnects the people who are still in the channel at the end."""
        self.discord = discord
        self._clips = clips
        self._stack = stack
        self._names = {person.id: person.name for person in scenario.people}
        # A scenario writes names in the options of a command, whereas Discord's client sends ids.
        self._ids_by_name = {person.name: person.id for person in scenario.people} | {
            channel.name: channel.id for channel in discord.guild.channels
        }
        self._connected: dict[int, tuple[ScriptedPerson, contextlib.AsyncExitStack]] = {}
        # Each person who was there, once for each stay, by user id. What they heard stays available.
        self._stays: dict[int, list[ScriptedPerson]] = {}
        self._results: list[InteractionResult] = []
        self._sharers: dict[int, tuple[ScreenSharePage, contextlib.AsyncExitStack]] = {}

    @property
    def addresses(self) -> DiscordAddresses:
        """The addresses at which the bot finds this Discord."""
        return discord_addresses(self.discord, TOKEN)

    @property
    def messages(self) -> tuple[str, ...]:
        """Every text that the bot wrote, with its embeds: those in the channel, then those that only one person saw."""
        posted = [one.payload for one in self.discord.messages if one.author_id == ROOMTONE_BOT_ID]
        hidden = [reply.payload for result in self._results for reply in result.replies if reply.ephemeral]
        return tuple(message_text(each) for each in (*posted, *hidden))

    async def enter(self, user_id: int) -> None:
        """See `Stage`. Raises `PersonError` if the person is there already: the step would show nothing."""
        if user_id in self._connected:
            raise PersonError(
                f"{self._names[user_id]} is in the voice channel already. Set `present = false` for them."
            )
        person = scripted_member(self.discord, user_id, channel_id=_VOICE_ID)
        connection = await self._stack.enter_async_context(contextlib.AsyncExitStack())
        await connection.enter_async_context(person)
        self._connected[user_id] = person, connection
        self._stays.setdefault(user_id, []).append(person)

    async def leave(self, user_id: int) -> None:
        """See `Stage`. Raises `PersonError` if the person is not there."""
        self._person(user_id)
        _, connection = self._connected.pop(user_id)
        await connection.aclose()

    async def meet(self, user_id: int) -> None:
        """Wait until this person and the bot share the call's encryption keys."""
        await self._person(user_id).meet(ROOMTONE_BOT_ID)

    async def act(self, user_id: int, step: PersonStep) -> str:
        """See `Stage`."""
        match step:
            case CommandStep():
                await self.invoke(user_id, step.command, step.options)
            case StopSharingStep():
                await self._stop_sharing(user_id)
            case ShowStep():
                if not await self._show(user_id, step.shows, timeout_s=step.timeout_s):
                    return f"the bot noted nothing of {step.shows.name}"
            case SendStep():
                if not await self._send(user_id, step.sends, timeout_s=step.timeout_s):
                    return "the bot did not answer the voice message"
        return ""

    async def invoke(self, user_id: int, command: str, options: Mapping[str, OptionValue]) -> None:
        """Use a slash command. Names of people and channels in the options are replaced by their ids.

        The options of /settings are settings of its panel, each with what is picked there.
        """
        if command == "settings":
            for key, value in options.items():
                shown = (await self.discord.invoke(user_id, command)).replies[-1].payload
                panel = int(shown["id"])
                await self.discord.pick(user_id, panel, _menu_with(key, shown), [key])
                await self.discord.pick(user_id, panel, f"roomtone:setting-{key}", [str(value)])
            return
        resolved = {
            name: self._ids_by_name.get(value, value) if isinstance(value, str) else value
            for name, value in options.items()
        }
        self._results.append(await self.discord.invoke(user_id, command, resolved))

    async def _show(self, user_id: int, picture: Path, *, timeout_s: float) -> bool:
        """Share a picture of this person's screen. The first time, open the page that `/watch start` links to."""
        if user_id not in self._sharers:
            # The answer is not added to `messages`, because nobody else may see the link.
            result = await self.discord.invoke(user_id, "watch start", {})
            reply = result.replies[-1].content if result.replies else "no answer"
            page = await self._stack.enter_async_context(contextlib.AsyncExitStack())
            sharer = await page.enter_async_context(ScreenSharePage(self._names[user_id], reply))
            self._sharers[user_id] = sharer, page
        data = await asyncio.to_thread(picture.read_bytes)
        return await self._sharers[user_id][0].show(data, timeout_s=timeout_s)

    async def _send(self, user_id: int, recording: Path, *, timeout_s: float) -> bool:
        """Send a voice message in reply to what the bot wrote last in the voice channel's chat. Return whether it has
        answered there in time. Raises `PersonError` if it has written nothing yet.
        """
        if not (written := self._written_in_chat()):
            raise PersonError("The bot has written nothing that one could reply to. Let somebody use /join first.")
        content, clip = await asyncio.gather(
            asyncio.to_thread(recording.read_bytes), asyncio.to_thread(Clip.load, recording)
        )
        voice = VoiceMessage(content, clip.duration_s)
        sent = await self.discord.post_message(
            user_id, "", channel_id=_VOICE_ID, replies_to=written[-1].id, voice=voice
        )
        deadline = asyncio.get_running_loop().time() + timeout_s
        while asyncio.get_running_loop().time() < deadline:
            if any(_replies_to(each, sent.id) for each in self._written_in_chat()):
                return True
            await asyncio.sleep(SEND_POLL_S)
        return False

    def _written_in_chat(self) -> list[PostedMessage]:
        return [
            each for each in self.discord.messages if (each.author_id, each.channel_id) == (ROOMTONE_BOT_ID, _VOICE_ID)
        ]

    async def _stop_sharing(self, user_id: int) -> None:
        """Press the page's stop button and close the page. Raises `PersonError` for somebody who shares no screen."""
        if user_id not in self._sharers:
            raise PersonError(f"{self._names[user_id]} shares no screen. Let them show something first.")
        sharer, page = self._sharers.pop(user_id)
        await sharer.stop()
        await page.aclose()

    def speech_s(self, step: SayStep) -> float:
        """See `Stage`."""
        return self._clip(step).voiced_end_s

    async def say(self, user_id: int, step: SayStep) -> tuple[float, float]:
        """Play the recording of a step in real time as this person's voice."""
        playback = await self._person(user_id).say(self._clip(step))
        return playback.speech_started_at, playback.speech_ended_at

    def _clip(self, step: SayStep) -> Clip:
        assert step.audio is not None, "a scenario with sound has a recording of each line"
        return self._clips[step.audio]

    def voiced(self, listener_id: int, since: float, until: float) -> tuple[float, float] | None:
        """Return when this person received the bot's first and last voiced sound between two times, or None."""
        voiced = (heard.voiced_at(since=since, until=until) for heard in self._heard_of_bot(listener_id))
        return next(filter(None, voiced), None)

    def heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """Return the sound that this person received from the bot (mono int16 at 16 kHz)."""
        pieces = [heard.pcm(since=since, until=until) for heard in self._heard_of_bot(listener_id)]
        return np.concatenate(pieces) if pieces else np.zeros(0, np.int16)

    def _heard_of_bot(self, listener_id: int) -> list[ReceivedSpeech]:
        return [person.heard(ROOMTONE_BOT_ID) for person in self._stays.get(listener_id, [])]

    def everything_heard(self, listener_id: int, since: float, until: float) -> NDArray[np.int16]:
        """Return the channel as this person heard it, with what they said themselves (mono int16 at 48 kHz). Blocking:
        a minute takes a quarter of a second.
        """
        voices = [voice for person in self._stays.get(listener_id, []) for voice in person.all_heard]
        tracks = [np.zeros(int((until - since) * RATE_HZ), np.int16)]
        tracks += [voice.track(since=since, until=until, rate_hz=RATE_HZ) for voice in voices]
        limits = np.iinfo(np.int16)
        return np.sum(tracks, axis=0, dtype=np.int32).clip(limits.min, limits.max).astype(np.int16)

    def _person(self, user_id: int) -> ScriptedPerson:
        if user_id not in self._connected:
            raise PersonError(f"{self._names[user_id]} is not in the voice channel. Let them join first.")
        return self._connected[user_id][0]


def _replies_to(message: PostedMessage, message_id: int) -> bool:
    return bool((message.payload.get("message_reference") or {}).get("message_id") == str(message_id))


def _menu_with(key: str, panel: Mapping[str, Any]) -> str:
    """Return the id of the menu of a panel that offers `key`; empty if none does."""
    menus = (menu for row in panel["components"] for menu in row["components"])
    found = (menu["custom_id"] for menu in menus if key in (option["value"] for option in menu.get("options", ())))
    return next(found, "")


def discord_addresses(discord: LocalDiscord, token: str) -> DiscordAddresses:
    """Return the addresses at which a bot with this token finds a local Discord.

    The first voice channel and the text channel are included.
    """
    return DiscordAddresses(
        api_base=discord.api_base,
        certificate_path=discord.certificate_path,
        token=token,
        guild_id=discord.guild.id,
        voice_channel_id=discord.guild.voice_channels[0].id,
    )


def _guild(scenario: Scenario) -> GuildSpec:
    # The first person is a moderator, because a person who invites a bot usually is one.
    people = tuple(
        Member(one.id, one.name, moderator=one.moderator or at == 0, locale=one.locale)
        for at, one in enumerate(scenario.people)
    )
    return GuildSpec(
        id=_GUILD_ID,
        name=scenario.guild,
        voice_channels=(Channel(_VOICE_ID, scenario.channel),),
        text_channel=Channel(_TEXT_ID, scenario.text_channel),
        people=people,
        bots=(Member(ROOMTONE_BOT_ID, scenario.bot.name),),
    )
