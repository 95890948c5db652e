"""What rooms in processes of their own take, and how long a machine takes that hands all of its rooms over.

The bot and the machine are real processes with all their models, in the local Discord on this machine's loopback, on a
schema of its own in the operator's PostgreSQL. The pool of recognisers is a local server that answers at once with the
same words, so that the processor time is that of rooms alone.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

import psycopg
from psycopg import sql

from benchmarks.cluster.nodes import Nodes
from benchmarks.cluster.processes import owner_of_udp_port, use_of
from benchmarks.errors import BenchmarkError
from rehearsal.discord.guild.spec import ROOMTONE_BOT_ID, Channel, GuildSpec, Member
from rehearsal.discord.server import LocalDiscord
from rehearsal.errors import PersonError
from rehearsal.people.clip import Clip
from rehearsal.runner.scripted_member import scripted_member
from rehearsal.servers.transcription import LocalTranscriptionServer, Transcription, TranscriptionBehaviour

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence

    from benchmarks.cluster.nodes import Node
    from benchmarks.report import Json
    from rehearsal.people.person import ScriptedPerson
    from rehearsal.servers.transcription import TranscriptionRequest

_PEOPLE = ((2001, "Ada"), (2002, "Ben"))
_MACHINE = "machine"
# A process is loaded ten seconds after the one before was taken, and loads for about as long.
_SETTLE_S = 30.0
_MEET_WITHIN_S = 60.0
_CALLS = 3
# After a machine has left: a room whose process ended at once goes on within seconds.
_TAKEN_OVER_WITHIN_S = 60.0
_LOOK_EVERY_S = 0.1
_GAP_S = 0.5
_WORDS = "we spoke about the garden and the long way home by the lake"


async def measure_rooms(
    database: str, folder: Path, models: Path, clips: Sequence[str], *, rooms: int, each: int, seconds: float
) -> Mapping[str, Json]:
    """Open as many rooms as given, half of them on another machine, and return what they take, and how long that
    machine takes to leave.

    `database`: the URL of a PostgreSQL. `folder`: an empty one for the nodes. `models`: their models' folder, absolute.
    `clips`: what people say. `each`: how many rooms share a process. `seconds`: of silence, and then of speech.

    Raises `BenchmarkError`, or psycopg's errors.
    """
    loaded = [await asyncio.to_thread(Clip.load, Path(clip)) for clip in clips]
    async with AsyncExitStack() as stack:
        url = await stack.enter_async_context(_own_schema(database))
        pool = await stack.enter_async_context(LocalTranscriptionServer(TranscriptionBehaviour(_hear)))
        discords = await _discords(stack, rooms)
        environment = {
            "ROOMTONE_DATABASE_URL": url,
            "ROOMTONE_MODELS__DIRECTORY": str(models),
            "ROOMTONE_PARTICIPATION__VOICE_MODE": "name",
            "ROOMTONE_COMPACTION__SUMMARISER": "extractive",
            "ROOMTONE_WEB__PORT": "0",
        }
        cluster = ("--cluster", pool.base_url.removeprefix("http://").removesuffix("/v1"))
        nodes = Nodes(
            discords[0], folder, environment, ("bot", _MACHINE), rooms_a_node=rooms, rooms_each=each, words=cluster
        )
        await stack.enter_async_context(nodes)
        people: list[list[ScriptedPerson]] = []
        for discord in discords:
            # Otherwise the rooms are where a process was loaded first, and not on both machines.
            await asyncio.sleep(_SETTLE_S)
            people.append(await _opened(stack, discord))
        await asyncio.sleep(_SETTLE_S)
        pids = {_room_process(nodes, discord) for discord in discords}
        found = await _costs(sorted(pids), people, loaded, seconds=seconds)
        machine = nodes.all[1]
        leaving = [discord for discord in discords if _room_process(nodes, discord) in machine.pids]
        return {
            "rooms": rooms,
            "rooms_each": each,
            "processes": len(pids),
            **found,
            "gateway_memory_mb": _gateway_mb(nodes.first),
            "rooms_that_left": len(leaving),
            **await _drained(nodes, machine, leaving),
        }


async def _costs(
    pids: Sequence[int], people: Sequence[Sequence[ScriptedPerson]], clips: Sequence[Clip], *, seconds: float
) -> dict[str, Json]:
    """Return memory of the rooms' processes, and their processor time in silence and for each second of speech."""
    before = _cpu_s(pids)
    await asyncio.sleep(seconds)
    silent_s = (_cpu_s(pids) - before) / seconds
    before, begun = _cpu_s(pids), time.monotonic()
    spoken = await asyncio.gather(*(_talk(each, clips, seconds) for each in people))
    passed_s, used_s = time.monotonic() - begun, _cpu_s(pids) - before
    used = use_of(pids)
    return {
        "memory_mb_a_process": round(statistics.median(each.resident_mb for each in used)),
        "own_memory_mb_a_process": round(statistics.median(each.own_mb for each in used)),
        "own_memory_mb_a_room": round(sum(each.own_mb for each in used) / len(people)),
        "cpu_s_a_silent_s": round(silent_s / len(people), 5),
        "cpu_s_a_speech_s": round(max(0.0, used_s - silent_s * passed_s) / sum(spoken), 5),
    }


async def _talk(people: Sequence[ScriptedPerson], clips: Sequence[Clip], seconds: float) -> float:
    """Let two people speak in turn, and return how many seconds of recordings they spoke."""
    begun, spoken, number = time.monotonic(), 0.0, 0
    while time.monotonic() - begun < seconds:
        clip = clips[number % len(clips)]
        await people[number % len(people)].say(clip)
        spoken += clip.duration_s
        number += 1
        await asyncio.sleep(_GAP_S)
    return spoken


async def _drained(nodes: Nodes, machine: Node, leaving: Sequence[LocalDiscord]) -> dict[str, Json]:
    begun, rooms = time.monotonic(), len(leaving)
    await nodes.drain(machine)
    # A machine that ends without handing its rooms over has ended soon.
    await taken_over(lambda: sum(_is_on(nodes.first, discord) for discord in leaving), rooms)
    seconds = time.monotonic() - begun
    return {"drain_s": round(seconds, 1), "drain_s_a_room": round(seconds / rooms, 1) if rooms else None}


async def taken_over(count: Callable[[], int], rooms: int, *, within_s: float = _TAKEN_OVER_WITHIN_S) -> None:
    """Wait until the bot has so many rooms of the machine that left. Raises `BenchmarkError`."""
    try:
        async with asyncio.timeout(within_s):
            while count() < rooms:  # noqa: ASYNC110 - /proc tells nobody of a change
                await asyncio.sleep(_LOOK_EVERY_S)
    except TimeoutError as error:
        raise BenchmarkError(
            f"The bot has {count()} of the {rooms} rooms of the machine that left. Run this on an idle machine."
        ) from error


async def _opened(stack: AsyncExitStack, discord: LocalDiscord) -> list[ScriptedPerson]:
    """Bring two people into a room, let one call the bot, and return them once they have met it."""
    people = [await stack.enter_async_context(scripted_member(discord, person)) for person, _ in _PEOPLE]
    for _ in range(_CALLS):
        await discord.invoke(_PEOPLE[0][0], "join")
        try:
            for person in people:
                await person.meet(ROOMTONE_BOT_ID, timeout_s=_MEET_WITHIN_S)
        except PersonError:
            # A busy machine may take longer to load a process than the bot waits.
            continue
        return people
    raise BenchmarkError(f"The bot did not come to {discord.guild.name}. Run this on an idle machine.")


async def _discords(stack: AsyncExitStack, count: int) -> list[LocalDiscord]:
    """Start a local Discord with so many servers."""
    found: list[LocalDiscord] = []
    for number in range(count):
        guild = GuildSpec(
            id=500 + number,
            name=f"Server {number}",
            voice_channels=(Channel(1_000 + number, "Evening"),),
            text_channel=Channel(2_000 + number, "chat"),
            people=tuple(Member(person, name, moderator=True) for person, name in _PEOPLE),
        )
        beside = found[0] if found else None
        found.append(await stack.enter_async_context(LocalDiscord(guild=guild, beside=beside)))
    return found


def _room_process(nodes: Nodes, discord: LocalDiscord) -> int:
    """Return the process that has the bot's voice connection of a server. Raises `BenchmarkError`."""
    leg = discord.media.leg_of(ROOMTONE_BOT_ID)
    pids = [pid for node in nodes.all for pid in node.pids]
    pid = None if leg is None or leg.address is None else owner_of_udp_port(leg.address[1], pids)
    if pid is None:
        raise BenchmarkError(f"The bot lost its connection to {discord.guild.name}. Run this on an idle machine.")
    return pid


def _is_on(node: Node, discord: LocalDiscord) -> bool:
    """Return whether a process of this node has the bot's voice connection of a server."""
    leg = discord.media.leg_of(ROOMTONE_BOT_ID)
    return leg is not None and leg.address is not None and owner_of_udp_port(leg.address[1], node.pids) is not None


def _gateway_mb(first: Node) -> int:
    return round(sum(each.own_mb for each in use_of(first.pids[:1])))


def _cpu_s(pids: Sequence[int]) -> float:
    return sum(each.cpu_s for each in use_of(pids))


async def _hear(request: TranscriptionRequest) -> Transcription:
    del request
    return Transcription(_WORDS)


@asynccontextmanager
async def _own_schema(database: str) -> AsyncIterator[str]:
    """Yield the URL of a new schema, which is dropped afterwards."""
    name = f"roomtone_bench_{secrets.token_hex(4)}"
    await asyncio.to_thread(_run, database, sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(name)))
    try:
        yield f"{database}{'&' if '?' in database else '?'}options={quote(f'-c search_path={name}', safe='')}"
    finally:
        await asyncio.to_thread(_run, database, sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(name)))


def _run(database: str, statement: sql.Composed) -> None:
    with psycopg.connect(database, autocommit=True, connect_timeout=10) as connection:
        connection.execute(statement)
