"""`roomtone explain`: shows what the model saw for a reply, and where each sentence of its summary comes from."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import count, open_console, print_indented, print_json
from bot.store.number_range import LARGEST_NUMBER
from compaction.context.record import ContextRecord

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from rich.console import Console

    from bot.memory.explain import Explanation, TracedFact
    from compaction.model import SessionId, Turn
    from compaction.payload import PayloadPart
    from config.schema import Settings

# How far texts are indented below what they belong to.
_PART_INDENT = 4
# Two blanks, the date and the time, two blanks.
_MOMENT_COLUMNS = 23


def command(
    session: Annotated[
        str | None,
        typer.Argument(help="A session's id or the beginning of it. Default: the latest session.", metavar="SESSION"),
    ] = None,
    turn: Annotated[
        int | None,
        typer.Option(
            "--turn",
            help="The turn that was answered, or the bot's own answer.",
            metavar="N",
            min=0,
            # The database is asked for the turns up to the next number.
            max=LARGEST_NUMBER - 1,
        ),
    ] = None,
    fact: Annotated[
        str | None,
        typer.Option("--fact", help="Only the sentences of the summary that contain these words.", metavar="WORDS"),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="Read this log instead of the configured one.", metavar="FILE")
    ] = None,
) -> None:
    """Show what the model was sent, and where its summary comes from.

    With --turn: every part of the prompt, its tokens, what was left out and why; and each call that was made with it,
    with the messages that were cut, shortened or added before they left. All of it is verified by digests in the log.
    Without --turn: the replies of the session, and the segment and turn behind each sentence of its present summary.
    The text comes from the database; the log contains none of it.
    """
    from bot.logs.log_file import log_path
    from config.load import load

    settings = load()
    log = file if file is not None else log_path(settings.storage.data_dir)
    if turn is None:
        overview = asyncio.run(_overview(settings, session, log))
        if as_json:
            print_json(overview.fields(fact))
        else:
            _show_overview(overview, fact, open_console())
        return
    explained = asyncio.run(_explain(settings, session, turn, log))
    if as_json:
        print_json(_fields(explained, fact))
    else:
        _show(explained, fact, open_console())


@dataclass(frozen=True, slots=True)
class SessionReplies:
    """The replies of a session in the log, and the sources of its present summary."""

    session_id: SessionId
    records: tuple[ContextRecord, ...]
    summary: str | None
    facts: tuple[TracedFact, ...]

    def fields(self, fact: str | None) -> dict[str, object]:
        """Return it as JSON."""
        return {
            "session": self.session_id,
            "replies": [_record_fields(record) for record in self.records],
            "summary": self.summary,
            "facts": [_traced_fields(each) for each in _matching(self.facts, fact)],
        }


async def _overview(settings: Settings, session: str | None, log: Path) -> SessionReplies:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin
    from bot.memory.explain import Explainer
    from bot.memory.prompt_records import records_of
    from bot.store.turns import SqlTurnStore

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        session_id = await MemoryAdmin(database, clock).find_session(session)
        turns = SqlTurnStore(database, clock)
        summary = (await turns.load(session_id)).state.summary
        facts = await Explainer(database, turns).facts_now(session_id)
        # A speech-to-speech session also gets context between replies.
        replies = tuple(
            record
            for record in records_of(log, session_id)
            if isinstance(record, ContextRecord) and record.answer_to is not None
        )
        return SessionReplies(session_id, replies, summary, facts)


async def _explain(settings: Settings, session: str | None, turn: int, log: Path) -> Explanation:
    from bot.brain.system_prompt import SystemPrompt
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.memory.admin import MemoryAdmin, MemoryAdminError
    from bot.memory.explain import Explainer
    from bot.memory.prompt_records import records_of, reply_records
    from bot.store.turns import SqlTurnStore
    from compaction.model import Seq, TurnKind

    async with open_existing_database(settings) as database:
        clock = SystemClock()
        session_id = await MemoryAdmin(database, clock).find_session(session)
        turns = SqlTurnStore(database, clock)
        lines = list(records_of(log, session_id))
        records = [line for line in lines if isinstance(line, ContextRecord)]
        found = reply_records(lines, turn)
        if found is None:
            asked = await turns.turns(session_id, Seq(turn), Seq(turn + 1))
            if asked and asked[0].kind is TurnKind.ASSISTANT:
                # The bot's own turn: explain the last context that was built before it.
                before = [each.answer_to for each in records if each.answer_to is not None and each.answer_to < turn]
                found = reply_records(lines, before[-1]) if before else None
        if found is None:
            raise MemoryAdminError(_unknown(session_id, turn, records, log))
        now = SystemPrompt(settings.brain.name, settings.brain.instructions).text()
        return await Explainer(database, turns).explain(
            found.record, prompts=[now], calls=found.calls, earlier=found.earlier
        )


def _unknown(session_id: str, turn: int, records: Sequence[ContextRecord], log: Path) -> str:
    known = [str(record.answer_to) for record in records if record.answer_to is not None]
    if not known:
        return (
            f"The log {log} has no reply of session {session_id}: the bot said nothing in it, or the log was rotated "
            "away. --file names another log."
        )
    listed = ", ".join(known[-12:])
    return f"Turn {turn} of session {session_id} was not answered, as far as the log knows. Answered turns: {listed}."


# -- as text -------------------------------------------------------------------------------------------------


def _show_overview(overview: SessionReplies, fact: str | None, out: Console) -> None:
    out.print(f"Session {overview.session_id}", markup=False, style="bold")
    if overview.records and fact is None:
        out.print("\nReplies (roomtone explain SESSION --turn N shows one):")
        for record in overview.records:
            turn = f"turn {record.answer_to}{_format_mode(record)}"
            evicted = "" if record.evicted is None else f"  left out {record.evicted[0]}-{record.evicted[1]}"
            of = "" if record.max_input_tokens is None else f" of {record.max_input_tokens:,}"
            line = f"{turn}  {record.total_tokens:,}{of} tokens  summary {record.summary_revision}{evicted}"
            print_indented(out, line, by=_MOMENT_COLUMNS, mark=f"  {_moment(record.at, record.zone)}")
    _show_summary("The summary now", overview.summary, overview.facts, fact, None, out)


def _show(explained: Explanation, fact: str | None, out: Console) -> None:
    record, rebuilt = explained.record, explained.rebuilt
    of = "" if record.max_input_tokens is None else f" of {record.max_input_tokens:,}"
    out.print(
        f"Session {record.session_id}, the reply to turn {record.answer_to}{_format_mode(record)}, built "
        f"{_moment(record.at, record.zone)}",
        markup=False,
        style="bold",
    )
    by_part = ", ".join(f"{kind} {tokens:,}" for kind, tokens in record.tokens.items() if tokens)
    out.print(f"{record.total_tokens:,}{of} tokens: {by_part}", markup=False)
    out.print(
        f"mode {record.mode}, summary of revision {record.summary_revision} for turns before {record.cursor}",
        markup=False,
    )
    out.print(record.eviction or "Nothing was left out.", markup=False)
    _show_verdict(explained, out)
    if fact is None:
        out.print("")
        for part in rebuilt.payload:
            print_part(part, out)
        _show_calls(explained, out)
    _show_summary("The summary", explained.summary, explained.facts, fact, record.zone, out)


def _show_verdict(explained: Explanation, out: Console) -> None:
    match explained.rebuilt.exact:
        case True:
            out.print("The prompt was made of exactly the parts below (the digest in the log matches).", style="green")
        case False:
            out.print("The prompt was NOT made of exactly the parts below:", style="yellow")
        case None:
            out.print("It is unknown whether these were exactly the parts: an earlier version wrote the log line.")
    for sentence in explained.rebuilt.lost:
        print_indented(out, sentence, by=2, style="yellow")
    if explained.rebuilt.exact is False and not explained.rebuilt.lost:
        why = "Somebody was renamed since, or this version of Roomtone words prompts differently."
        print_indented(out, why, by=2, style="yellow")


def _show_calls(explained: Explanation, out: Console) -> None:
    """Print what left the process in each call, as far as it is no unchanged part of the prompt."""
    if not explained.calls:
        what = "what its conversation held; sound is shown as text" if explained.record.spoken else "not in the log"
        out.print(f"\nWhat left the process in each call is {what}.", style="yellow")
    for number, call in enumerate(explained.calls, start=1):
        same = sum(message.is_part for message in call.messages)
        out.print(
            f"\nCall {number} of {len(explained.calls)}, {_moment(call.at, explained.record.zone)}"
            + (", with an earlier prompt for this turn, which was given up: " if call.given_up else ": ")
            + f"{count(len(call.messages), 'message')} left the process, {same} of them parts as above"
            + ("." if call.exact else "; NOT all of the others are stored any more."),
            markup=False,
            style="green" if call.exact else "yellow",
        )
        for place, message in enumerate(call.messages, start=1):
            if not message.is_part:
                text = message.text or "(not stored any more)"
                print_indented(out, text, by=_PART_INDENT, style="dim", mark=f"  {place}.")


def _show_summary(
    head: str, summary: str | None, facts: Sequence[TracedFact], fact: str | None, zone: tzinfo | None, out: Console
) -> None:
    if summary is None:
        out.print("\nThere is no summary yet.", markup=False)
        return
    if fact is None:
        out.print(f"\n{head}:\n{summary}", markup=False)
    traced = _matching(facts, fact)
    if not traced:
        missing = "It has no facts." if fact is None else f"No fact behind the summary has all words of “{fact}”."
        out.print(f"\n{missing}", markup=False)
        return
    out.print("\nThe facts behind it:")
    for each in traced:
        print_indented(out, each.fact.text, by=2, mark="-")
        where = f"segment {each.segment.id} (turns {each.segment.start}-{each.segment.end - 1}, "
        print_indented(out, f"{where}by {each.segment.prompt_version})", by=_PART_INDENT, style="cyan")
        for turn in each.turns[:3]:
            said = f"turn {turn.seq}, {_moment(turn.started_at, zone)}, {_format_turn(turn)}"
            print_indented(out, said, by=_PART_INDENT, style="dim")
        if len(each.turns) > 3:
            print_indented(out, f"and {count(len(each.turns) - 3, 'more turn')}", by=_PART_INDENT, style="dim")


def print_part(part: PayloadPart, out: Console) -> None:
    """Print one part of a prompt: what it is in one line, and its text folded below."""
    where = "" if part.seq_from is None else f"{part.seq_from}-{part.seq_to}"
    out.print(f"{part.kind.value:<14}{part.role:<10}{where:<12}{count(part.tokens, 'token'):>12}", markup=False)
    print_indented(out, " ".join(part.content.split()), by=_PART_INDENT, style="dim")


def _format_mode(record: ContextRecord) -> str:
    return ", by speech-to-speech" if record.spoken else ""


def _format_turn(turn: Turn) -> str:
    if turn.tombstone:
        return "forgotten on request"
    return "; ".join(f"{part.speaker}: {' '.join(part.text.split())}" for part in turn.parts)


def _moment(at: float, zone: tzinfo | None) -> str:
    moment = datetime.fromtimestamp(at, zone) if zone is not None else datetime.fromtimestamp(at).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}"


# -- as JSON -------------------------------------------------------------------------------------------------


def _fields(explained: Explanation, fact: str | None) -> dict[str, object]:
    return _record_fields(explained.record) | {
        "exact": explained.rebuilt.exact,
        "lost": list(explained.rebuilt.lost),
        "payload": [
            {
                "role": part.role,
                "kind": part.kind.value,
                "seq_from": part.seq_from,
                "seq_to": part.seq_to,
                "tokens": part.tokens,
                "refs": list(part.refs),
                "content": part.content,
            }
            for part in explained.rebuilt.payload
        ],
        "calls": [
            {
                "at": call.at,
                "exact": call.exact,
                "given_up": call.given_up,
                "messages": [None if each.text is None else json.loads(each.text) for each in call.messages],
            }
            for call in explained.calls
        ],
        "summary": explained.summary,
        "facts": [_traced_fields(each) for each in _matching(explained.facts, fact)],
    }


def _record_fields(record: ContextRecord) -> dict[str, object]:
    return {
        "session": record.session_id,
        "turn": record.answer_to,
        "at": record.at,
        "mode": record.mode,
        "cursor": record.cursor,
        "summary_revision": record.summary_revision,
        "seq_from": record.seq_from,
        "seq_to": record.seq_to,
        "tokens": dict(record.tokens),
        "total_tokens": record.total_tokens,
        "max_input_tokens": record.max_input_tokens,
        "evicted": None if record.evicted is None else list(record.evicted),
        "eviction": record.eviction,
        "digest": record.digest,
    }


def _traced_fields(traced: TracedFact) -> dict[str, object]:
    fact = traced.fact
    return {
        "text": fact.text,
        "kind": fact.kind.value,
        "importance": fact.importance,
        "speaker": fact.speaker or None,
        "at": fact.at,
        "segment": traced.segment.id,
        "turns": [
            {
                "seq": turn.seq,
                "at": turn.started_at,
                "parts": [{"speaker": part.speaker, "text": part.text} for part in turn.parts],
            }
            for turn in traced.turns
        ],
    }


def _matching(facts: Sequence[TracedFact], fact: str | None) -> list[TracedFact]:
    """Return the facts that contain all words of `fact`."""
    wanted = (fact or "").casefold().split()
    return [each for each in facts if all(word in each.fact.text.casefold() for word in wanted)]
