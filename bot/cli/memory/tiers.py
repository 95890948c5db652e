"""`roomtone memory list`, `queue`, `compress`, `archive`, `freeze`, `unfreeze`, `export`: shows and changes tiers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from bot.cli.environment import find_session, open_existing_database, open_memory_admin, write_json
from bot.cli.output import confirm, count, open_console, plain_table, print_json, say
from bot.clock import SystemClock
from bot.memory.admin import MemoryAdmin, SegmentOverview, file_name, location_of, turn_range
from compaction.memory.segment_record import prompt_tokens, record_json
from config.load import load

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from bot.store.rows import StoredTier
    from compaction.memory.tiers import TierChanges
    from compaction.model import SegmentId, SessionId
    from config.schema import Settings

T = TypeVar("T")
Session = Annotated[
    str | None,
    typer.Argument(help="A session's id or the beginning of it. Default: the latest session.", metavar="SESSION"),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


def list_segments(session: Session = None, as_json: AsJson = False) -> None:
    """List a session's segments.

    Shows turns, tier, tokens before and after compression, turns since the last mention (silent), how often search
    found the segment, and its topic.
    """
    overview = _in_session(session, lambda admin, found: admin.overview(found))
    if as_json:
        print_json(
            [
                record_json(overview.record(each)) | {"tier": each.kept.tier.value, "state": segment_state(each)}
                for each in overview.tiers
            ]
        )
        return
    _show(overview)


def queue(session: Session = None) -> None:
    """Print a session's compression queue. It is JSON, in the format of its file."""
    print_json(_in_session(session, lambda admin, found: admin.overview(found)).queue())


_NOT_DUE = "Checked: nothing to do. (Segments move only above 60 % of the context; --regardless ignores that.)"
_NONE_COLD = "Checked: no segment is cold. (Cold: not mentioned for 20 turns, and no open thread.)"


def compress(
    session: Session = None,
    regardless: Annotated[
        bool,
        typer.Option("--regardless", help="Compress every cold segment at once, even if the context is nearly empty."),
    ] = False,
) -> None:
    """Check a session's segments now. Do not wait for the next regular check.

    Cold segments are queued, and segments queued before are compressed. Nothing happens below 60 % of the context.
    Above 80 %, old compressed segments are archived.
    """
    room = load().budget.max_input_tokens
    done = _in_session(session, lambda admin, found: admin.check(found, max_input_tokens=room, regardless=regardless))
    say(_format_changes(done) or (_NONE_COLD if regardless else _NOT_DUE))


def archive(
    session: Session = None,
    segments: Annotated[
        list[str] | None,
        typer.Option("--segment", help="Only this segment (its turns such as 0-9, or its id). May be repeated."),
    ] = None,
    clear: Annotated[
        bool, typer.Option("--clear", help="Clear the archive instead: keep only the short content of each segment.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="With --clear: do not ask for confirmation.")] = False,
) -> None:
    """Move compressed segments into the archive, or clear it.

    Search finds archived segments only with --archived, but still finds the turns in them.
    """
    if clear:
        where = f"of session {session}" if session else "of all sessions"
        confirm(
            f"The facts of every archived segment {where} will be deleted; a few sentences of each stay. Continue?",
            yes=yes,
        )
        cleared = asyncio.run(_clear(session))
        say(f"Cleared: {count(cleared, 'archived segment')} reduced to the short content.")
        return
    chosen = _in_session(session, lambda admin, found: admin.archive(found, tuple(segments or ())))
    if not chosen:
        say(
            "Nothing to archive: no segment of the session is compressed. `roomtone memory compress --regardless` "
            "compresses the cold ones."
        )
        return
    say(f"Archived {count(len(chosen), 'segment')}: {_turns(chosen)}.")


OfServer = Annotated[int | None, typer.Option("--server", help="A server's id.", metavar="ID")]
OfSession = Annotated[
    str | None, typer.Option("--session", help="A session's id or the beginning of it.", metavar="ID")
]
# What people read for the scopes in the database.
_SCOPES = {"guild": "Server", "session": "Session"}


def freeze(server: OfServer = None, session: OfSession = None) -> None:
    """Keep the tiers of a server or session as they are. Without an option, list what is frozen.

    Nothing is compressed or archived there. Sessions are still deleted for their age.
    """
    asyncio.run(_set_frozen(load(), server, session, frozen=True))


def unfreeze(server: OfServer = None, session: OfSession = None) -> None:
    """Allow tier changes for a server or session again."""
    asyncio.run(_set_frozen(load(), server, session, frozen=False))


async def _set_frozen(settings: Settings, guild_id: int | None, session: str | None, *, frozen: bool) -> None:
    from bot.store.tiers import TierStore

    async with open_existing_database(settings) as database:
        tiers = TierStore(database)
        named = {"guild": guild_id, "session": await find_session(database, session)}
        wanted = [(scope, str(name)) for scope, name in named.items() if name is not None]
        for scope, name in wanted:
            changed = await tiers.set_frozen(scope, name, frozen=frozen)
            now = "is frozen" if frozen else "is no longer frozen"
            what = f"{_SCOPES[scope]} {name}"
            say(f"{what} {now}." if changed else f"{what}: nothing changed.")
        if not wanted:
            frozen_now = [f"{_SCOPES[scope]} {name}" for scope, name in await tiers.frozen()]
            say("\n".join(frozen_now) or "Nothing is frozen.")


def export(
    folder: Annotated[Path, typer.Argument(help="The folder to write to. It is created if needed.", metavar="DIR")],
    session: Annotated[
        str | None,
        typer.Option("--session", help="Only this session (its id or the beginning of its id).", metavar="ID"),
    ] = None,
) -> None:
    """Write segments and queues to files.

    Segments go to compressed_context/{segment_id}.json, archived ones to
    sessions/{session_id}/archived_context/{segment_id}.json, queues to context_queue/{session_id}_pending.json.
    """
    written = asyncio.run(_export(load(), session, folder))
    say(f"Wrote {count(sum(written), 'segment')} of {count(len(written), 'session')} to {folder}.")


async def _export(settings: Settings, session: str | None, folder: Path) -> list[int]:
    """Write the files of one session, or of all that have segments. Returns the number of segments of each."""
    from bot.store.sessions import Sessions

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        admin = MemoryAdmin(database, clock)
        if session is not None:
            return [_write(folder, await admin.overview(await admin.find_session(session)))]
        written: list[int] = []
        for each in reversed(await Sessions(database, clock).recent(limit=1_000_000)):
            overview = await admin.overview(each.id)
            if overview.tiers:
                written.append(_write(folder, overview))
        return written


def _write(folder: Path, overview: SegmentOverview) -> int:
    """Write one session's files and return the number of segments."""
    for tier in overview.tiers:
        write_json(folder / location_of(tier.kept), record_json(overview.record(tier)), example="the folder export")
    queue_file = folder / "context_queue" / f"{file_name(overview.session_id)}_pending.json"
    write_json(queue_file, overview.queue(), example="the folder export")
    return len(overview.tiers)


def _in_session(session: str | None, work: Callable[[MemoryAdmin, SessionId], Awaitable[T]]) -> T:
    """Run `work` with what manages the memory, and the session that was named: the latest one by default."""

    async def run() -> T:
        async with open_memory_admin(load()) as admin:
            return await work(admin, await admin.find_session(session))

    return asyncio.run(run())


async def _clear(session: str | None) -> int:
    async with open_memory_admin(load()) as admin:
        return await admin.clear_archive(None if session is None else await admin.find_session(session))


def segment_state(tier: StoredTier) -> str:
    """Return the state of a segment in one word."""
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
    from compaction.memory.chapters import PROMPT_TOKENS, chapters_of, tell_chapters
    from compaction.tokens import estimate_text_tokens

    numbers = ("turns", "tokens", "silent", "found")
    table = plain_table("turns", "tier", "tokens", "silent", "found", "topic", right=numbers)
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
    out = open_console()
    out.print(
        f"Session {overview.session_id}: {count(overview.total_turns, 'turn')}, "
        f"{count(len(overview.tiers), 'segment')}, last checked at turn {overview.last_check_turn}",
        markup=False,
    )
    if overview.tiers:
        out.print(table)
    told = tell_chapters(chapters_of([each.kept.segment for each in overview.tiers]), max_tokens=PROMPT_TOKENS)
    if told:
        before = sum(prompt_tokens(each.kept.segment) for each in overview.tiers)
        after = sum(estimate_text_tokens(text) for _, text in told)
        out.print(f"{count(len(told), 'chapter')}: {before:,} tokens of turns -> {after:,} of a prompt", markup=False)


def _format_changes(done: TierChanges) -> str:
    lines = [done.report()] if done.compress else []
    if done.queue:
        lines.append(f"Queued {count(len(done.queue), 'segment')}: {_turns(done.queue)}.")
    if done.release:
        lines.append(f"{count(len(done.release), 'segment')} left the queue: mentioned again.")
    if done.archive:
        lines.append(f"Archived {count(len(done.archive), 'segment')}: {_turns(done.archive)}.")
    return "\n".join(lines)


def _turns(segments: Sequence[SegmentId]) -> str:
    return f"turns {', '.join(map(turn_range, segments))}"
