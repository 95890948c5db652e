"""The responder for bots without a language model: deterministic and local.

It answers a question with the best matching sentence of the payload, and says who said it and when, in the language of
the question. Everything else it says is a fixed phrase in this module, so it invents nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.brain.embedded.evidence import (
    Evidence,
    EvidenceOrigin,
    asks,
    asks_about_something,
    best_match,
    content_stems,
    name_stems,
)
from bot.brain.embedded.evidence_sources import collect_evidence
from bot.brain.spoken_words import spoken_words
from bot.brain.wakeword import mentions_name
from bot.texts.catalogue import languages
from bot.texts.text import Text, in_language
from bot.time_phrases import format_ago, format_time_range
from compaction.language.languages import language_of
from compaction.language.text import cut_at_word, sentences
from compaction.model import TurnPart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import tzinfo

    from bot.brain.context import ModelContext
    from compaction.model import Turn

NO_MODEL = Text("No language model is configured, so I answer only with what was said here.")
# Longer quotes are cut at a word.
QUOTE_CHARS = 260
# German words that no English sentence has, in questions without any other.
GERMAN_SMALL_TALK = frozenset({"hallo", "moin", "danke", "dankeschön", "tschüss", "tschüs"})
GREETINGS = frozenset({"hello", "hi", "hey", "morning", "evening", "afternoon", "welcome", "good", "hallo", "moin"})
THANKS = frozenset({"thanks", "thank", "cheers", "danke", "dankeschön"})
# Words that ask what people talked about, and other words that such a question may contain.
RECAP = content_stems("summary summarise summarize recap miss discuss discussed happened zusammenfassung verpasst")
RECAP_FILLERS = content_stems("today tonight evening session give far short quick brief")
RECAP_SENTENCES = 2
PARTINGS = frozenset({"bye", "goodbye", "goodnight", "night", "tschüss", "tschüs"})


class EmbeddedResponder:
    """A `bot.brain.responder.Responder` without a model. One per room; it says once that there is no model."""

    def __init__(self, *, names: Sequence[str], zone: tzinfo | None = None) -> None:
        self._names = tuple(names)
        self._zone = zone
        self._introduced = False

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        if context.on_sent is not None:
            # People may look at what an answer was made of, without a model too.
            context.on_sent(context.messages)
        # After a restart the window may show that the bot has said it already.
        introduced = self._introduced or any(
            in_language(NO_MODEL, code) in message.content for message in context.messages for code in languages()
        )
        self._introduced = True
        asked = self._parts_for_bot(context.current)
        evidence = collect_evidence(context, own_names=self._names)
        evidence += _spoken_beside(context.current, asked, order=len(evidence))
        # Of several people who ask at once, it is that of one.
        language = context.language if len({part.speaker_id for part in asked}) == 1 else ""
        said = [
            answer(
                part.text,
                evidence,
                asker=part.speaker,
                now=context.now,
                names=self._names,
                zone=self._zone,
                introduce=not introduced and part is asked[-1],
                language=language,
            )
            for part in asked
        ]
        yield " ".join(dict.fromkeys(said))

    def _parts_for_bot(self, turn: Turn) -> list[TurnPart]:
        """Return all parts of a turn that call the bot by name, or else its last part."""
        if not turn.parts:
            return [TurnPart("", "friend", "")]
        return [part for part in turn.parts if mentions_name(part.text, self._names)] or [turn.parts[-1]]


def _spoken_beside(turn: Turn, asked: Sequence[TurnPart], *, order: int) -> list[Evidence]:
    """Return what other speakers said in the turn of the question, when people talk over each other."""
    beside = [part for part in turn.parts if not any(part is each for each in asked)]
    candidates = [(part.speaker, sentence) for part in beside for sentence in sentences(part.text)]
    return [
        Evidence(sentence, EvidenceOrigin.TURN, order + number, speaker, turn.started_at, turn.ended_at)
        for number, (speaker, sentence) in enumerate(candidates)
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
    language: str = "",
) -> str:
    """Return the answer to `question`, in its language.

    `evidence`: the sentences of the payload, oldest first, without the question itself. `now`: UTC epoch seconds.
    `names`: the bot's names, which are ignored in the question. `introduce`: add that no model is configured.
    `language`: the code of the question's language; empty: its words tell it.
    """
    said = _reply(question, evidence, asker=asker, now=now, names=names, zone=zone)
    words = spoken_words(question).texts
    if not language:
        language = "de" if GERMAN_SMALL_TALK.intersection(words) else language_of(words).code
    written = [in_language(each, language) for each in (*said, *((NO_MODEL,) if introduce else ()))]
    return " ".join(f"{each[0].upper()}{each[1:]}" for each in written)


def _reply(
    question: str, evidence: Sequence[Evidence], *, asker: str, now: float, names: Sequence[str], zone: tzinfo | None
) -> list[Text]:
    words = set(spoken_words(question).texts)
    small_talk = GREETINGS | THANKS | PARTINGS
    if not asks_about_something(question, ignore=[*names, *small_talk]):
        return [_small_talk(words, asker)]
    if _asks_for_recap(question, names):
        return _recap(evidence, asker=asker, now=now, zone=zone)
    found = best_match(question, evidence, ignore=names, asker=asker)
    if found is not None:
        return [quote(found, now=now, zone=zone)]
    if asks(question):
        return [Text("I have heard nothing about that here, {asker}.", asker=asker)]
    return [Text("I heard you, {asker}. I can tell you what was said here, if you ask me.", asker=asker)]


def _small_talk(words: set[str], asker: str) -> Text:
    if words & THANKS:
        return Text("You are welcome, {asker}.", asker=asker)
    if words & PARTINGS:
        return Text("Goodbye, {asker}.", asker=asker)
    if words & GREETINGS:
        return Text("Hello, {asker}.", asker=asker)
    return Text("I am here, {asker}. Ask me about what was said.", asker=asker)


def _asks_for_recap(question: str, names: Sequence[str]) -> bool:
    """Return whether the question asks only what people talked about."""
    wanted = content_stems(question).difference(*map(name_stems, names))
    return bool(wanted & RECAP) and not wanted - RECAP - RECAP_FILLERS


def _recap(evidence: Sequence[Evidence], *, asker: str, now: float, zone: tzinfo | None) -> list[Text]:
    """Return a few sentences of the summary and of the newest turns, word for word."""
    candidates = [
        item for item in evidence if item.origin is not EvidenceOrigin.NOTE and len(content_stems(item.text)) >= 3
    ]
    candidates = [item for item in candidates if not asks(item.text)]
    earlier_ones = [item for item in candidates if item.origin is EvidenceOrigin.SUMMARY][:RECAP_SENTENCES]
    latest = [item for item in candidates if item.origin is EvidenceOrigin.TURN][-RECAP_SENTENCES:]
    if not earlier_ones and not latest:
        return [Text("Nothing much was said yet, {asker}.", asker=asker)]
    return [quote(item, now=now, zone=zone) for item in (*earlier_ones, *latest)]


def quote(found: Evidence, *, now: float, zone: tzinfo | None = None) -> Text:
    """Return one sentence of the payload, with its speaker and time if known. It may begin with a small letter."""
    words = _shortened(found.text)
    # The time comes first, because a short name at the start of a reply is easily misheard.
    match found.origin:
        case EvidenceOrigin.NOTE:
            if found.until is None:
                return Text("on a screen: {words}", words=words)
            return Text("on a screen {when}: {words}", when=format_ago(now - found.until), words=words)
        case EvidenceOrigin.TURN:
            when = Text("earlier") if found.until is None else format_ago(now - found.until)
        case EvidenceOrigin.SUMMARY if found.since is not None and found.until is not None:
            when = format_time_range(found.since, found.until, now=now, zone=zone)
        case EvidenceOrigin.SUMMARY:
            when = Text("earlier in this session")
    if found.speaker is None and found.origin is EvidenceOrigin.SUMMARY:
        return Text("{when}: {words}", when=when, words=words)
    return Text("{when}, {speaker} said: {words}", when=when, speaker=found.speaker or Text("somebody"), words=words)


def _shortened(text: str) -> str:
    text = cut_at_word(" ".join(text.split()), QUOTE_CHARS)
    return text if text[-1:] in ".!?…" else text + "."
