"""`roomtone explain`: shows what the model saw for a reply, and where each sentence of its summary comes from."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli.output import count, open_console, print_indented
from bot.memory.admin import MemoryAdmin, MemoryAdminError
from bot.memory.explain import Explainer, Explanation, TracedFact
from bot.store.tables import LARGEST_NUMBER
from compaction.model import Seq, SessionId, Turn, TurnKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from bot.store.prompts import PromptFigures
    from compaction.payload import PayloadPart
    from compaction.ports import TurnStore

# How far texts are indented below what they belong to.
_PART_INDENT = 4
# Two blanks, the date and the time, two blanks.
_MOMENT_COLUMNS = 23
# Answered turns that a sentence names.
_LISTED = 12


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
) -> None:
    """Show what the model was sent, and where its summary comes from.

    With --turn: every message of each call that was made for the reply, its tokens, and what was left out. Without
    --turn: the replies of the session, and the segment and turn behind each sentence of its present summary.
    """
    asyncio.run(_explain(session, turn, fact))


async def _explain(session: str | None, turn: int | None, fact: str | None) -> None:
    from bot.cli.environment import open_existing_database
    from bot.clock import SystemClock
    from bot.store.turns import SqlTurnStore
    from config.load import load

    async with open_existing_database(load()) as database:
        clock = SystemClock()
        session_id = await MemoryAdmin(database, clock).find_session(session)
        turns = SqlTurnStore(database, clock)
        explainer = Explainer(database, turns)
        out = open_console()
        if turn is not None:
            explained = await _explained(explainer, turns, session_id, turn)
            _show_reply(explained, out, parts=fact is None)
            _show_facts(_matching(explained.facts, fact), fact, out)
            return
        out.print(f"Session {session_id}", markup=False, style="bold")
        if fact is None:
            _show_replies(await explainer.replies(session_id), out)
            summary = (await turns.load(session_id)).state.summary
            out.print(f"\nThe summary now:\n{summary or 'There is no summary yet.'}", markup=False)
            for each in await explainer.chapters(session_id):
                print_indented(out, each.whole, by=_MOMENT_COLUMNS, mark=f"  {_moment(each.started_at)}")
        _show_facts(_matching(await explainer.facts(session_id), fact), fact, out)


async def _explained(explainer: Explainer, turns: TurnStore, session_id: SessionId, turn: int) -> Explanation:
    """Return the explanation of the reply to `turn`, or of the reply that `turn` is. Raises `MemoryAdminError`."""
    found = await explainer.explain(session_id, turn)
    if found is None:
        known = [each.answer_to for each in await explainer.replies(session_id)]
        said = await turns.turns(session_id, Seq(turn), Seq(turn + 1))
        before = [each for each in known if each < turn]
        if said and said[0].kind is TurnKind.ASSISTANT and before:
            return await _explained(explainer, turns, session_id, before[-1])
        if not known:
            raise MemoryAdminError(
                f"No prompt of session {session_id} is stored: nothing was answered in it, or something was forgotten "
                "since."
            )
        raise MemoryAdminError(
            f"No prompt for turn {turn} of session {session_id} is stored. Answered turns: "
            f"{', '.join(map(str, known[-_LISTED:]))}."
        )
    return found


def _show_replies(replies: Sequence[PromptFigures], out: Console) -> None:
    if replies:
        out.print("\nReplies (roomtone explain SESSION --turn N shows one):")
    for each in replies:
        evicted = "" if each.evicted is None else f"  left out {each.evicted[0]}-{each.evicted[1]}"
        line = f"turn {each.answer_to}{_format_mode(each)}  {_format_tokens(each)}  summary {each.summary_revision}"
        print_indented(out, line + evicted, by=_MOMENT_COLUMNS, mark=f"  {_moment(each.at)}")


def _show_reply(explained: Explanation, out: Console, *, parts: bool) -> None:
    figures = explained.sent[-1].figures
    out.print(
        f"Session {figures.session_id}, the reply to turn {figures.answer_to}{_format_mode(figures)}",
        markup=False,
        style="bold",
    )
    out.print(
        f"mode {figures.mode}, summary of revision {figures.summary_revision} for turns before {figures.cursor}",
        markup=False,
    )
    for number, sent in enumerate(explained.sent, start=1):
        by_part = ", ".join(f"{kind} {tokens:,}" for kind, tokens in sent.figures.tokens.items() if tokens)
        head = f"\nCall {number} of {len(explained.sent)}, {_moment(sent.figures.at)}: {_format_tokens(sent.figures)}"
        out.print(f"{head}: {by_part}", markup=False, style="bold")
        for part in sent.parts if parts else ():
            print_part(part, out)


def _show_facts(facts: Sequence[TracedFact], fact: str | None, out: Console) -> None:
    if not facts:
        missing = "The summary has no facts." if fact is None else f"No fact of the summary has all words of “{fact}”."
        out.print(f"\n{missing}", markup=False)
        return
    out.print("\nThe facts behind the summary:")
    for each in facts:
        print_indented(out, each.fact.text, by=2, mark="-")
        where = f"segment {each.segment.id} (turns {each.segment.start}-{each.segment.end - 1}, "
        print_indented(out, f"{where}by {each.segment.prompt_version})", by=_PART_INDENT, style="cyan")
        for turn in each.turns[:3]:
            said = f"turn {turn.seq}, {_moment(turn.started_at)}, {_format_turn(turn)}"
            print_indented(out, said, by=_PART_INDENT, style="dim")
        if len(each.turns) > 3:
            print_indented(out, f"and {count(len(each.turns) - 3, 'more turn')}", by=_PART_INDENT, style="dim")


def print_part(part: PayloadPart, out: Console) -> None:
    """Print one part of a prompt: what it is in one line, and its text below, line by line."""
    where = "" if part.seq_from is None else f"{part.seq_from}-{part.seq_to}"
    out.print(f"{part.kind.value:<14}{part.role:<10}{where:<12}{count(part.tokens, 'token'):>12}", markup=False)
    for line in part.content.splitlines():
        print_indented(out, line, by=_PART_INDENT, style="dim")
    for call in part.tool_calls:
        print_indented(out, f"{call.name}({call.arguments})", by=_PART_INDENT, style="dim")


def _format_mode(figures: PromptFigures) -> str:
    return ", by speech-to-speech" if figures.spoken else ""


def _format_tokens(figures: PromptFigures) -> str:
    of = "" if figures.max_input_tokens is None else f" of {figures.max_input_tokens:,}"
    return f"{figures.total_tokens:,}{of} tokens"


def _format_turn(turn: Turn) -> str:
    if turn.tombstone:
        return "forgotten on request"
    return "; ".join(f"{part.speaker}: {' '.join(part.text.split())}" for part in turn.parts)


def _moment(at: float) -> str:
    return f"{datetime.fromtimestamp(at).astimezone():%Y-%m-%d %H:%M:%S}"


def _matching(facts: Sequence[TracedFact], fact: str | None) -> list[TracedFact]:
    """Return the facts that contain all words of `fact`."""
    wanted = (fact or "").casefold().split()
    return [each for each in facts if all(word in each.fact.text.casefold() for word in wanted)]
