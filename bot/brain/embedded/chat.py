"""The responder for bots without a language model: deterministic and local.

It answers a question with the best matching sentence of the payload, and says who said it, in the language of the
question. Everything else it says is a fixed phrase in this module, so it invents nothing.
"""

from __future__ import annotations

from datetime import datetime
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
from bot.brain.embedded.first_sentences import FirstSentences, Meaning
from bot.brain.spoken_words import spoken_words
from bot.brain.wakeword import mentions_name
from bot.texts.catalogue import languages
from bot.texts.text import Text, in_language, verbatim
from bot.time_phrases import format_ago, format_time_range
from compaction.language.languages import language_of
from compaction.language.text import cut_at_word, sentences, words
from compaction.model import TurnPart

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import tzinfo

    from bot.brain.context import ModelContext
    from compaction.model import Turn

NO_MODEL = Text("No language model is configured, so I answer only with what was said here.")
_ANSWERS: dict[Meaning | None, Text] = {
    Meaning.HEARS: Text("Yes, I hear you, {asker}."),
    Meaning.RECORDING: Text("I keep what is said as text for some time, and no sound. The command /privacy says more."),
    Meaning.LEAVE: Text("Type /leave, and I go."),
    Meaning.HELP: Text("I can tell you what was said here: ask me who said what, or for a recap."),
    Meaning.GREETING: Text("Hello, {asker}."),
    Meaning.THANKS: Text("You are welcome, {asker}."),
    Meaning.PARTING: Text("Goodbye, {asker}."),
}
# Longer quotes are cut at a word.
QUOTE_CHARS = 260
# How many sentences a recap has of each, and an answer to what somebody said.
RECAP_SENTENCES = 2
# From this age on an answer says when something was said.
OLD_S = 600.0


class EmbeddedResponder:
    """A `bot.brain.responder.Responder` without a model. One per room; it says once that there is no model."""

    def __init__(
        self, *, names: Sequence[str], first_sentences: FirstSentences | None = None, zone: tzinfo | None = None
    ) -> None:
        self._names = tuple(names)
        self._first_sentences = first_sentences or FirstSentences(None)
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
        speakers = frozenset(each.speaker for each in evidence if each.speaker)
        said = [
            answer(
                part.text,
                evidence,
                meaning=await self._first_sentences.meaning_of(part.text, names=self._names, speakers=speakers),
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
    meaning: Meaning | None = None,
    zone: tzinfo | None = None,
    introduce: bool = False,
    language: str = "",
) -> str:
    """Return the answer to `question`, in its language.

    `evidence`: the sentences of the payload, oldest first, without the question itself. `now`: UTC epoch seconds.
    `names`: the bot's names, which are ignored in the question. `meaning`: what it means if it is a first sentence.
    `introduce`: add that no model is configured. `language`: the code of the question's language; empty: its words tell
    it.
    """
    said = _reply(question, evidence, meaning=meaning, asker=asker, now=now, names=names, zone=zone)
    language = language or language_of(spoken_words(question).texts).code
    written = [in_language(each, language) for each in (*said, *((NO_MODEL,) if introduce else ()))]
    return " ".join(f"{each[0].upper()}{each[1:]}" for each in written)


def _reply(
    question: str,
    evidence: Sequence[Evidence],
    *,
    meaning: Meaning | None,
    asker: str,
    now: float,
    names: Sequence[str],
    zone: tzinfo | None,
) -> list[Text]:
    match meaning:
        case Meaning.RECAP:
            return _recap(evidence, asker=asker, now=now, zone=zone)
        case Meaning.SAID_BY if latest := _said_by(question, evidence):
            return [quote(each, now=now, zone=zone) for each in latest]
        case Meaning.TIME:
            return [Text("It is {time}.", time=f"{datetime.fromtimestamp(now, zone):%H:%M}")]
        case known if known in _ANSWERS:
            return [_ANSWERS[known].fill(asker=asker)]
    if not asks_about_something(question, ignore=names):
        return [Text("I am here, {asker}. Ask me about what was said.", asker=asker)]
    found = best_match(question, evidence, ignore=names, asker=asker)
    if found is not None:
        return [quote(found, now=now, zone=zone)]
    if asks(question):
        return [Text("I have heard nothing about that here, {asker}.", asker=asker)]
    return [Text("I heard you, {asker}. I can tell you what was said here, if you ask me.", asker=asker)]


def _said_by(question: str, evidence: Sequence[Evidence]) -> list[Evidence]:
    """Return the last sentences of the person whom a question names; empty if it names nobody who said anything."""
    asked = frozenset(words(question))
    return [each for each in evidence if asked & name_stems(each.speaker)][-RECAP_SENTENCES:]


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
    """Return one sentence of the payload with its speaker, and with its time if it is old."""
    said = _shortened(found.text)
    if found.origin is EvidenceOrigin.NOTE:
        return Text("on a screen: {words}", words=said)
    speaker = found.speaker or (None if found.origin is EvidenceOrigin.SUMMARY else Text("somebody"))
    if found.since is None or found.until is None or now - found.until < OLD_S:
        return verbatim(said) if speaker is None else Text("{speaker} said: {words}", speaker=speaker, words=said)
    summarised = found.origin is EvidenceOrigin.SUMMARY
    when = (
        format_time_range(found.since, found.until, now=now, zone=zone) if summarised else format_ago(now - found.until)
    )
    if speaker is None:
        return Text("{words} That was {when}.", words=said, when=when)
    return Text("{speaker} said: {words} That was {when}.", speaker=speaker, words=said, when=when)


def _shortened(text: str) -> str:
    text = cut_at_word(" ".join(text.split()), QUOTE_CHARS)
    return text if text[-1:] in ".!?…" else text + "."
