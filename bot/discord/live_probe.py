"""Tries one voice channel step by step for a while, and counts its packets, for `roomtone doctor --live`.

The people there are told before anything is counted. Everybody is treated like somebody who has opted out: no sound is
decrypted, decoded, kept or sent anywhere. They hear a tone, and are asked whether they do.
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import numpy as np

from bot.background_task import background_task, owned_task
from bot.channel.markdown import in_message
from bot.discord.answers import answer
from bot.discord.command_tree import AnsweringView
from bot.discord.connection import until_ready
from bot.discord.endpoint import IntentsClient, connector, point_at, require_token
from bot.discord.permissions import missing_in
from bot.discord.posting import attempt, post_message
from bot.errors import BotError, SetupError
from bot.texts.text import Text, counted, in_language
from bot.versions import versions
from voice.audio import DISCORD_FRAME_SAMPLES, DISCORD_RATE_HZ, FRAME_MS, Pcm
from voice.errors import VoiceError
from voice.hearing import EventQueue
from voice.transport.connection import CONNECT_TIMEOUT_S
from voice.transport.connector import Connector
from voice.transport.discord_gateway import DiscordMainGateway, VoiceChannel, check_entry
from voice.transport.outgoing import Outgoing
from voice.transport.receiver import Receiver

if TYPE_CHECKING:
    from collections.abc import Callable

    import discord

    from bot.settings import DiscordSettings
    from voice.transport.private.client import ReceivingClient

# Seconds between two looks at the connection. Keepalives leave when they are due.
_CHECK_S = 0.5
# Changes of a connection that a hostile server could make without end, and answers to keepalives: the record has to fit
# into an issue, with a report.
_MOST_CHANGES, MOST_ROUND_TRIPS = 50, 120
THANKS = Text("The test of the voice connection is over. Thank you.")
QUESTION = Text("I have played a tone in the voice channel. Did you hear it?")
YES = Text("Yes, I heard it")
ELSEWHERE = Text("To hear it, join the voice channel.")
NOTED = Text("Thank you. I have noted that somebody heard it. I have not noted who.")
# A frame of 20 ms has nine whole waves of it.
_TONE_S, _TONE_HZ, _LOUDNESS = 1.0, 450.0, 6_000


class CallStep(StrEnum):
    """The steps of a call, in their order. The first without a result is the one that a failure ended."""

    INTENTS = "intents"
    COMMANDS = "commands"
    PERMISSIONS = "permissions"
    VOICE_SERVER = "voice server"
    MODE = "encryption mode"
    EPOCH = "DAVE epoch"
    HEARD = "first packet"
    SENT = "sound sent"
    CONFIRMED = "sound heard"


@dataclass(slots=True)
class LiveRecord:
    """What a test has found. `steps`: the result of each. `packets`: by what became of them; None: it did not connect.

    The changes of the connection are `up` and `down`; if it did not last, the last one is `removed` (somebody took the
    bot out), `ended` (by the voice server) or `silent` (keepalives are answered no more). `problem`: why the test could
    not go on, in sentences; it may have names, so it is not in the file.
    """

    seconds: float
    started_at: float = field(default_factory=time.monotonic)
    steps: dict[CallStep, dict[str, Any]] = field(default_factory=dict)
    packets: dict[str, int] | None = None
    changes: list[dict[str, Any]] = field(default_factory=list)
    round_trips_ms: list[float] = field(default_factory=list)
    problem: str = ""

    @property
    def _after_s(self) -> float:
        return round(time.monotonic() - self.started_at, 1)

    def as_json(self) -> dict[str, Any]:
        """Return what the file has."""
        return {
            "versions": versions(),
            "seconds": self.seconds,
            "steps": self.steps,
            "packets": self.packets,
            "connection": self.changes,
            "keepalive_round_trips_ms": self.round_trips_ms,
        }

    def note(self, step: CallStep, *, works: bool, **more: Any) -> None:
        """Note the result of a step. Only the first one counts."""
        self.steps.setdefault(step, {"works": works, "after_s": self._after_s, **more})

    def fail(self, error: BotError | VoiceError) -> None:
        """Note what the test could not go on for."""
        if isinstance(error.__cause__, IndexError):
            # How discord.py fails if the voice server offers no way of encrypting that it knows.
            self.note(CallStep.VOICE_SERVER, works=True)
        self.problem = str(error)
        self.note(next(each for each in CallStep if each not in self.steps), works=False, error=type(error).__name__)

    def changed(self, change: str, **more: Any) -> None:
        del self.changes[_MOST_CHANGES - 1 :]
        self.changes.append({"after_s": self._after_s, "change": change, **more})

    async def watch(self, client: ReceivingClient, receiver: Receiver, can_send: asyncio.Event) -> None:
        """Keep the client's path open for the time of the test, or until it is lost. `can_send`: set once it can."""
        state, until = client.connection, time.monotonic() + self.seconds
        noted: float | None = None
        while (left := until - time.monotonic()) > 0:
            is_open = not state.is_connected() or state.keep_path_open()
            await asyncio.sleep(min(left, _CHECK_S))
            round_trip_s = state.keepalive.round_trip_s
            if round_trip_s is not None and round_trip_s != noted:
                noted = round_trip_s
                del self.round_trips_ms[MOST_ROUND_TRIPS - 1 :]
                self.round_trips_ms.append(round(1000 * round_trip_s, 1))
            session = state.dave_session
            if session is not None and state.end_to_end and state.can_encrypt:
                self.note(CallStep.EPOCH, works=True, epoch=session.epoch)
            if receiver.counters().excluded:
                self.note(CallStep.HEARD, works=True)
            if client.can_send:
                can_send.set()
            if state.taken_out or state.over or not is_open:
                lost = "removed" if state.taken_out else "ended" if state.over else "silent"
                self.changed(lost, close_code=state.close_code)
                return


async def probe_channel(
    settings: DiscordSettings, channel_id: int, *, seconds: float, say: Callable[[str], None]
) -> LiveRecord:
    """Try the channel for `seconds`, and return what was found. `say` gets a sentence where people are told.

    Raises `SetupError` if there is no token.
    """
    token, record = require_token(settings), LiveRecord(seconds)
    point_at(settings)
    try:
        async with (
            IntentsClient(connector=connector(settings)) as client,
            owned_task(client.start(token), name="live-probe-client") as running,
        ):
            await until_ready(client.wait_until_ready(), running)
            record.note(CallStep.INTENTS, works=True)
            assert client.application_id is not None, "it is logged in"
            known = client.http.get_global_commands(client.application_id)
            number = len(await attempt(known, [], event="commands_not_asked"))
            record.note(CallStep.COMMANDS, works=number > 0, count=number)
            channel = _channel(client, channel_id)
            say(f"Joining {channel.name} in {channel.guild.name} for {seconds:g} s.")
            await _try(client, channel, record)
    except (BotError, VoiceError) as error:
        record.fail(error)
    return record


def _channel(client: discord.Client, channel_id: int) -> VoiceChannel:
    """Return the channel, if the bot may enter it and is nowhere else there. Raises `SetupError` or
    `VoiceConnectionError`.
    """
    channel = client.get_channel(channel_id)
    if not isinstance(channel, VoiceChannel):
        raise SetupError(
            f"The bot sees no voice channel {channel_id}. Right-click the channel in Discord and copy its id "
            "(Settings, Advanced, Developer Mode), and look at the bot's permissions there."
        )
    if channel.guild.me.voice is not None:
        raise SetupError(
            f"The bot is in a voice channel of {channel.guild.name} already. Let it leave, or stop it first."
        )
    check_entry(channel)
    return channel


async def _try(client: discord.Client, channel: VoiceChannel, record: LiveRecord) -> None:
    """Tell the people, join, wait, leave. Raises `SetupError` if they cannot be told, and `VoiceConnectionError`."""
    if not await _post(channel, notice(round(record.seconds))):
        raise SetupError(
            f"The people in {channel.name} could not be told of the test, so it was not made. Give the bot's role the "
            "permission Send Messages there."
        )
    missing = missing_in(channel)
    record.note(CallStep.PERMISSIONS, works=not missing, missing=missing)
    receiver = Receiver(deliver=EventQueue(0), heard_since=lambda _: None)
    voice = Connector(
        DiscordMainGateway(client, channel),
        receiver=receiver,
        on_state=lambda up: record.changed("up" if up else "down"),
        paced_sender=None,
        timeout_s=CONNECT_TIMEOUT_S,
        require_e2ee=False,
    )
    outgoing = Outgoing(tone := _Tone(), voice, channel_bitrate_bps=channel.bitrate)
    can_send = asyncio.Event()
    try:
        await voice.connect()
        assert voice.client is not None
        record.note(CallStep.VOICE_SERVER, works=True)
        record.note(CallStep.MODE, works=True, mode=voice.client.connection.mode)

        async def ask() -> None:
            await can_send.wait()
            outgoing.start()
            await tone.played.wait()
            me = channel.guild.me
            is_silenced = me.voice is None or me.voice.mute or me.voice.suppress
            record.note(CallStep.SENT, works=not is_silenced and channel.permissions_for(me).speak)
            await _ask_who_heard(channel, record)

        async with background_task(ask(), name="live-probe-question"):
            await record.watch(voice.client, receiver, can_send)
        record.packets = receiver.counters().as_dict()
        for step in CallStep:
            record.note(step, works=False)
    finally:
        outgoing.stop()
        await voice.retire()
        await _post(channel, THANKS)


async def _ask_who_heard(channel: VoiceChannel, record: LiveRecord) -> None:
    """Ask in the chat whether somebody has heard the tone, until cancelled. The button goes then."""

    async def noted(interaction: discord.Interaction) -> None:
        is_there = interaction.user.id in channel.voice_states
        if is_there:
            record.note(CallStep.CONFIRMED, works=True)
        await answer(interaction, NOTED if is_there else ELSEWHERE)

    language = channel.guild.preferred_locale.value
    view = AnsweringView(timeout=None)
    view.add_button("live-probe-heard", in_language(YES, language), noted)
    request = post_message(channel, in_message(QUESTION, language), view=view)
    message = await attempt(request, None, event="live_probe_not_announced")
    try:
        await view.wait()
    finally:
        if message is not None:
            await attempt(message.edit(view=None), None, event="live_probe_not_announced")


class _Tone:
    """A tone for the sending thread. `played`: set once all of it has left."""

    def __init__(self) -> None:
        self.played = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._left = round(1000 * _TONE_S / FRAME_MS)
        turns = np.arange(DISCORD_FRAME_SAMPLES) * _TONE_HZ / DISCORD_RATE_HZ
        self._frame = (_LOUDNESS * np.sin(2 * np.pi * turns)).astype(np.int16)

    def next_frame(self) -> Pcm | None:
        self._left -= 1
        if self._left == -1:
            self._loop.call_soon_threadsafe(self.played.set)
        return self._frame if self._left >= 0 else None


def notice(seconds: int) -> Text:
    """Return what people read before the test."""
    return counted(
        seconds,
        "I am testing the voice connection for {count} second. I only count the sound that arrives. "
        "I do not play, write down or keep what you say.",
        "I am testing the voice connection for {count} seconds. I only count the sound that arrives. "
        "I do not play, write down or keep what you say.",
    )


async def _post(channel: VoiceChannel, text: Text) -> bool:
    """Post a sentence in the channel's chat, in the server's language. Returns whether Discord took it."""
    request = channel.send(in_message(text, channel.guild.preferred_locale.value))
    return await attempt(request, None, event="live_probe_not_announced") is not None
