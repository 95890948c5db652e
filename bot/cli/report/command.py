"""`roomtone report`: writes one file for an issue, after it was shown."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.environment import require_folder, write_named_file
from bot.cli.output import confirm, say
from config import ConfigError
from config.load import default_settings, load

if TYPE_CHECKING:
    from collections.abc import Iterable

    from bot.cli.doctor.finding import Finding
    from config.schema import Settings

# An issue takes 65,536 characters, and the record of `doctor --live` has at most 20,000 (`bot.discord.live_probe`).
MOST_CHARS = 40_000
# What each part may take of it. What is left over is for the last events.
_PART_CHARS = 7_000
_LINE_CHARS = 300
_PROMISE = (
    "No name, word, id, address or key is in this report: what it may have is listed in bot/cli/report/allowed.py."
)


def command(
    file: Annotated[Path, typer.Option(metavar="FILE", dir_okay=False, help="Where to write it.")] = Path(
        "roomtone-report.txt"
    ),
    hours: Annotated[float, typer.Option(min=0.1, max=168, help="How much of the log it sums up.")] = 6.0,
    yes: Annotated[bool, typer.Option("--yes", help="Write it without asking.")] = False,
) -> None:
    """Write a report for an issue: versions, settings, what doctor finds, and what the log sums up to.

    It has no name, word, id, address or key. It is shown before it is written.
    """
    from bot.cli.doctor.command import run_checks

    require_folder("--file", file)
    say("Asking what `roomtone doctor` asks …", err=True)
    settings: Settings | None = None
    with suppress(ConfigError):
        settings = load(notify=lambda _: None)
    text = report_text(settings, run_checks(), now=datetime.now(UTC), hours=hours)
    say(text)
    confirm(f"Write this to {file}?", yes=yes)
    write_named_file(file, text, example="--file roomtone-report.txt")
    say(f"{file} is written. Put it into an issue, with what happened and what you expected.")


def report_text(settings: Settings | None, findings: Iterable[Finding], *, now: datetime, hours: float) -> str:
    """Return the report, of at most `MOST_CHARS`. `settings`: None if they cannot be used. Raises `OSError` if
    the log cannot be read.
    """
    # They import the whole bot.
    from bot.cli.report.allowed import reported_findings, reported_settings
    from bot.cli.report.log_extract import LogExtract
    from bot.logs.log_file import log_path
    from bot.versions import versions

    log = LogExtract(log_path((settings or default_settings()).storage.data_dir), since=now - timedelta(hours=hours))
    changed = ["they cannot be used"] if settings is None else reported_settings(settings)
    parts = [
        _part(f"Report of {now:%Y-%m-%d %H:%M} UTC", [_PROMISE]),
        _part("Versions", [f"{name:<15} {version}" for name, version in versions().items()]),
        _part("Settings that differ from their defaults", changed),
        _part("What doctor finds", reported_findings(findings)),
        _part(f"Events of the last {hours:g} hours in the log", log.counts()),
        _part("Packets, by what became of them", [log.packets()]),
    ]
    last = _part("The last of these events, newest first (UTC)", log.last(), MOST_CHARS - len("".join(parts)))
    return "".join([*parts, last])


def _part(title: str, lines: Iterable[str], most_chars: int = _PART_CHARS) -> str:
    """Return a part of the report: as many of the lines as there is room for."""
    text = f"{title}\n"
    for line in lines:
        shown = f"  {line[:_LINE_CHARS]}\n"
        if len(text) + len(shown) >= most_chars - 1:
            break
        text += shown
    return f"{text}\n"
