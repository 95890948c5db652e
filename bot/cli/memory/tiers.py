"""`roomtone memory list`, `queue`, `compress`, `archive`, `prune`, `opt-out`, `opt-in`: tiers, looked at and tended."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from bot.memory.admin import SegmentOverview
    from bot.store.tier_rows import StoredTier
    from compaction.memory.tiers import TierChanges
    from config.schema import Settings

Session = Annotated[
    str | None,
    typer.Argument(help="A session's id, or how it begins; without one the last session.", metavar="SESSION"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def list_segments(session: Session = None, as_json: AsJson = False) -> None:
    """Show a session's segments, and how each is kept.

    Their turns, tier, tokens before and after, turns of silence since they were spoken of, how often they were found,
    and their topic.
    """
    from config.load import load

    overview = asyncio.run(_overview(load(), session))
    if as_json:
        from compaction.memory.export_format import record_json

        typer.echo(
            json.dumps(
                [
                    record_json(overview.record(each)) | {"tier": each.kept.tier.value, "state": segment_state(each)}
                    for each in overview.tiers
                ],
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    _show(overview)


def queue(session: Session = None) -> None:
    """Print a session's compression queue, as its file has it (JSON)."""
    from compaction.memory.export_format import queue_json
    from config.load import load

    typer.echo(json.dumps(queue_json(asyncio.run(_overview(load(), session)).queue()), indent=2, ensure_ascii=False))


_NOT_DUE = "Checked: nothing is due. (Segments move above 60 % of the context; --regardless does not ask for that.)"
_NONE_COLD = "Checked: no segment is cold, which is 20 turns without a word about it and no thread of it open."


def compress(
    session: Session = None,
    regardless: Annotated[
        bool,
        typer.Option(
            "--regardless", help="Compress every cold segment, however little of the context is used, and at once."
        ),
    ] = False,
) -> None:
    """Check a session's segments now, not at the next ten turns.

    Cold ones are queued, and what was queued before is compressed. Nothing happens below 60 % of the context; from
    80 % on, what is compressed and old goes to the archive.
    """
    from config.load import load

    done = asyncio.run(_compress(load(), session, regardless=regardless))
    typer.echo(_told(done) or (_NONE_COLD if regardless else _NOT_DUE))


def archive(
    session: Session = None,
    segments: Annotated[
        list[str] | None,
        typer.Option("--segment", help="Only this segment (its id, or its turns as 0-10); may be repeated."),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Clear the archive instead: keep the short content of what is in it alone.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clear: do not ask.")] = False,
) -> None:
    """Move compressed segments into the archive, or clear it.

    Search finds archived segments only with --archived; what was said in them is found as ever.
    """
    from config.load import load

    if clear:
        if not yes:
            where = f"of session {session}" if session else "of all sessions"
            typer.confirm(
                f"The facts of every archived segment {where} will be deleted; a few sentences each stay. Go on?",
                abort=True,
            )
        count = asyncio.run(_clear(load(), session))
        typer.echo(f"Cleared: {_count(count, 'segment')} in the archive kept the short content alone.")
        return
    chosen = asyncio.run(_archive(load(), session, tuple(segments or ())))
    if not chosen:
        typer.echo(
            "Nothing to archive: no segment of the session is compressed. `roomtone memory compress --regardless` does "
            "that with those that are cold."
        )
        return
    typer.echo(f"Archived {_count(len(chosen), 'segment')}: {', '.join(chosen)}.")


def prune() -> None:
    """Prune the archive, and delete what is over its time.

    What has been in the archive for tiers.prune_after_days keeps its short content alone; sessions that ended
    tiers.retention_days ago are deleted with everything in them.
    """
    from config.load import load

    settings = load()
    count, deleted = asyncio.run(_prune(settings))
    typer.echo(f"Pruned {_count(count, 'archived segment')} (older than {settings.tiers.prune_after_days:g} days).")
    if settings.tiers.retention_days is not None:
        typer.echo(f"Deleted {_count(len(deleted), 'session')} (ended {settings.tiers.retention_days:g} days ago).")


Guild = Annotated[int | None, typer.Option("--guild", help="A server's id.", metavar="ID")]
OfSession = Annotated[str | None, typer.Option("--session", help="A session's id, or how it begins.", metavar="ID")]


def opt_out(guild: Guild = None, session: OfSession = None) -> None:
    """Leave the tiers of a server or session alone.

    Without an option: show who has opted out.
    """
    _opt(guild, session, out=True)


def opt_in(guild: Guild = None, session: OfSession = None) -> None:
    """Take an opt-out back."""
    _opt(guild, session, out=False)


def _opt(guild: int | None, session: str | None, *, out: bool) -> None:
    from config.load import load

    for line in asyncio.run(_change_opt(load(), guild, session, out=out)):
        typer.echo(line)


async def _change_opt(settings: Settings, guild: int | None, session: str | None, *, out: bool) -> list[str]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin
    from bot.store.tiers import TierStore

    async with open_existing_database(settings) as database:
        shelf = TierStore(database)
        wanted: list[tuple[str, str]] = []
        if guild is not None:
            wanted.append(("guild", str(guild)))
        if session is not None:
            wanted.append(("session", await MemoryAdmin(database, SystemClock()).find_session(session)))
        told: list[str] = []
        for scope, name in wanted:
            what = "Server" if scope == "guild" else "Session"
            new = await shelf.set_opt_out(scope, name, out=out)
            now = "is left alone from now on" if out else "is tended again"
            told.append(f"{what} {name} {now}." if new else f"{what} {name}: nothing changed, it was so already.")
        if not wanted:
            everybody = await shelf.opt_outs()
            told = [f"{scope} {name}" for scope, name in everybody] or ["Nobody has opted out."]
        return told


async def _overview(settings: Settings, session: str | None) -> SegmentOverview:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        admin = MemoryAdmin(database, SystemClock())
        return await admin.overview(await admin.find_session(session))


async def _compress(settings: Settings, session: str | None, *, regardless: bool) -> TierChanges:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        admin = MemoryAdmin(database, SystemClock())
        return await admin.check(
            await admin.find_session(session), max_input_tokens=settings.budget.max_input_tokens, regardless=regardless
        )


async def _archive(settings: Settings, session: str | None, names: tuple[str, ...]) -> tuple[str, ...]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        admin = MemoryAdmin(database, SystemClock())
        return await admin.archive(await admin.find_session(session), names)


async def _clear(settings: Settings, session: str | None) -> int:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin

    async with open_existing_database(settings) as database:
        admin = MemoryAdmin(database, SystemClock())
        return await admin.clear_archive(None if session is None else await admin.find_session(session))


async def _prune(settings: Settings) -> tuple[int, tuple[str, ...]]:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.upkeep import prune as pruned
    from bot.store.tiers import TierStore

    async with open_existing_database(settings) as database:
        return await pruned(TierStore(database), settings.tiers, now=SystemClock().now())


def segment_state(tier: StoredTier) -> str:
    """Return where a segment stands, in a word."""
    kept = tier.kept
    if kept.pruned_at is not None:
        return "pruned"
    if kept.archived_at is not None:
        return "archived"
    if kept.record is not None:
        return "compressed"
    if kept.queued_at_turn is not None:
        return "queued"
    return "closing" if kept.segment.closing else "warm"


def _show(overview: SegmentOverview) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for heading, justify in (
        ("turns", "right"),
        ("tier", "left"),
        ("tokens", "right"),
        ("silent", "right"),
        ("found", "right"),
        ("topic", "left"),
    ):
        table.add_column(heading, justify="right" if justify == "right" else "left")
    for tier in overview.tiers:
        kept, record = tier.kept, overview.record(tier)
        turns = f"{record.start_turn}-{record.end_turn}" if kept.covers_turns else "notes"
        table.add_row(
            turns,
            segment_state(tier),
            f"{record.original_tokens:,} -> {record.compressed_tokens:,}",
            f"{kept.turns_since_mention(overview.total_turns)}",
            str(record.access_count),
            record.topic,
        )
    out = Console(highlight=False)
    out.print(
        f"Session {overview.session_id}: {_count(overview.total_turns, 'turn')}, "
        f"{_count(len(overview.tiers), 'segment')}, last checked at turn {overview.last_check_turn}",
        markup=False,
    )
    if overview.tiers:
        out.print(table)


def _told(done: TierChanges) -> str:
    lines = [done.report()] if done.compress else []
    if done.queue:
        lines.append(f"Queued {_count(len(done.queue), 'segment')}: {', '.join(done.queue)}.")
    if done.release:
        lines.append(f"{_count(len(done.release), 'segment')} left the queue: they were spoken of again.")
    if done.archive:
        lines.append(f"Archived {_count(len(done.archive), 'segment')}: {', '.join(done.archive)}.")
    return "\n".join(lines)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
