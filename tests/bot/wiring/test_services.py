"""The services of rooms, opened from the settings as the bot does: every configured choice reaches a room."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from bot import events
from bot.brain.tools.tool import Asker
from bot.brain.tools.toolbox import TalkTools
from bot.conversation.services import RoomServices
from bot.dashboard.live import LiveRooms
from bot.guild import VoiceMode
from bot.health import Health
from bot.memory.recall import RecallScope
from bot.monitoring.collectors import QUEUES
from bot.monitoring.metrics import Metrics
from bot.participation.guild_state import GuildStates
from bot.participation.statistics import mode_sentence
from bot.room.room_check import CHECK_ROOM_S
from bot.server_settings import ServerSettings
from bot.shards import ONLY_SHARD
from bot.tuning import Tuning
from bot.wiring import services
from bot.wiring.memory import open_recollection
from bot.wiring.pages import open_screens
from bot.wiring.process import ProcessParts, Stores, open_stores
from bot.wiring.services import open_speech_models, open_tool_servers, room_services
from bot.wiring.settings import BotSettings
from bot.wiring.speech_models import open_voices
from compaction.model import Mode, SessionId
from compaction.payload import MessageToolCall
from config.schema import Settings
from rehearsal.roomtone.written.channel import LoudnessDetector
from rehearsal.servers.chat import LocalChatServer
from tests.bot.brain.tools.calls import told
from tests.bot.empty_database import put_empty_database
from tests.bot.monitoring.happened import samples, value
from tests.bot.room.room_scene import House, leave, living
from tests.fakes.clock import FakeClock
from tests.fakes.room_channel import ADA, BO
from tests.patience import PATIENCE_S, settle

GUILD = 10


class EquippedHouse(House):
    """A `House` whose rooms get the bot's own services, except for hearing and voice."""

    equipment: RoomServices
    stores: Stores
    metrics: Metrics

    def services(self) -> RoomServices:
        """Return the services, with the fake recogniser, detector and voice."""
        speech = replace(
            self.equipment.speech,
            recogniser=self.recogniser,
            detector=LoudnessDetector(),
            synthesizer=self.voice,
            turn_end_detector=None,
        )
        return replace(self.equipment, speech=speech)


@asynccontextmanager
async def equipped(
    folder: Path,
    server: LocalChatServer,
    **more: Any,
) -> AsyncIterator[EquippedHouse]:
    """Open all services from settings: the chat model at `server`, no other models, and the sections in `more`."""
    put_empty_database(folder / "roomtone.db")
    settings = Settings.model_validate(
        {
            "storage": {"data_dir": folder},
            "web": {"port": 0},
            "models": {"directory": folder / "models"},
            "asr": {"base_url": "http://127.0.0.1:9/v1"},
            "speaking": {"base_url": "http://127.0.0.1:9/v1"},
            "llm": {"base_url": server.base_url, "model": "local-chat"},
            **more,
        }
    )
    parts = BotSettings.from_schema(settings)
    # A busy machine takes its time for a search, and to load the embedded voice takes half a second.
    parts = replace(parts, tuning=Tuning(quote_wait_s=PATIENCE_S, voice_falls_back=False))
    clock = FakeClock()
    async with AsyncExitStack() as stack:
        health = Health(clock)
        metrics = Metrics(health)
        stores = await open_stores(stack, parts, clock)
        house = EquippedHouse(stores.database, clock)
        house.metrics = metrics
        participation = GuildStates(
            stores.servers, stores.opt_outs, parts.participation, wake_names=parts.brain.names, clock=clock
        )
        screens = await open_screens(stack, parts, clock, meter=metrics)
        house.stores = stores
        voices = await stack.enter_async_context(open_voices(parts.speaking, parts.models, [stores.servers]))
        speech = await open_speech_models(stack, parts, metrics, health)
        process = ProcessParts(parts, stores, UTC, clock, metrics, health)
        recollection = await open_recollection(stack, process, participation, ONLY_SHARD)
        house.equipment = room_services(
            process,
            speech,
            recollection,
            tool_servers=await open_tool_servers(stack, process),
            participation=participation,
            voices=voices,
            show_live=LiveRooms(clock).show,
            screens=screens,
            observe=house.seen.append,
        )
        yield house


async def test_what_a_guild_has_chosen_reaches_decisions_and_prompts(tmp_path: Path) -> None:
    """A guild's voice mode, wake names, persona and memory mode take effect."""
    async with LocalChatServer() as server, equipped(tmp_path, server) as house:
        chosen = ServerSettings(
            mode=Mode.ROLLING, voice_mode=VoiceMode.NAME, wake_names=("Otto",), persona="Speak like a pirate."
        )
        await house.stores.servers.change(GUILD, lambda _: chosen, by=ADA.id)
        house.channel.people = [ADA]
        async with living(house) as (room, _):
            await house.say(ADA.id, "Roomtone, how are you this evening?")
            await house.say(ADA.id, "Otto, how are you this evening?")
            reply = await house.reply(1)
            assert reply.answer_to == 1
            assert mode_sentence(VoiceMode.NAME) in room.status()
            built = house.of(events.ContextBuilt)
        assert [event.answer_to for event in built if isinstance(event, events.ContextBuilt)][-1] == 1
        system = str(server.calls[-1].messages[0]["content"])
        assert "Speak like a pirate." in system
        policy = house.equipment.replies.guild_policy
        assert policy is not None
        assert policy.prompt_policy(GUILD, 1).mode is Mode.ROLLING
        assert house.equipment.realtime is None, "speech-to-speech is off unless somebody wants it"


@pytest.mark.parametrize(
    ("llm", "realtime", "key"),
    [
        ({}, {}, "llm"),
        ({"base_url": "https://api.anthropic.com/v1"}, {"api_key": "own"}, "own"),
        ({}, {"base_url": "https://speech.example.org/v1"}, ""),
    ],
)
async def test_speech_to_speech_gets_the_key_of_its_own_endpoint(
    llm: dict[str, str], realtime: dict[str, str], key: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key of the language model goes nowhere but to the language model's provider."""
    keys: list[str] = []
    monkeypatch.setattr(services, "session_factory", lambda *_, api_key, **__: keys.append(api_key))
    sections: dict[str, Any] = {"llm": {"api_key": "llm", **llm}, "realtime": {"model": "gpt-realtime", **realtime}}
    async with LocalChatServer() as server, equipped(tmp_path, server, **sections):
        assert keys == [key]


async def test_the_notice_of_a_room_names_who_gets_a_part(tmp_path: Path) -> None:
    """The service that gets pictures of shared screens."""
    eyes = {"model": "eyes-1", "base_url": "https://eyes.example.org/v1"}
    async with (
        LocalChatServer() as server,
        equipped(tmp_path, server, screen=eyes) as house,
        living(house),
    ):
        (notice,) = house.channel.notices
        assert "eyes.example.org gets pictures of shared screens, and questions about them." in notice


async def test_a_rooms_search_and_quotes_leave_out_who_opted_out(tmp_path: Path) -> None:
    """What somebody said in an earlier session is quoted and found until they opt out, and not afterwards."""
    async with LocalChatServer() as server, equipped(tmp_path, server) as house:
        house.channel.people = [ADA, BO]
        async with living(house) as (room, task):
            await house.say(ADA.id, "The walrus sleeps in the green shed.")
            await leave(room, task)
        tools = house.equipment.replies.open_toolbox(
            RecallScope(SessionId("other"), GUILD, house.channel.channel_id), house.channel, TalkTools()
        )
        for hidden in (False, True):
            await house.equipment.participation.set_opt_out(GUILD, ADA.id, out=hidden)
            async with living(house) as (room, task):
                await house.say(BO.id, "Roomtone, what sleeps in the green shed?")
                await settle(lambda: bool(house.of(events.ContextBuilt)))
                built = house.of(events.ContextBuilt).pop()
                assert isinstance(built, events.ContextBuilt)
                assert ("walrus" in str([part.content for part in built.parts])) is not hidden
                asked = MessageToolCall("c", "memory_search", '{"query": "green shed"}')
                found = await told(tools.for_asker(Asker(BO.id, "Bo", present=True)), asked)
                assert ("walrus" in found) is not hidden
                house.seen.clear()
                await leave(room, task)


async def test_a_room_is_in_the_metrics_from_packet_to_sound(tmp_path: Path) -> None:
    """A room with the bot's own services reports every queue that it has, each stage of a turn, and what the
    model cost. After its end, its queues are gone from the metrics.
    """
    async with LocalChatServer() as server, equipped(tmp_path, server) as house:
        metrics = house.metrics
        house.channel.people = [ADA]
        async with living(house) as (room, task):
            await house.say(ADA.id, "Roomtone, how are you this evening?")
            await house.reply(1)
            await house.pass_time(CHECK_ROOM_S + 1.0)
            assert value(metrics, "rooms") == 1
            of_rooms = {name for name in QUEUES if value(metrics, "queue_capacity", queue=name)}
            assert of_rooms == {
                "sound",
                "recognise",
                "record",
                "answer",
                "play",
                "typed",
                "store",
                "notices",
            }
            await settle(lambda: value(metrics, "replies_total", outcome="spoken") == 1)
            await leave(room, task)
        counted = ("endpoint", "queue", "recognise", "group", "store", "decide", "model", "synthesis", "end_to_sound")
        counts = [value(metrics, "stage_seconds_count", stage=stage) for stage in counted]
        assert counts == [1] * len(counted)
        assert value(metrics, "turns_total", kind="speech") == 1
        assert value(metrics, "model_calls_total", model="local-chat", purpose="reply", outcome="answered") == 1
        assert value(metrics, "model_tokens_total", model="local-chat", direction="sent") > 0
        assert (value(metrics, "rooms"), value(metrics, "queue_capacity", queue="play")) == (0, 0)
        labels = {label for _, labels in samples(metrics) for label, _ in labels}
        assert not labels & {"guild", "guild_id", "user", "user_id", "session_id", "speaker_id"}
