"""Connects the client to Discord while a block lasts, and says in a sentence why that failed. Asks Discord before that
whose token it is, and how many shards to connect. Tells the client what the operator decides meanwhile.
"""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import aiohttp
import discord
import structlog

from bot.background_task import owned_task
from bot.channel.markdown import COMMAND_LINKS
from bot.discord.client import RoomtoneClient, ShardedRoomtoneClient
from bot.discord.endpoint import COPY_AGAIN, connector, point_at, require_token
from bot.discord.permissions import lacking
from bot.discord.posting import REQUEST_ERRORS
from bot.errors import SetupError, seems_offline
from bot.shards import MOST_SHARDS, ONLY_SHARD, Shards, ranges, whole
from compaction.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence

    from bot.clock import Clock
    from bot.discord.client import AddCommands
    from bot.room.rooms import Rooms
    from bot.server_settings import ServerSettingsBook
    from bot.settings import DiscordSettings
    from bot.store.servers import AdmissionStore
    from bot.texts.text import Text
    from voice.transport.paced_sender import PacedSender

log = structlog.get_logger()

# How long discord.py may take to close before its task is cancelled.
CLOSE_TIMEOUT_S = 10.0
# Seconds to wait for Discord's READY at start. Includes discord.py's own reconnects.
CONNECT_TIMEOUT_S = 30.0
# Discord lets one shard in every five seconds, and discord.py waits for the servers of each.
SHARD_TIMEOUT_S = 8.0
# How long Discord may take to say whose token it is, with discord.py's own repetitions.
ASK_TIMEOUT_S = 10.0
# How soon the bot notices that the operator admits or refuses a server.
LOOK_EVERY_S = 10.0
# Discord tells no more of them at once.
_MOST_SERVERS = 200
# OpenSSL's X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED. A machine without a battery for its clock
# starts years back.
_BY_THE_CLOCK = frozenset({9, 10})


@asynccontextmanager
async def connected(
    settings: DiscordSettings,
    rooms: Rooms,
    more_commands: Sequence[AddCommands] = (),
    *,
    paced_sender: PacedSender | None = None,
    servers: ServerSettingsBook | None = None,
    shards: Shards = ONLY_SHARD,
    decided: Mapping[int, bool] | None = None,
) -> AsyncIterator[RoomtoneClient]:
    """Connect to Discord and yield the client once its guilds are known.

    `more_commands`: functions that add further commands to the command tree. `paced_sender` sends the bot's audio.
    `servers` keeps what each server has chosen. `shards`: the servers that it is connected for. `decided`: see
    `GuildAdmission`.

    Raises `SetupError` with a plain sentence when Discord refuses the bot or can't be reached. discord.py repairs later
    losses itself. If it gives up, `client.running` ends; the body must watch it, and `translated` gives the reason.
    *Ownership*: the client's task ends here.
    """
    token = require_token(settings)
    point_at(settings)
    kind = ShardedRoomtoneClient if shards.is_divided else RoomtoneClient
    client = kind(
        settings,
        rooms,
        more_commands,
        paced_sender=paced_sender,
        servers=servers,
        shards=shards,
        decided=decided,
    )
    async with owned_task(client.start(token), name="discord-client") as running:
        client.running = running
        try:
            about = f", shards {ranges(shards.ids)} of {shards.total}," if shards.is_divided else ""
            await until_ready(
                client.wait_until_ready(), running, CONNECT_TIMEOUT_S + SHARD_TIMEOUT_S * (len(shards.ids) - 1), about
            )
            yield client
        finally:
            COMMAND_LINKS.know({})
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT_S):
                    await client.close()
            except TimeoutError:
                log.warning("discord_close_timed_out", timeout_s=CLOSE_TIMEOUT_S)


class KnownBot(NamedTuple):
    """A bot as Discord knows it. `lacks`: for each server that gives it less than it asks for, what that is."""

    name: str
    application_id: int | None
    lacks: tuple[Text, ...] = ()


async def known_bot(settings: DiscordSettings) -> KnownBot:
    """Return the bot whose token this is. It stays offline, and one that runs notices nothing.

    Raises `SetupError` with a plain sentence when Discord refuses the token or can't be reached.
    """
    async with _asking(settings) as client:
        servers = await client.http.get_guilds(_MOST_SERVERS, with_counts=False)
        found = (lacking(discord.Permissions(int(each["permissions"])), each["name"]) for each in servers)
        return KnownBot(str(client.user), client.application_id, tuple(each for each in found if each is not None))


async def chosen_shards(settings: DiscordSettings, choice: Shards | None) -> Shards:
    """Return the shards to serve. `choice`: the operator's; None: all of as many as Discord recommends.

    A bot with one shard asks nothing. Raises `SetupError` if Discord cannot be asked, or lets no more shards connect.
    """
    if choice is not None and not choice.is_divided:
        return choice
    async with _asking(settings) as client:
        advice = await client.http.request(discord.http.Route("GET", "/gateway/bot"))
    recommended, limit = advice["shards"], advice["session_start_limit"]
    if not 1 <= recommended <= MOST_SHARDS:
        raise SetupError(
            "Discord did not say how many shards this bot needs. Start it again, or name them (--shards 0/1)."
        )
    shards = choice or whole(recommended)
    if limit["remaining"] < len(shards.ids):
        raise SetupError(
            f"Discord has {limit['remaining']} of {limit['total']} connections left for this bot, and this process "
            f"needs {len(shards.ids)}, one for each shard. Start it again in "
            f"{max(1, round(limit['reset_after'] / 60_000))} min and find out what connected so often."
        )
    if shards.total < recommended:
        log.warning(
            "fewer_shards_than_recommended",
            shard_count=shards.total,
            recommended_count=recommended,
            remedy="Give all processes a higher total.",
        )
    return shards


async def server_names(settings: DiscordSettings) -> Mapping[int, str]:
    """Return the names of the servers that the bot is on, by their ids. It stays offline. Raises `SetupError`."""
    async with _asking(settings) as client:
        return {guild.id: guild.name async for guild in client.fetch_guilds(limit=None)}


@asynccontextmanager
async def _asking(settings: DiscordSettings) -> AsyncIterator[discord.Client]:
    """Log in without going online, to ask something. Raises `SetupError` with a plain sentence."""
    token = require_token(settings)
    point_at(settings)
    try:
        async with (
            asyncio.timeout(ASK_TIMEOUT_S),
            discord.Client(intents=discord.Intents(guilds=True), connector=connector(settings)) as client,
        ):
            await client.login(token)
            yield client
    except REQUEST_ERRORS as error:
        raise translated(error) from error


async def until_ready(
    ready: Coroutine[object, object, object],
    running: asyncio.Task[None],
    timeout_s: float = CONNECT_TIMEOUT_S,
    about: str = "",
) -> None:
    """Wait for `ready` of a client whose task is `running`. `about`: which shards. Raises `SetupError` with a plain
    sentence if it ends before, or takes too long.
    """
    async with owned_task(ready, name="discord-ready") as waiting:
        done, _ = await asyncio.wait({waiting, running}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    if running in done:
        raise translated(running.exception())
    if not done:
        raise SetupError(
            f"Discord did not let the bot{about} in within {timeout_s:g} s. Check the network and status.discord.com."
        )


def translated(error: BaseException | None) -> SetupError:
    """Return the reason why discord.py gave up, as a plain sentence with the remedy. It never contains the token."""
    match error:
        # 4004: "Authentication failed". It comes when the token is reset while the bot runs.
        case discord.LoginFailure() | discord.ConnectionClosed(code=4004):
            sentence = f"Discord refused the bot's token. {COPY_AGAIN}"
        case discord.PrivilegedIntentsRequired():
            sentence = (
                "Discord refused the bot's intents, for Message Content was taken from it in the developer portal. "
                "Start it again."
            )
        case discord.ConnectionClosed(code=4010 | 4011):
            # "Invalid shard" and "sharding required" (Discord's reference, "Gateway close event codes").
            sentence = (
                "Discord refused the bot's shards: there are too few for the servers that it is on. Start all "
                "processes with a higher total (`roomtone run --shards`), or with auto."
            )
        case discord.ConnectionClosed(code=4012 | 4013):
            # "Invalid API version" and "invalid intents".
            sentence = (
                f"Discord does not take this version of its gateway or these intents ({error.code}). Update Roomtone."
            )
        case discord.HTTPException(status=429):
            sentence = (
                "Discord refuses requests of this machine's address for now (429), because too many wrong ones came "
                "from there. Wait an hour before the next start."
            )
        case discord.HTTPException():
            sentence = f"Discord answered with an error ({error.status}). Try again; see status.discord.com."
        case aiohttp.ClientConnectorCertificateError(
            certificate_error=ssl.SSLCertVerificationError(verify_code=code)
        ) if code in _BY_THE_CLOCK:
            sentence = (
                "By this machine's clock Discord's certificate is not valid now. Check the machine's date and time "
                "(`timedatectl`), then its certificates."
            )
        case aiohttp.ClientConnectorCertificateError() | aiohttp.ClientSSLError():
            sentence = "Discord's certificate is not trusted. Check the machine's certificates (or SSL_CERT_FILE)."
        case TimeoutError():
            # Also where discord.py asks again and again, because Discord answers with errors.
            sentence = "Discord did not answer in time. Check the network; see status.discord.com."
        case aiohttp.ClientError() | OSError() if seems_offline(error):
            sentence = "This machine is offline: Discord is not found from here. Connect it to the network."
        case aiohttp.ClientError() | OSError():
            sentence = "Discord cannot be reached. Check the network (and discord.api_base, if it is set)."
        case None:
            sentence = "Discord closed the connection. Start again."
        case _:
            sentence = f"Discord's client failed ({type(error).__name__}). Start again; `roomtone tail` shows more."
    failure = SetupError(sentence)
    failure.__cause__ = error
    return failure


async def follow_decisions(store: AdmissionStore, client: RoomtoneClient, clock: Clock) -> None:
    """Tell `client` every few seconds what the operator has decided, also by another process, until cancelled. While
    the database is away, what was decided before holds.
    """
    while True:
        await clock.sleep(LOOK_EVERY_S)
        try:
            decided = await store.all()
        except StoreError as error:
            log.warning("admissions_not_read", problem=error)
        else:
            await client.decide(decided)
