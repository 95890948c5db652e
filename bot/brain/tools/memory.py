"""The tools `memory_search` and `recall_turns`: quote what was said, with speaker and time. And `missed`: what somebody
missed who came later, as /recap tells it, in words that can be spoken. Models read the whole talk, so only the answers
without a model use that one.

A search begins with what was noted in the chapters of this session: most questions ask for less words than the talk
itself has. Their output is bounded, so that one call can't fill the prompt. Arguments have been checked
(`tool.read_arguments`).
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Final

from bot.brain.tools.tool import MAX_CHARS, Asker, Result, RoomTool, anybody, only, present
from bot.llm.budgeted import MEMORY_SEARCH
from bot.memory.recall import DEFAULT_LIMIT, RoomRecall
from bot.texts.text import Text, joined
from bot.time_phrases import TimeNotUnderstoodError, parse_moment
from compaction.context.build import noted_lines
from compaction.context.turn_text import format_turn
from compaction.language.text import plain, whole_words
from compaction.memory.passage import PassageKind
from compaction.model import Seq, SessionId

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from bot.clock import Clock
    from compaction.memory.digest import Digest
    from compaction.memory.recall import RecallHit
    from compaction.session import SessionTimeline

MOST_FOUND = 20
# Of the room that an answer has (`MAX_CHARS`) two thirds.
NOTED_TOKENS = 1_000
# Chapters are told with times in minutes: one that ends in the minute in which another begins is not meant.
MINUTE_S = 60.0
NOTHING = "Nothing that was said or shown is about that."

_TEXT = {"type": "string"}
_WHEN = "Clock time (21:04), how long ago (45 minutes ago), or ISO date and time."
SEARCH_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "query": _TEXT | {"description": "What to look for: the words people would have used."},
        "speaker": _TEXT | {"description": "Write a name. Then you get only what this person said."},
        "since": _TEXT | {"description": f"Only what was said from then on. {_WHEN}"},
        "until": _TEXT | {"description": f"Only what was said before then. {_WHEN}"},
        "session": _TEXT | {"description": "Only that session: its id as a search told it."},
        "archived": {"type": "boolean", "description": "Look into the archive of old summaries too."},
        "limit": {"type": "integer", "minimum": 1, "maximum": MOST_FOUND, "description": "Most quotes, 8 by default."},
    },
    "required": ["query"],
    "additionalProperties": False,
}
TURNS_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "from": {"type": "integer", "minimum": 0, "description": "Number of the first turn."},
        "to": {"type": "integer", "minimum": 0, "description": "Number of the last turn, counted in."},
    },
    "required": ["from", "to"],
    "additionalProperties": False,
}


def memory_tools(
    room: RoomRecall,
    *,
    zone: tzinfo,
    clock: Clock,
    question: Seq | None = None,
    timeline: SessionTimeline | None = None,
) -> tuple[RoomTool, ...]:
    """Return the two tools for one room. `zone`: time zone of the times in their output.

    `question`: the turn that is answered. It has the words of the search, and would be the first thing found.
    `timeline`: the session, whose chapters are searched too.
    """

    def noted(query: str, session: str, speaker: str, since: float | None, until: float | None) -> tuple[str, ...]:
        """Return what the chapters of this session noted of it, all of a stretch of time, as one piece if any."""
        if timeline is None or speaker or session not in {"", room.place.session_id}:
            return ()
        chapters = tuple(
            each
            for each in timeline.chapters
            if (since is None or each.started_at >= since or each.ended_at > since + MINUTE_S)
            and (until is None or each.started_at <= until)
        )
        is_stretch = since is not None and until is not None
        now = clock.now()
        lines = noted_lines(chapters, query, max_tokens=NOTED_TOKENS, zone=zone, whole=is_stretch, now=now)
        return ("\n".join(("Noted in this session:", *lines)),) if lines else ()

    async def search(arguments: Mapping[str, object]) -> Result:
        """Return quotes that match, or a sentence with the reason why there are none."""
        given = {name: str(value).strip() for name, value in arguments.items()}
        limit = int(given.get("limit", DEFAULT_LIMIT))
        speaker, session = given.get("speaker", ""), given.get("session", "")
        try:
            since, until = (
                parse_moment(given[each], now=clock.now(), zone=zone) if given.get(each) else None
                for each in ("since", "until")
            )
        except TimeNotUnderstoodError as error:
            return Result(str(error), anybody)
        found = await room.memory_search(
            given["query"],
            speaker=speaker or None,
            since=since,
            until=until,
            session=SessionId(session) or None,
            archived=arguments.get("archived") is True,
            limit=limit + (question is not None),
        )
        here = room.place.session_id
        hits = found if question is None else [each for hit in found if (each := _before(hit, here, question))][:limit]
        notes = noted(given["query"], session, speaker, since, until)
        answer, shown = _answer([*notes, *(format_recalled(each, zone, here=here) for each in hits)])
        room.note_shown_hits(hits[: max(0, shown - len(notes))], asked=question)
        return Result(answer or NOTHING, anybody if all(each.session_id == here for each in hits) else present)

    async def turns(arguments: Mapping[str, object]) -> Result:
        """Return turns by their numbers, or a sentence with the reason why there are none."""
        first, last = int(str(arguments["from"])), int(str(arguments["to"]))
        if last < first:
            wrong = "from and to are turn numbers, from being the smaller one, for example from 12 to 18."
            return Result(wrong, anybody)
        found = await room.recall_turns(first, last)
        answer, shown = _answer([f"turn {turn.seq} {format_turn(turn, zone, max_chars=None)}" for turn in found])
        room.note_shown_turns(found[:shown])
        return Result(answer or f"There are no turns {first} to {last} in this session.", anybody)

    return (
        RoomTool(
            MEMORY_SEARCH,
            "Finds what was said earlier, also in earlier sessions, word for word with who said it and when, and what "
            "was noted of it. Use it whenever somebody asks for more of the past than is in front of you. With since "
            "and until of a chapter you get all that was noted in it.",
            SEARCH_SCHEMA,
            search,
            asks=False,
            acts=False,
            lets="look up what was said earlier",
            permits=anybody,
        ),
        RoomTool(
            "recall_turns",
            "Gives turns of this session word for word by their numbers, for example those around a quote.",
            TURNS_SCHEMA,
            turns,
            asks=False,
            acts=False,
            permits=anybody,
        ),
    )


MISSED: Final = "missed"
NOTHING_MISSED = Text("While you were away, nothing was said that I can tell you.")
# What somebody listens to.
MOST_LINES = 5


def missed_tools(asker: Asker, missed: Callable[[int], Awaitable[Digest | None]]) -> Sequence[RoomTool]:
    """Return the tool for one person in a room; none if nobody asks. `missed`: returns the digest of what a person
    missed, None if they have been there all the time. Then the tool tells nothing.
    """
    if (person_id := asker.user_id) is None:
        return ()

    async def tell(_: Mapping[str, object]) -> Result:
        # Others may know another part of the talk.
        theirs = only(asker)
        if (digest := await missed(person_id)) is None:
            return Result(joined(()), theirs)
        lines = (*digest.yours, *digest.decisions, *digest.to_do, *digest.open, *digest.about, *digest.last)
        told = [
            Text("{speaker} said: {words}", speaker=each.speaker, words=each.text) if each.speaker else each.text
            for each in lines[:MOST_LINES]
        ]
        return Result(joined(told) if told else NOTHING_MISSED, theirs)

    return (RoomTool(MISSED, "", {"type": "object"}, tell, asks=False, acts=False, offered=False),)


def _before(hit: RecallHit, here: SessionId, asked: Seq) -> RecallHit | None:
    """Return what was said before turn `asked` of the session `here`, or None if the hit is not from before it."""
    if hit.kind is not PassageKind.TURN or hit.session_id != here or hit.seq is None:
        return hit
    return None if hit.seq >= asked else replace(hit, turns=tuple(turn for turn in hit.turns if turn.seq < asked))


def format_recalled(recalled: RecallHit, zone: tzinfo, *, here: SessionId | None = None) -> str:
    """Return one search result as text for a model or a person. `here`: the current session, which the text does not
    name.
    """
    at = datetime.fromtimestamp(recalled.at, zone)
    place = "" if recalled.session_id == here else f"{at:%Y-%m-%d}, session {recalled.session_id}, "
    old = ""
    if recalled.superseded_by is not None:
        old = f" NO LONGER SO: corrected by turn {recalled.superseded_by.seq}."
    elif recalled.supersedes:
        old = f" This corrects turn {', '.join(str(each.seq) for each in recalled.supersedes)}."
    match recalled.kind:
        case PassageKind.TURN:
            lines = [format_turn(turn, zone) for turn in recalled.turns]
            return f"({place}turn {recalled.seq}.{old})\n" + "\n".join(lines)
        case PassageKind.NOTE:
            return f"({place}seen on {plain(recalled.speaker)}'s screen)\n[{at:%H:%M}] {plain(recalled.text)}"
        case PassageKind.SEGMENT:
            return f"({place}summary of turns {recalled.seq_from} to {recalled.seq_to})\n{plain(recalled.text)}"


def _answer(pieces: Sequence[str]) -> tuple[str, int]:
    """Return as many of the first pieces as fit into an answer, as one text that names how many more there are, and
    their number. Only the first is cut if it is too long, with a mark that tells how much is missing.
    """
    included: list[str] = []
    # With room for what says that something is left out.
    room = MAX_CHARS - 100
    for piece in pieces:
        if included and len(piece) > room:
            break
        kept = whole_words(piece, room)
        missing = len(piece) - len(kept)
        included.append(f"{kept} … [cut here; {missing} more characters are stored]" if missing else piece)
        room -= len(piece) + 2
    left_out = len(pieces) - len(included)
    more = [f"({left_out} more left out; ask for less at once)"] if left_out else []
    return "\n\n".join([*included, *more]), len(included)
