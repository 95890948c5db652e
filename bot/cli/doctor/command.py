"""`roomtone doctor`: checks whether Roomtone can run, and says what to do if not."""

from __future__ import annotations

import asyncio
from dataclasses import asdict, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table
from rich.text import Text

from bot.cli.doctor.finding import Finding, Status
from bot.cli.doctor.machine import (
    check_data_dir,
    check_database,
    check_device,
    check_embedder,
    check_env_file,
    check_limits,
    check_memory_mode,
    check_opus,
    check_recogniser,
    check_turns,
    check_voice,
    check_web_port,
)
from bot.cli.doctor.services import (
    approve_tools,
    check_discord,
    check_language_model,
    check_mcp_server,
    check_running_bot,
    check_screens,
)
from bot.cli.output import open_console, print_json, say
from bot.folder_lock import is_locked
from bot.mcp.tools import Approvals
from config import ConfigError
from config.load import env_file, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from config.schema import Settings

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

    With --live it tries a call in a real voice channel instead, step by step. It tells the people there, plays a tone,
    asks who hears it to press a button, and counts packets, but notes nothing that is said. The file is for an issue.
    """
    if approve is not None:
        approve_tools(load(), approve, yes=yes)
        return
    findings = run_checks() if live is None else _run_live(live, seconds, file, quiet=as_json)
    can_run = all(finding.status is not Status.MISSING for finding in findings)
    if as_json:
        print_json({"can_run": can_run, "findings": [asdict(each) for each in findings]})
    elif live is None:
        _show(findings, _verdict(findings))
    else:
        _show(findings, Text(f"The record is in {file}."))
    if not can_run:
        raise typer.Exit(1)


def _run_live(channel_id: int, seconds: float, file: Path, *, quiet: bool) -> list[Finding]:
    """Join a channel, write the record, and return what it says. Raises the bot's own errors."""
    from bot.cli.doctor.live_report import live_findings
    from bot.cli.environment import require_folder, write_json
    from bot.cli.signals import until_stopped
    from bot.discord.live_probe import probe_channel

    settings = load()
    # Before people are told of the test, and before it takes its time.
    require_folder("--file", file)
    show_step = (lambda _: None) if quiet else say
    record = asyncio.run(until_stopped(probe_channel(settings.discord, channel_id, seconds=seconds, say=show_step)))
    write_json(file, record.as_json(), example="--file roomtone-live.json")
    return live_findings(record)


def run_checks() -> list[Finding]:
    """Run all checks with the configured settings. If those have mistakes, only these are found."""
    notices: list[str] = []
    try:
        settings = load(notify=notices.append)
    except ConfigError as error:
        remedy = "Correct it, and run `roomtone doctor` again."
        return [Finding("settings", Status.MISSING, problem, remedy) for problem in error.problems]
    # Of a variable that nobody reads: the one that was meant is missing.
    unread = [Finding.told("settings", Status.MISSING, notice) for notice in notices]
    return (unread or [Finding("settings", Status.OK, "no mistakes in them")]) + asyncio.run(_check_all(settings))


async def _check_all(settings: Settings) -> list[Finding]:
    """Return all findings. The services are asked at the same time, because one that hangs takes long."""
    # Imported here because it is slow.
    from voice.asr.placement import cuda_device_count

    asr, folder, cuda = settings.asr, settings.models.directory, cuda_device_count()
    bot_runs = is_locked(settings.storage.data_dir)
    has_ocr = find_spec("rapidocr") is not None
    approvals = Approvals(settings.storage.data_dir)
    on_discord, models, tools, voice = await asyncio.gather(
        check_discord(settings.discord),
        _check_language_models(settings),
        asyncio.gather(*(check_mcp_server(each, approvals) for each in settings.mcp.servers)),
        check_voice(settings.speaking, folder),
    )
    local: dict[str, Callable[[], Finding]] = {
        "libopus": check_opus,
        "recogniser": lambda: check_recogniser(settings.models, asr),
        "listening": lambda: check_turns(settings.models),
        "cuda": lambda: check_device(cuda),
        "voice": lambda: voice,
        "memory search": lambda: check_embedder(folder, settings.recall),
        "memory mode": lambda: check_memory_mode(settings.compaction, settings.recall),
        "limits": lambda: check_limits(settings.participation),
        "keys": lambda: check_env_file(env_file()),
        "data": lambda: check_data_dir(settings.storage),
        "database": lambda: check_database(settings.storage.database),
        "web port": lambda: check_web_port(settings.web, bot_runs=bot_runs),
    }
    found: list[Finding] = []
    for name, check in local.items():
        try:
            found.append(check())
        except OSError as error:
            # Files that the user may not read.
            detail = f"{error.filename or name} cannot be read: {error.strerror or type(error).__name__}"
            remedy = "Give the user that runs the bot the right to read it."
            found.append(Finding(name, Status.MISSING, detail, remedy))
    running = check_running_bot(settings.web) if bot_runs else []
    screens = check_screens(settings.screen, settings.web, installed=has_ocr)
    return [*found, *running, on_discord, *models, *tools, screens]


async def _check_language_models(settings: Settings) -> list[Finding]:
    asked = (settings.llm, *settings.llm.fallbacks())
    first, *behind = await asyncio.gather(*map(check_language_model, asked))
    # The bot can run without fallback models.
    softened = [
        replace(each, name="fallback model", status=Status.WARNING if each.status is Status.MISSING else each.status)
        for each in behind
    ]
    return [first, *softened]


def _show(findings: Sequence[Finding], verdict: Text) -> None:
    console = open_console()
    shown_remedies: set[str] = set()
    for finding in findings:
        mark, style = _MARKS[finding.status]
        grid = Table.grid()
        grid.add_column(width=_MARK_WIDTH)
        grid.add_column(width=_NAME_WIDTH)
        grid.add_column()
        grid.add_row(Text(mark, style), Text(finding.name, "bold"), Text(finding.detail))
        console.print(grid)
        # Several findings may have the same remedy.
        if finding.remedy and finding.remedy not in shown_remedies:
            shown_remedies.add(finding.remedy)
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
