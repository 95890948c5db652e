"""`roomtone run`: runs the bot on Discord, or the rehearsal if there is no token."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from bot.cli.environment import TRIAL_FOLDER, logging_from_settings
from bot.cli.failures import defects_logged
from bot.cli.output import dashboard_line, say
from bot.cli.signals import stop_on_signals, unless_stopped
from bot.errors import SetupError
from bot.shards import AUTO, ONLY_SHARD, WAITS, Shards, Succession, parse_shards, ranges
from config.load import load, option
from config.location import SHARDS_VARIABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.llm.fallback import FallbackModel
    from bot.llm.settings import LlmSettings
    from config.schema import Settings


TO_RUN_ON_DISCORD = "To run on Discord, take a bot's token as README.md says, and give it to `roomtone setup`."
WITHOUT_DISCORD = (
    f"DISCORD_TOKEN is not set, so the bot cannot join Discord: playing the rehearsal instead. {TO_RUN_ON_DISCORD}"
)

# The service manager kills what has not ended after 60 s (compose.yaml, deploy/roomtone.service). The rooms take 42 s
# at most, the connection to Discord 10.
STOP_WITHIN_S = 55.0
# A large bot is in thousands of servers.
MOST_NAMED = 10


def command(
    shards: Annotated[
        str | None,
        typer.Option(
            metavar="FIRST-LAST/TOTAL",
            help="Serve only these shards of the bot, for example 0-3/16; other processes on the same PostgreSQL "
            "database serve the others. auto: all that Discord recommends, in this process. Default: "
            "ROOMTONE_SHARDS, else one shard for everything.",
        ),
    ] = None,
    kept: Annotated[int | None, typer.Option(hidden=True)] = None,
    follows: Annotated[bool, typer.Option(hidden=True)] = False,
) -> None:
    """Run the bot on Discord until Ctrl-C. Without DISCORD_TOKEN, play the rehearsal on this machine, and keep it.

    Ctrl-C and SIGTERM end all sessions properly. After a crash, the bot resumes them.
    """
    from bot.discord.endpoint import require_token, token_of

    settings = load()
    if not token_of(settings.discord):
        _rehearse(settings, [] if shards is None else ["--shards"])
    # Before the speech models are loaded, which takes a while.
    require_token(settings.discord)
    choice = wanted_shards(shards)
    if kept is not None and choice is not None:
        settings = kept_settings(settings, choice, kept)
    succession = Succession.REFUSES
    if kept is not None:
        succession = Succession.FOLLOWS if follows else Succession.TAKES_OVER
    asyncio.run(_run(settings, choice, succession))


def _rehearse(settings: Settings, on_discord_only: list[str]) -> NoReturn:
    """Play the rehearsal, keep it, and exit. Raises `SetupError` if options were given that only a bot on Discord
    has.
    """
    from bot.cli.rehearse import RehearsalOptions, rehearse

    if on_discord_only:
        raise SetupError(
            f"{on_discord_only[0]} is for a bot on Discord, and DISCORD_TOKEN is not set. {TO_RUN_ON_DISCORD}"
        )
    say(WITHOUT_DISCORD)
    raise typer.Exit(0 if rehearse(RehearsalOptions(keep=settings.storage.data_dir / TRIAL_FOLDER)) else 1)


def named_servers(names: Sequence[str]) -> str:
    """Return in which servers the bot is, within a sentence."""
    more = len(names) - MOST_NAMED
    rest = [f"{more:,} more"] if more > 0 else []
    return ", ".join([*names[:MOST_NAMED], *rest]) or "no server yet"


def next_step(application_id: int | None, *, is_in_a_server: bool) -> str:
    """Return what whoever started the bot does now."""
    from bot.discord.admission import invite_url

    if is_in_a_server or application_id is None:
        return "Go into a voice channel and type /join."
    link = invite_url(application_id)
    return f"Open this link to add it to your server, then go into a voice channel and type /join:\n{link}"


# The bot runs meanwhile, and its first lines wait.
PROBE_S = 5.0


async def who_answers(llm: LlmSettings, model: FallbackModel | None) -> str:
    """Ask the language model's endpoint once, and return what answers people. A failure is one of the bot's faults."""
    from bot.cli.doctor.services import check_listed, unanswered
    from bot.llm.factory import list_served_models
    from bot.llm.port import ChatModelError

    if model is None:
        return "Answers: quotes only, because there is no language model. docs/guide.md says how to add one."
    try:
        found = check_listed(llm, await list_served_models(llm, timeout_s=PROBE_S))
    except ChatModelError as error:
        model.is_absent(error)
        found = unanswered(error)
    return f"Answers: {found.detail}. {found.remedy}".strip()


AS_ROOT = (
    "The bot runs as root, so a mistake in a library or tool could reach everything on this machine. Run it as a user "
    "of its own that owns the data folder; the Docker image does."
)


def kept_settings(settings: Settings, shards: Shards, number: int) -> Settings:
    """Return the settings of a process that Ray keeps (`bot.cluster.shard_keeper`): others of them may come to the same
    machine, so its data folder and the port of its pages are its own. What belongs to the machine, it finds where all
    of them do. `number`: of its group.
    """
    from bot.settings import KeptStorageSettings

    storage = settings.storage
    folder = storage.data_dir / f"shards-{ranges(shards.ids).replace(', ', '+')}"
    port = settings.web.port + number if settings.web.port else 0
    return settings.model_copy(
        update={
            "storage": KeptStorageSettings(
                data_dir=folder,
                machine_folder=storage.data_dir,
                database_url=storage.database_url,
                log_mb=storage.log_mb,
            ),
            "web": settings.web.model_copy(update={"port": port}),
        }
    )


def wanted_shards(given: str | None) -> Shards | None:
    """Return the operator's choice; None: Discord's. Raises `SetupError`."""

    text = given or option(SHARDS_VARIABLE)
    if not text:
        return ONLY_SHARD
    try:
        return None if text.strip().lower() == AUTO else parse_shards(text)
    except ValueError as error:
        raise SetupError(str(error)) from error


async def _run(settings: Settings, choice: Shards | None, succession: Succession) -> None:
    """Run the bot. One that Ray keeps does not refuse to start, and ends so that another one goes on with its rooms."""
    import structlog

    from bot.app import running_bot
    from bot.background_task import owned_task
    from bot.clock import SystemClock
    from bot.discord.connection import chosen_shards
    from bot.events import ignore_event
    from bot.local_zone import LocalZone
    from bot.monitoring.watchdog import watch
    from bot.wiring.settings import BotSettings

    parts = BotSettings.from_schema(settings)
    stop = asyncio.Event()
    dead: BaseException | None = None
    with logging_from_settings(settings) as logs, defects_logged(), stop_on_signals(stop, within_s=STOP_WITHIN_S):
        if os.geteuid() == 0:
            structlog.get_logger().warning("started_as_root", remedy=AS_ROOT)
        say("Starting: loading the recogniser and the voice, then connecting to Discord …")
        shards = await chosen_shards(settings.discord, choice)
        running_parts = running_bot(
            parts,
            observe=ignore_event,
            zone=LocalZone(),
            shards=shards,
            succession=succession,
            on_loaded=lambda: say(WAITS) if succession is Succession.FOLLOWS else None,
        )
        async with unless_stopped(stop, running_parts) as running:
            if running is None:
                say("Stopped before everything was loaded.")
                return
            guilds = [guild.name for guild in running.client.guilds]
            say(f"{running.client.user} is on Discord, in {named_servers(guilds)}. Log: {logs.path}")
            if running.device is not None:
                say(running.device)
            if shards.is_divided:
                say(f"This process serves shards {shards}.")
            if not shards.is_divided or guilds:
                say(next_step(running.client.application_id, is_in_a_server=bool(guilds)))
            say(await who_answers(settings.llm, running.model))
            if running.dashboard_link is not None:
                say(dashboard_line(running.dashboard_link, settings.storage.data_dir))
            async with owned_task(watch(running.health, SystemClock()), name="watchdog") as watching:
                watching.add_done_callback(_stop_if_dead)
                await running.run_until(stop)
                if watching.done():
                    dead = watching.exception()
                # The next process goes on with the sessions.
                if dead is not None or succession is not Succession.REFUSES:
                    say("Leaving the rooms at pauses in speech …")
                    await running.rooms.hand_over()
            say("Stopping: storing the last turns and ending all sessions …")
    if dead is not None:
        raise dead


def _stop_if_dead(watching: asyncio.Task[None]) -> None:
    """Stop as at a signal, with its time limit."""
    if not watching.cancelled():
        signal.raise_signal(signal.SIGTERM)
