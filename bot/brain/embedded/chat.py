"""The responder that serves where no language model is configured: deterministic, local, and honest about itself.

It answers questions with the best-fitting sentence of what a model would have been sent, and says whose words
they are and when they were said. It invents nothing, because it has no words of its own beyond the frames here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.embedded.evidence import Evidence, EvidenceOrigin, asks_about_something, best_match
from bot.brain.embedded.evidence_sources import collect_evidence
from bot.brain.lexicon import content_stems, is_question, meaning_stem, words_of
from bot.brain.wakeword import mentions_name
from bot.time_phrases import format_ago, format_time_range
from compaction.language.wording import sentences
from compaction.model import TurnPart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import tzinfo

    from bot.brain.context import ModelContext
    from compaction.model import Turn

NO_MODEL = "No language model is configured, so I answer only with what was said here."
# Longer quotes are read to their last whole word within this, or the answer becomes a lecture.
QUOTE_CHARS = 260
GREETINGS = frozenset({"hello", "hi", "hey", "morning", "evening", "afternoon", "welcome", "good"})
THANKS = frozenset({"thanks", "thank", "cheers"})
# What people call it when they ask what the talk was about, and what else such a question holds.
RECAP = content_stems("summary summarise summarize recap miss discuss discussed happened")
RECAP_FILLERS = content_stems("today tonight evening session give far short quick brief")
RECAP_SENTENCES = 2
PARTINGS = frozenset({"bye", "goodbye", "goodnight", "night"})


class EmbeddedResponder:
    """`bot.brain.responder.Responder` without a model. One a room: it introduces itself once."""

    def __init__(self, *, names: Sequence[str], zone: tzinfo | None = None) -> None:
        self._names = tuple(names)
        self._zone = zone
        self._introduced = False

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        """Yield the answer in one piece."""
        # A room that goes on after a restart has introduced itself already.
        introduced = self._introduced or any(NO_MODEL in message.content for message in context.messages)
        self._introduced = True
        asked = self._asked(context.current)
        evidence = collect_evidence(context, own_names=self._names)
        evidence += _said_beside(context.current, asked, order=len(evidence))
        said = [
            answer(
                part.text,
                evidence,
                asker=part.speaker,
                now=context.now,
                names=self._names,
                zone=self._zone,
                introduce=not introduced and part is asked[-1],
            )
            for part in asked
        ]
        yield " ".join(dict.fromkeys(said))

    def _asked(self, turn: Turn) -> list[TurnPart]:
        """Return whose words of a turn are for the bot: everybody who calls it by name, else who spoke last."""
        if not turn.parts:
            return [TurnPart("", "friend", "")]
        return [part for part in turn.parts if mentions_name(part.text, self._names)] or [turn.parts[-1]]


def _said_beside(turn: Turn, asked: Sequence[TurnPart], *, order: int) -> list[Evidence]:
    """Return what was said in the same moment as the question, when people talk over each other."""
    beside = [part for part in turn.parts if not any(part is each for each in asked)]
    told = [(part.speaker, sentence) for part in beside for sentence in sentences(part.text)]
    return [
        Evidence(sentence, EvidenceOrigin.TURN, order + number, speaker, turn.started_at, turn.ended_at)
        for number, (speaker, sentence) in enumerate(told)
    ]


def answer(
    question: str,
    evidence: Sequence[Evidence],
    *,
    asker: str,
    now: float,
    names: Sequence[str],
    zone: tzinfo | None = None,
    introduce: bool = False,
) -> str:
    """Return what the bot says to `question`.

    `evidence`: the sentences of the payload, oldest first, without the question itself. `now`: UTC epoch
    seconds. `names`: what the bot is called; they carry no meaning in a question. `introduce`: say once that no
    model is configured.
    """
    said = _reply(question, evidence, asker=asker, now=now, names=names, zone=zone)
    return f"{said} {NO_MODEL}" if introduce else said


def _reply(
    question: str, evidence: Sequence[Evidence], *, asker: str, now: float, names: Sequence[str], zone: tzinfo | None
) -> str:
    words = set(words_of(question))
    small_talk = GREETINGS | THANKS | PARTINGS
    if not asks_about_something(question, ignore=[*names, *small_talk]):
        return _small_talk(words, asker)
    if _asks_for_recap(question, names):
        return _recap(evidence, asker=asker, now=now, zone=zone)
    found = best_match(question, evidence, ignore=names, asker=asker)
    if found is not None:
        return quote(found, now=now, zone=zone)
    if is_question(question):
        return f"I have heard nothing about that here, {asker}."
    return f"I heard you, {asker}. I can tell you what was said here, if you ask me."


def _small_talk(words: set[str], asker: str) -> str:
    if words & THANKS:
        return f"You are welcome, {asker}."
    if words & PARTINGS:
        return f"Goodbye, {asker}."
    if words & GREETINGS:
        return f"Hello, {asker}."
    return f"I am here, {asker}. Ask me about what was said."


def _asks_for_recap(question: str, names: Sequence[str]) -> bool:
    """Return whether all that is asked is what the talk was about."""
    own = {meaning_stem(word) for name in names for word in words_of(name)}
    wanted = content_stems(question) - own
    return bool(wanted & RECAP) and not wanted - RECAP - RECAP_FILLERS


def _recap(evidence: Sequence[Evidence], *, asker: str, now: float, zone: tzinfo | None) -> str:
    """Return what was said earlier and lately, a few sentences word for word."""
    told = [item for item in evidence if item.origin is not EvidenceOrigin.NOTE and len(content_stems(item.text)) >= 3]
    told = [item for item in told if not is_question(item.text)]
    earlier_ones = [item for item in told if item.origin is EvidenceOrigin.SUMMARY][:RECAP_SENTENCES]
    latest = [item for item in told if item.origin is EvidenceOrigin.TURN][-RECAP_SENTENCES:]
    if not earlier_ones and not latest:
        return f"Nothing much was said yet, {asker}."
    return " ".join(quote(item, now=now, zone=zone) for item in (*earlier_ones, *latest))


def quote(found: Evidence, *, now: float, zone: tzinfo | None = None) -> str:
    """Return one sentence of the payload with who said it and when, as far as the payload tells."""
    words = _shortened(found.text)
    match found.origin:
        case EvidenceOrigin.NOTE:
            when = "" if found.until is None else f" {format_ago(now - found.until)}"
            return f"On a screen{when}: {words}"
        case EvidenceOrigin.TURN:
            # The time first: a short name at the very start of a reply is easily misheard.
            when = "earlier" if found.until is None else format_ago(now - found.until)
            return f"{when[0].upper()}{when[1:]}, {found.speaker or 'somebody'} said: {words}"
        case EvidenceOrigin.SUMMARY:
            when = "Earlier in this session"
            if found.since is not None and found.until is not None:
                when = format_time_range(found.since, found.until, now=now, zone=zone)
            return f"{when}, {found.speaker} said: {words}" if found.speaker else f"{when}: {words}"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    if len(text) > QUOTE_CHARS:
        text = text[:QUOTE_CHARS].rsplit(" ", 1)[0].rstrip(",;: ") + " …"
    return text if text[-1:] in ".!?…" else text + "."
