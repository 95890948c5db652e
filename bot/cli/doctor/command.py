"""`roomtone doctor`: checks whether Roomtone can run, and says what to do if not."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from bot.cli.doctor.finding import Finding, Status
from bot.cli.doctor.installation import INSTALL_AGAIN, check_opus, check_packages, check_python, check_rehearsal
from bot.cli.doctor.machine import check_ports, check_receive_buffer, check_user, check_web_port
from bot.cli.doctor.memory_search import check_embedder, check_memory_mode
from bot.cli.doctor.services import check_discord, check_language_model, check_mcp_server, check_screens
from bot.cli.doctor.speech_models import check_device, check_engine, check_recogniser, check_turns, check_voice
from bot.cli.doctor.storage import check_data_dir, check_database
from bot.cli.output import open_console
from bot.errors import SetupError
from bot.folder_lock import is_locked
from bot.private_files import runs_as_root
from config.errors import ConfigError
from config.load import load, load_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.mcp.settings import McpServerSettings
    from bot.settings import DiscordSettings
    from config.schema import Settings
    from voice.asr.settings import AsrSettings

_MARKS = {Status.OK: ("ok", "green"), Status.WARNING: ("note", "yellow"), Status.MISSING: ("missing", "bold red")}
_MARK_WIDTH, _NAME_WIDTH = 9, 16


def command(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as one JSON object.")] = False,
    live: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="CHANNEL_ID", help="Join this voice channel for a while and report what Discord sends there."
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=1, max=600, help="How long to stay in the channel of --live.")] = 30.0,
    file: Annotated[Path, typer.Option(help="Where --live writes its record.", metavar="FILE", dir_okay=False)] = Path(
        "roomtone-live.json"
    ),
    approve: Annotated[
        str | None, typer.Option(metavar="SERVER", help="Show the tools of this MCP server, and ask to approve them.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Approve without asking.")] = False,
) -> None:
    """Check whether Roomtone can run here. Exit status 0 if it can, 1 if something is missing.

    With --live it joins a real voice channel instead, tells the people there, and notes what the packets look like, but
    not what is said. The file is for a bug report, and `headers` of a scenario replays it.
    """
    if approve is not None:
        from bot.cli.doctor.approval import approve_tools

        approve_tools(load(), approve, yes=yes)
        return
    findings = run_checks() if live is None else _run_live(live, seconds, file, quiet=as_json)
    can_run = all(finding.status is not Status.MISSING for finding in findings)
    if as_json:
        typer.echo(json.dumps({"can_run": can_run, "findings": [asdict(each) for each in findings]}, indent=2))
    elif live is None:
        _show(findings, _verdict(findings))
    else:
        _show(findings, Text(f"The record is in {file}."))
    if not can_run:
        raise typer.Exit(1)


def _run_live(channel_id: int, seconds: float, file: Path, *, quiet: bool) -> list[Finding]:
    """Join a channel, write the record, and return what it says. Raises the bot's own errors."""
    from bot.cli.doctor.live_report import live_findings
    from bot.cli.environment import require_folder
    from bot.cli.output import say
    from bot.cli.signals import until_stopped
    from bot.discord.live_probe import probe_channel

    settings = load()
    # Before people are told of the test, and before it takes its time.
    require_folder("--file", file)
    tell = (lambda _: None) if quiet else say
    record = asyncio.run(until_stopped(probe_channel(settings.discord, channel_id, seconds=seconds, say=tell)))
    file.write_text(json.dumps(record) + "\n", "utf-8")
    return live_findings(record)


def run_checks() -> list[Finding]:
    """Run all checks with the configured settings. If those have mistakes, run them with the defaults, in the folders
    that are set.
    """
    notices: list[str] = []
    readable = True
    try:
        settings = load(notify=notices.append)
        findings = [_noticed(notice) for notice in notices] or [Finding("settings", Status.OK, "no mistakes in them")]
    except ConfigError as error:
        settings, readable = load_places(), False
        findings = [
            Finding(
                "settings",
                Status.MISSING,
                problem,
                "Correct it; but for folders and database, the checks below use the defaults.",
            )
            for problem in error.problems
        ]
    accounts, tools = asyncio.run(_check_services(settings, readable=readable))
    return [
        check_python(),
        check_packages(),
        *findings,
        *_check_hearing(settings),
        check_voice(settings.speaking, settings.models.directory, installed=find_spec("piper") is not None),
        check_embedder(settings.models.directory, settings.recall),
        check_memory_mode(settings.compaction.mode, settings.recall),
        *accounts,
        *tools,
        check_screens(settings.screen, settings.web, installed=find_spec("rapidocr") is not None),
        check_data_dir(settings.storage),
        check_user(root=runs_as_root()),
        check_database(settings.storage.database),
        check_ports(),
        asyncio.run(check_web_port(settings.web, bot_runs=is_locked(settings.storage.data_dir))),
        check_receive_buffer(),
        check_rehearsal(),
    ]


async def _check_services(settings: Settings, *, readable: bool) -> tuple[list[Finding], list[Finding]]:
    """Ask all services at the same time, because one that hangs takes long. Return what was found of the accounts, at
    Discord and of language models, and of the tool servers. `readable`: the settings have no mistakes.
    """
    return await asyncio.gather(_check_accounts(settings, readable=readable), _check_mcp(settings))


async def _check_accounts(settings: Settings, *, readable: bool) -> list[Finding]:
    if not readable:
        return [_unchecked(name) for name in ("discord", "language model")]
    on_discord, models = await asyncio.gather(
        check_discord(settings.discord, _name_of_token), _check_language_models(settings)
    )
    return [on_discord, *models]


async def _name_of_token(settings: DiscordSettings) -> str:
    # Imported here because it is slow, and because another discord.py than the pinned one may not fit.
    try:
        from bot.discord.connection import name_of_token
    except ImportError as error:
        raise SetupError(f"Discord's client cannot be loaded. {INSTALL_AGAIN}") from error
    return await name_of_token(settings)


def _unchecked(name: str) -> Finding:
    """Return what stands for a check that the defaults would answer wrongly: they have no token and no key."""
    return Finding(
        name,
        Status.WARNING,
        "not checked, because the settings have mistakes",
        "Correct the settings, and run `roomtone doctor` again.",
    )


def _noticed(notice: str) -> Finding:
    detail, _, remedy = notice.partition(". ")
    return Finding("settings", Status.WARNING, detail, remedy)


def _check_hearing(settings: Settings) -> list[Finding]:
    from voice.transport.opus import version

    return [
        check_opus(version),
        check_recogniser(settings.asr),
        check_turns(settings.models, settings.asr, settings.listening),
        _check_device(settings.asr),
    ]


def _check_device(settings: AsrSettings) -> Finding:
    # Imported here because it is slow.
    try:
        from voice.asr.placement import choose_placement, cuda_device_count
    except ImportError as error:
        return check_engine(error)
    devices = cuda_device_count()
    return check_device(settings, cuda_devices=devices, place=lambda: choose_placement(settings, cuda_devices=devices))


async def _check_language_models(settings: Settings) -> list[Finding]:
    from bot.llm.factory import list_served_models

    asked = (settings.llm, *settings.llm.fallbacks())
    first, *behind = await asyncio.gather(*(check_language_model(each, list_served_models) for each in asked))
    # The bot can run without fallback models.
    softened = [
        replace(each, name="fallback model", status=Status.WARNING if each.status is Status.MISSING else each.status)
        for each in behind
    ]
    return [first, *softened]


async def _check_mcp(settings: Settings) -> list[Finding]:
    if not settings.mcp.servers:
        return []
    from bot.mcp.approvals import Approvals
    from bot.mcp.servers import list_server_tools

    approvals = Approvals(settings.storage.data_dir)

    async def check(server: McpServerSettings) -> Finding:
        listing = partial(list_server_tools, approvals=approvals)
        return await check_mcp_server(server, listing, approved=approvals.of(server.name))

    return await asyncio.gather(*(check(server) for server in settings.mcp.servers))


def _show(findings: Sequence[Finding], verdict: Text) -> None:
    console = open_console()
    told: set[str] = set()
    for finding in findings:
        mark, style = _MARKS[finding.status]
        grid = Table.grid()
        grid.add_column(width=_MARK_WIDTH)
        grid.add_column(width=_NAME_WIDTH)
        grid.add_column()
        grid.add_row(Text(mark, style), Text(finding.name, "bold"), Text(finding.detail))
        console.print(grid)
        # Several findings may have the same remedy.
        if finding.remedy and finding.remedy not in told:
            told.add(finding.remedy)
            remedy = Table.grid()
            remedy.add_row(" " * _MARK_WIDTH, Text("-> ", style), Text(finding.remedy))
            console.print(remedy)
    console.print()
    console.print(verdict)


def _verdict(findings: Sequence[Finding]) -> Text:
    missing = sum(finding.status is Status.MISSING for finding in findings)
    notes = sum(finding.status is Status.WARNING for finding in findings)
    if missing:
        return Text(f"Roomtone cannot run yet: {missing} to fix.", "bold red")
    return Text("Roomtone can run here" + (f"; {notes} to note." if notes else "."), "bold green")
