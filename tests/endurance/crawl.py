"""A crawl over everything that people can use of the bot on a large server with hostile names: each command with each
of its options, what it suggests, and below each answer every button, menu and window.

The local Discord holds each request against Discord's specification. What it refuses, what is not answered, and what
the bot's log calls a defect is a finding.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from structlog.testing import capture_logs

from benchmarks.child_process import child_process
from benchmarks.local_bot import bot_address, bot_at
from bot.clock import SystemClock
from bot.discord.access import Cooldowns
from bot.events import ignore_event
from bot.server_settings import ServerSettings
from bot.store.attendance import AttendanceStore, Presence
from bot.store.servers import SqlServerSettings
from compaction.model import TurnKind, TurnPart
from rehearsal.discord.guild.payloads import Json
from rehearsal.discord.guild.spec import Category, Channel, GuildSpec, Member, Role
from rehearsal.discord.guild.state import CHANNEL_MENU, ROLE_MENU, STRING_MENU, buttons_of, menus_of
from rehearsal.discord.interactions.commands import OptionType
from rehearsal.discord.interactions.result import InteractionResult
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import LocalDiscordError
from rehearsal.servers.chat import MODEL, ChatBehaviour, LocalChatServer
from tests.bot.evening import Evening
from tests.endurance.live_room import START_TIMEOUT_S
from tests.fakes.clock import FakeClock

# Discord takes 32 characters for a name of a person, 100 for one of a channel, a role or a server.
HOSTILE = (
    "@everyone <@&1> [a](https://x.de)",
    "\u202eליל \u2067مساء\u2069 `x",
    "**__~~||```json\n{placeholder}\n",
    "\U0001f469\u200d\U0001f52c" * 8,
    "%s {0} {channel} </join:1> <#1>",
)
# An id of 2026, and what Discord's ids of one server differ by.
FIRST_ID, APART = 1_445_000_000_000_000_000, 4_194_304_123
ANSWERED_WITHIN_S = 20.0
DEEPEST = 3
# Until free memory has been given back.
SETTLES_S = 15.0
# What ends a session, or takes somebody out of it, is used last.
LAST = ("opt-out", "opt-in", "forget-me", "leave", "join")


def hostile_guild(*, people: int, channels: int) -> GuildSpec:
    """Return a server with so many people and channels, one of which takes 99 people."""
    ids = itertools.count(FIRST_ID, APART)
    role = Role(next(ids), HOSTILE[0])
    hall = Category(next(ids), HOSTILE[1])
    voice = Channel(next(ids), HOSTILE[1] * 2, user_limit=99, category=hall)
    stage, night = Channel(next(ids), HOSTILE[2], stage=True), Channel(next(ids), HOSTILE[3], age_restricted=True)
    chat, news = Channel(next(ids), HOSTILE[4]), Channel(next(ids), HOSTILE[0], announces=True)
    others = tuple(Channel(next(ids), f"{HOSTILE[number % 5]} {number}") for number in range(channels - 5))
    names = (each[:32] for each in itertools.cycle(HOSTILE))
    members = tuple(
        Member(next(ids), next(names), moderator=not number, locale=("en-US", "de")[number % 2], role_ids=(role.id,))
        for number in range(people)
    )
    return GuildSpec(
        id=next(ids),
        name=HOSTILE[2],
        voice_channels=(voice, stage, night),
        text_channel=chat,
        more_text_channels=(news, *others),
        people=members,
        bots=(Member(next(ids), "Roomtone"),),
        roles=(role,),
    )


class Use(NamedTuple):
    """What somebody does below an answer: presses a button, picks in a menu, or writes into the window."""

    name: str
    picked: tuple[str, ...] | None = None
    written: str | None = None


@dataclass(slots=True)
class Crawl:
    """Uses everything. `used`: how often what was used; `findings`: what went wrong, each once."""

    local: LocalDiscord
    deepest: int
    used: Counter[str] = field(default_factory=Counter)
    findings: dict[str, None] = field(default_factory=dict)
    _seen: set[tuple[int, Use]] = field(default_factory=set)

    async def everything(self, person: int, channel_id: int) -> None:
        """Use all that one person can use in a channel, and what the bot has written there for everybody."""
        order = {name: place for place, name in enumerate(LAST)}
        commands = [command for _, command in self.local.state.all_commands()]
        for command in sorted(commands, key=lambda each: order.get(each["name"], -1)):
            for path, options in _paths(command):
                offered = [await self._offered(person, path, each) for each in options]
                for given in _fillings(options, offered, self.local.guild, person):
                    command_used = partial(
                        self.local.invoke, person, path, given, channel_id=channel_id, timeout_s=ANSWERED_WITHIN_S
                    )
                    await self._explore(person, f"/{path} {given}", command_used)
        below = [
            (message.id, each["custom_id"]) for message in self.local.messages for each in buttons_of(message.payload)
        ]
        for message_id, button in below:
            press = self.local.press(person, message_id, button, timeout_s=ANSWERED_WITHIN_S)
            await self._answered(f"{button} below a message", "presses and picks", press)

    @property
    def refused(self) -> dict[str, int]:
        """How often Discord refused what, and why."""
        return {f"{each.route} {each.status} {each.code} {each.mistakes}": n for each, n in self.local.refused.items()}

    @property
    def wrong(self) -> list[str]:
        """What nobody answered, and what had another form than Discord takes."""
        return [*self.findings, *(each for each in self.refused if " 50035 " in each)]

    async def _offered(self, person: int, path: str, option: Json) -> list[object]:
        """Return what the bot suggests for an option when nothing is typed; type other things too."""
        found: list[object] = []
        for typed in (*HOSTILE, "") if option.get("autocomplete") else ():
            self.used["suggestions"] += 1
            try:
                found = [value for _, value in await self.local.suggest(person, path, option["name"], typed)]
            except LocalDiscordError as error:
                self.findings[f"/{path} {option['name']}: {error}"] = None
        return found[:1]

    async def _answered(self, what: str, kind: str, request: Awaitable[InteractionResult]) -> InteractionResult | None:
        """Return the answer to what somebody used; None: there was none, or it could not be used any more."""
        try:
            result = await request
        except LocalDiscordError as error:
            if isinstance(error.__cause__, TimeoutError):
                self.findings[f"{what}: {error}"] = None
            return None
        self.used[kind] += 1
        return result

    async def _explore(
        self,
        person: int,
        what: str,
        begin: Callable[[], Awaitable[InteractionResult]],
        steps: tuple[Use, ...] = (),
        known: frozenset[str] = frozenset(),
    ) -> None:
        """Use a command, go some steps below its answer, and from there each that is new. Each way begins anew, because
        a step changes the message that it was found below. `known`: what is used on another way.
        """
        result = await self._answered(what, "commands", begin())
        for step in steps:
            if result is not None:
                kind = "presses and picks" if step.written is None else "windows"
                result = await self._answered(f"{what} {step}", kind, self._go(person, result, step))
        if result is None or len(steps) >= self.deepest:
            return
        uses = list(_uses(result, self.local.guild, person))
        for use in uses:
            if use.name not in known and (person, use) not in self._seen:
                self._seen.add((person, use))
                await self._explore(person, what, begin, (*steps, use), known | {each.name for each in uses})

    async def _go(self, person: int, result: InteractionResult, use: Use) -> InteractionResult:
        if use.written is not None:
            return await self.local.write(result, use.written, timeout_s=ANSWERED_WITHIN_S)
        message = int(result.replies[-1].payload["id"])
        if use.picked is not None:
            return await self.local.pick(person, message, use.name, use.picked, timeout_s=ANSWERED_WITHIN_S)
        return await self.local.press(person, message, use.name, timeout_s=ANSWERED_WITHIN_S)


def _uses(result: InteractionResult, guild: GuildSpec, person: int) -> Iterator[Use]:
    """Yield what can be used below an answer, or in the window that it is."""
    if result.window is not None:
        most = result.window["components"][0]["component"].get("max_length", 4_000)
        yield from (Use(result.window["custom_id"], written=(text * 40)[:most]) for text in HOSTILE)
    for reply in result.replies[-1:]:
        yield from (Use(each["custom_id"]) for each in buttons_of(reply.payload) if not each["disabled"])
        for menu in menus_of(reply.payload):
            yield from (Use(menu["custom_id"], tuple(picked)) for picked in _picks(menu, guild, person))


def _paths(command: Json) -> Iterator[tuple[str, Sequence[Json]]]:
    """Yield a command's name, or those of its subcommands, with its options."""
    options = command.get("options") or []
    below = [each for each in options if each["type"] in (OptionType.SUB_COMMAND, OptionType.SUB_COMMAND_GROUP)]
    for each in below:
        yield from ((f"{command['name']} {path}", inner) for path, inner in _paths(each))
    if not below:
        yield command["name"], options


def _fillings(
    options: Sequence[Json], offered: Sequence[Sequence[object]], guild: GuildSpec, person: int
) -> Iterator[Mapping[str, Any]]:
    """Yield what somebody fills in: nothing that is not required, then each value of each option once. `offered`: what
    the bot suggests for each.
    """
    required = {each["name"]: next(_values(each, guild, person)) for each in options if each.get("required")}
    yield required
    for option, also in zip(options, offered, strict=True):
        values = (*also, *_values(option, guild, person))
        yield from ({**required, option["name"]: value} for value in values)


def _values(option: Json, guild: GuildSpec, person: int) -> Iterator[Any]:
    if option.get("choices"):
        yield from (each["value"] for each in option["choices"])
        return
    match option["type"]:
        case OptionType.STRING:
            most = option.get("max_length", 6_000)
            yield from (text.ljust(option.get("min_length", 0), "x")[:most] for text in (*HOSTILE, HOSTILE[0] * 200))
        case OptionType.INTEGER | OptionType.NUMBER:
            yield from (option.get("min_value", 0), option.get("max_value", 2**31))
        case OptionType.BOOLEAN:
            yield from (False, True)
        case OptionType.USER | OptionType.MENTIONABLE:
            yield str(person)
        case OptionType.CHANNEL:
            yield from (str(each.id) for each in guild.channels[:5])
        case OptionType.ROLE:
            yield str(guild.roles[0].id)


def _picks(menu: Json, guild: GuildSpec, person: int) -> Iterator[list[str]]:
    """Yield what somebody picks in a menu: each option alone, and as many as it takes."""
    others = {ROLE_MENU: [guild.roles[0].id], CHANNEL_MENU: [each.id for each in guild.voice_channels]}
    there = [each["value"] for each in menu.get("options", ())] or list(map(str, others.get(menu["type"], [person])))
    least, most = menu.get("min_values", 1), menu.get("max_values", 1)
    yield from ([each] for each in there if least <= 1 <= most)
    if most > 1 or menu["type"] != STRING_MENU:
        yield there[: max(least, most)]


async def remember_evening(place: Path, guild: GuildSpec) -> None:
    """Store an evening in which people with hostile names have said hostile things, and what the server has chosen."""
    clock = FakeClock(SystemClock().now() - 3_600.0)
    opened = ServerSettings(posts_transcripts=True, opens_history=True)
    async with Evening(place, clock=clock, channel=guild.voice_channels[0].id, guild=guild.id) as evening:
        await SqlServerSettings(evening.database, clock).put(guild.id, opened, by=None)
        here = [Presence(str(each.id), clock.now(), joined=True) for each in guild.people[:5]]
        await AttendanceStore(evening.database).add(evening.session_id, here)
        for number, said in enumerate(HOSTILE * 8):
            clock.advance(20.0)
            part = TurnPart(str(guild.people[number % 5].id), guild.people[number % 5].name, said * (number + 1))
            await evening.timeline.append(TurnKind.SPEECH, (part,), started_at=clock.now() - 9.0, ended_at=clock.now())


async def crawl(folder: Path, settings: Mapping[str, Any], *, people: int, channels: int, deepest: int) -> Json:
    """Crawl in a voice channel, with 99 people in it as far as there are so many, and return the figures.

    `settings`: of the bot. Raises AssertionError with what was found.
    """
    guild = hostile_guild(people=people, channels=channels)
    await remember_evening(folder / "roomtone.db", guild)
    async with AsyncExitStack() as stack:
        # Each person uses everything at once.
        stack.enter_context(pytest.MonkeyPatch.context()).setattr(Cooldowns, "use", lambda *_, **__: 0)
        logs = stack.enter_context(capture_logs())
        local = await stack.enter_async_context(LocalDiscord(guild=guild))
        voice, everybody = guild.voice_channels[0].id, guild.people
        for each in everybody[:98]:
            await local.join(each.id, channel_id=voice)
        marks: list[float] = []

        def mark() -> None:
            marks.append(time.monotonic())

        chosen = {"storage.data_dir": folder, **settings}
        bot = await stack.enter_async_context(bot_at(chosen, bot_address(local), ignore_event, mark))
        mark()
        found = Crawl(local, deepest)
        room = bot.client.find_channel(guild.id, voice)
        assert room is not None
        await bot.rooms.join(room)
        mark()
        loaded, connected, joined = marks
        for who, where in ((1, voice), (0, guild.text_channel.id)):
            await found.everything(everybody[who].id, where)
        figures: Json = {
            "people": len(everybody),
            "channels": len(guild.channels),
            "connected_s": round(connected - loaded, 2),
            "joined_s": round(joined - connected, 2),
            "cached_members": len(bot.client.guilds[0].members),
            "used": dict(found.used),
            "refused": found.refused,
        }
        wrong = [*found.wrong, *(line["event"] for line in logs if line["log_level"] in ("error", "critical"))]
        assert not wrong, f"{figures}: {wrong}"
        return figures


async def memory_mb(folder: Path, settings: Mapping[str, Any], guild: GuildSpec) -> float:
    """Return what a bot's process holds in a voice channel of this server, with 98 of its people."""
    async with LocalDiscord(guild=guild) as local, child_process("the bot", "tests.endurance.live_bot") as bot:
        for each in guild.people[:98]:
            await local.join(each.id)
        chosen = {"storage.data_dir": str(folder), **settings}
        await bot.ask("start", timeout_s=START_TIMEOUT_S, settings=chosen, discord=bot_address(local))
        await asyncio.sleep(SETTLES_S)
        return float((await bot.ask("sample"))["sample"]["rss_mb"])


async def crawl_a_large_server(folder: Path) -> Json:
    """Crawl with the whole bot on a server of 100,000 people, and tell by how much its memory is above that of a bot
    alone on a server.
    """
    async with LocalChatServer(ChatBehaviour(answer=lambda _: HOSTILE[0])) as model:
        settings = {
            "llm.base_url": model.base_url,
            "llm.model": MODEL,
            "tuning.summariser": "extractive",
            "web.port": 0,
        }
        alone, crowded = [
            await memory_mb(folder / str(people), settings, hostile_guild(people=people, channels=channels))
            for people, channels in ((1, 10), (100_000, 500))
        ]
        figures = await crawl(folder, settings, people=100_000, channels=500, deepest=DEEPEST)
        return figures | {"memory_alone_mb": alone, "memory_mb": crowded}
