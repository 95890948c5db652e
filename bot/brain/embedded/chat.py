"""The responder without a language model, or while the model is away: deterministic and local.

It answers a question with the best matching sentence of the payload, and says who said it, in the language of the
question. Everything else it says is a fixed phrase in this module, so it invents nothing.

What people mean by the first things that they say to a bot ('can you hear me?', 'what did I miss?') is told by
examples in the files of the languages (`bot.texts`). A sentence means what the example with the same words means, or
else the one that is most like it, by the embedder of memory search.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass, replace
from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Final

import numpy as np
import structlog

from bot.brain.embedded.evidence import (
    Evidence,
    asks_about_something,
    best_match,
    collect_evidence,
    content_stems,
    name_stems,
)
from bot.brain.first_sentences import (
    OF_THE_TALK,
    SOMEBODY,
    Request,
    first_sentences,
    meaning_as_said,
    request_in,
)
from bot.brain.tools.memory import MISSED
from bot.brain.wakeword import spoken_words, use_of_name, vocatives
from bot.reminders import NO_TIME, REMIND
from bot.texts.text import Text, in_language, joined, languages, verbatim
from bot.time_ahead import MomentAhead, find_moment_ahead
from bot.time_phrases import format_ago, format_time_range, format_today
from compaction.errors import EmbeddingError
from compaction.language.languages import LANGUAGES, language_of
from compaction.language.text import cut_at_word, is_question, sentences, words
from compaction.model import TurnPart
from compaction.payload import PartKind

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence

    from numpy.typing import NDArray

    from bot.brain.context import ModelContext
    from bot.clock import Clock
    from compaction.ports import Embedder

log = structlog.get_logger()

NO_MODEL = Text("I have no language model, so I can only repeat what was said here.")
MODEL_AWAY = Text("The language model does not answer at the moment, so I can only repeat what was said here.")
ADD_MODEL = Text("The owner of this bot can add one. The guide says how, under A language model.")
# What is like no example may still be something that the bot can do, in other words. So each of these says so.
CANNOT = Text("I can't do that without a language model, or I did not understand it. Type /help to see what I can do.")
NOT_UNDERSTOOD = Text("I do not understand that without a language model. Type /help to see what I can do.")
NOT_HEARD = Text(
    "I have heard nothing about that here, {asker}, or I did not understand you. Type /help to see what I can do."
)
# By the keys of `said.meanings` in the files of the languages.
_ANSWERS: dict[str | None, Text] = {
    "hears": Text("Yes, I hear you, {asker}."),
    "forget": Text("Type /forget-me, and I delete what I keep about you."),
    "readers": Text(
        "The people who are here can read it later. The owner of this bot can read it too. Type "
        "/privacy to see who else can."
    ),
    "stop_listening": Text("Type /opt-out, and I no longer hear you."),
    "cost": Text("You pay nothing for me. Type /status to see what I have used."),
    "ai": Text("I am a program, not a person. Type /help to see what I can do."),
    "name": Text("My name is {name}. Type /help to see what I can do."),
    "model": CANNOT,
    "recording": Text("I keep what is said as text for some time. I keep no sound. Type /privacy to read more."),
    "leave": Text("Type /leave, and I go away."),
    "help": Text("I can tell you what was said here, and who said it. Type /help to see what else I can do."),
    "greeting": Text("Hello, {asker}."),
    "thanks": Text("You are welcome, {asker}."),
    "parting": Text("Goodbye, {asker}."),
    "remind": NO_TIME,
}
# What the tool for reminders does.
_ACTIONS: Final = {"remind": "set", "cancel": "delete", "reminders": "list"}
# When a request with a time or a person cannot be fulfilled.
NOBODY = Text("I see nobody here with the name {whom}. Tell me the name of somebody who is here, or say: remind me.")
NOT_HERE = Text("I can only keep reminders for people in my voice channel. Join my voice channel and ask me again.")
# Longer quotes are cut at a word.
QUOTE_CHARS = 260
# How many sentences a recap has of each, and an answer to what somebody said.
RECAP_SENTENCES = 2
# On a stage there may be hundreds.
MOST_NAMED = 10
# From this age on an answer says when something was said.
OLD_S = 600.0

# Chosen on the sentences `fit` in tests/bot/brain/embedded/*.toml: the lowest tenth from 0.5 on that takes no other
# sentence for one of these. People ask for the time and for what was said in many words alike; about a bot they do not.
LIKE_ENOUGH: Final = 0.7
LESS_ENOUGH: Final[dict[str, float]] = {
    **dict.fromkeys(("forget", "readers", "stop_listening", "ai", "model"), 0.5),
    **dict.fromkeys(("recording", "name", "cancel", "reminders"), 0.6),
}
# How long an answer waits for the likeness of a sentence, which takes 10 ms.
WAIT_S: Final = 0.5
# How many of the examples say what is like none: their likeness is added up for each kind.
NEAREST: Final = 5
# Of thirteen German questions about English sentences eleven had 0.40 to 0.66, and of thirteen about other things none
# more than 0.36. So many sentences are compared, which takes a processor about a second.
SAME_THING: Final = 0.4
MOST_COMPARED: Final = 24
COMPARED_WITHIN_S: Final = 2.0
# When the examples are read again after a failure.
READ_AGAIN_S: Final = 60.0
# Words that are no name: 'remind us', 'remind everybody'.
_NO_NAMES: Final = frozenset(word for each in LANGUAGES for word in each.stopwords)


class FirstSentences:
    """The examples of all languages. Without an embedder only a sentence with the same words is like one."""

    def __init__(self, embedder: Embedder | None) -> None:
        self._embedder = embedder
        self._vectors: NDArray[np.float32] | None = None

    async def read_examples(self, clock: Clock) -> None:
        """Embed the examples, which takes a processor some tenths of a second. Until then it is as without an embedder.
        After a failure, which is logged, it is tried again until it works.
        """
        examples = [said for _, said in first_sentences()]
        while self._embedder is not None and self._vectors is None:
            try:
                self._vectors = np.array(await self._embedder.embed(examples), dtype=np.float32)
            except EmbeddingError as error:
                log.warning("first_sentences_not_read", problem=error)
                await clock.sleep(READ_AGAIN_S)

    async def meaning_of(self, text: str, *, names: tuple[str, ...], people: Iterable[str]) -> str | None:
        """Return what a sentence to the bot means, None if it is like no example. `names`: the bot's; `people`: those
        of the people who are here or spoke.
        """
        use, others = use_of_name(text, names), frozenset().union(*map(name_stems, people))
        # Without the bot's name, and with `SOMEBODY` for people.
        left = (
            SOMEBODY if others.intersection(words(each)) else each
            for each in f"{use.greeting or ''} {use.rest}".split()
        )
        said, end = " ".join(left).strip(" ,"), text.rstrip()[-1:]
        said += end if said and end in ".!?" and said[-1] not in ".!?" else ""
        # With a call by a misheard name and without it.
        judged = [said, *(each.rest for each in vocatives(said))]
        # 'I just came in, what did I miss?'
        judged += [clause.strip()] if (clause := said.rpartition(",")[2]) != said else []
        meaning = next(filter(None, map(meaning_as_said, judged)), None)
        if meaning is not None or self._embedder is None or self._vectors is None or not words(said):
            return meaning
        try:
            async with asyncio.timeout(WAIT_S):
                vectors = await self._embedder.embed(judged, urgent=True)
        except (EmbeddingError, TimeoutError):
            return None
        meanings = np.array([each for each, _ in first_sentences()])
        likenesses = np.array(vectors, dtype=np.float32) @ self._vectors.T
        for likeness in np.where(np.isin(meanings, list(OF_THE_TALK)), -1.0, likenesses):
            best = int(likeness.argmax())
            if likeness[best] >= LESS_ENOUGH.get(meanings[best], LIKE_ENOUGH):
                return str(meanings[best])
        return None

    async def kind_of(self, text: str) -> str | None:
        """Return what a sentence is most like that is like nothing the bot does: 'model', a task for one, or one of
        `OF_THE_TALK`. None: it cannot be told.
        """
        if self._embedder is None or self._vectors is None or not words(text):
            return None
        try:
            async with asyncio.timeout(WAIT_S):
                (vector,) = await self._embedder.embed([text], urgent=True)
        except (EmbeddingError, TimeoutError):
            return None
        kinds = [at for at, (meaning, _) in enumerate(first_sentences()) if meaning in {"model", *OF_THE_TALK}]
        likeness = self._vectors[kinds] @ np.array(vector, dtype=np.float32)
        nearest = defaultdict[str, float](float)
        for at in np.argsort(likeness)[-NEAREST:]:
            nearest[first_sentences()[kinds[int(at)]][0]] += float(likeness[at])
        return max(nearest, key=lambda each: nearest[each])

    async def about_the_same(self, question: str, evidence: Sequence[Evidence], language: str) -> Evidence | None:
        """Return the sentence in another language than `language` that is most about what a question asks; None: none
        is, or it cannot be told.
        """
        told = [each for each in evidence if not (each.to_bot or is_question(each.text))]
        others = [each for each in told if language_of(words(each.text)).code != language][-MOST_COMPARED:]
        if self._embedder is None or not others:
            return None
        try:
            async with asyncio.timeout(COMPARED_WITHIN_S):
                asked, *vectors = await self._embedder.embed([question, *(each.text for each in others)], urgent=True)
        except (EmbeddingError, TimeoutError):
            return None
        likeness = np.array(vectors, dtype=np.float32) @ np.array(asked, dtype=np.float32)
        best = int(likeness.argmax())
        return others[best] if likeness[best] >= SAME_THING else None


BY_WORDS_ALONE: Final = FirstSentences(None)


class EmbeddedResponder:
    """A `bot.brain.responder.Responder` without a model. One per room. `why`: says why there is none; people hear it
    once from `since` (UTC epoch seconds) on.
    """

    def __init__(
        self,
        why: Text = NO_MODEL,
        since: float = 0.0,
        *,
        first_sentences: FirstSentences = BY_WORDS_ALONE,
        zone: tzinfo | None = None,
    ) -> None:
        self._why, self._since = why, since
        self._first_sentences = first_sentences
        self._zone = zone
        self._introduced = False

    async def respond(self, context: ModelContext) -> AsyncGenerator[str, None]:
        if context.on_sent is not None:
            # People may look at what an answer was made of, without a model too.
            context.on_sent(context.parts)
        turn, session = context.asked, context.session
        # What people heard is in the window, also after a restart: not each answer that is made is heard.
        self._introduced = self._introduced or any(
            each.started_at >= self._since and in_language(self._why, code) in each.text
            for each in session.window
            for code in languages()
        )
        # All parts of the turn that call the bot by name, or else its last part.
        asked = [part for part in turn.parts if use_of_name(part.text, context.names).mentioned] or list(
            turn.parts[-1:]
        )
        # People may talk over each other.
        beside = [(part, sentence) for part in turn.parts if part not in asked for sentence in sentences(part.text)]
        evidence = [
            *collect_evidence(context),
            *(Evidence(said, PartKind.TURN, part.speaker, turn.started_at, turn.ended_at) for part, said in beside),
        ]
        folded = (session.summary_started_at, None if session.evicted is None else session.evicted.first_at)
        starts = (*(at for at in folded if at is not None), *(each.started_at for each in (*session.window[:1], turn)))
        known = Known(evidence, context.now, context.names, self._zone, context.present, min(starts))
        # Of several people who ask at once, it is that of one.
        language = context.language if len({part.speaker_id for part in asked}) == 1 else ""
        # Who is here has a name too, also if they have said nothing yet.
        people = {*context.present, *(each.speaker for each in evidence if each.speaker)}
        said: list[str] = []
        for part in asked or [TurnPart("", "friend", "")]:
            text = use_of_name(part.text, context.names).rest
            moment = find_moment_ahead(text, now=context.now, zone=self._zone)
            request = request_in(text if moment is None else moment.rest)
            if request is None:
                meaning = await self._first_sentences.meaning_of(part.text, names=context.names, people=people)
                # A question is always one for the memory.
                request = Request(
                    meaning if meaning or is_question(text) else await self._first_sentences.kind_of(text)
                )
            asks = request.meaning == "ask" or (request.meaning is None and is_question(text))
            if (told := await self._fulfil(request, moment, part, context)) is not None:
                code = language or language_of(spoken_words(part.text).texts).code
                said.append(in_language(told, code))
                continue
            if asks and _quoted(part.text, known, part.speaker) is None:
                code = language or language_of(spoken_words(text).texts).code
                same = await self._first_sentences.about_the_same(text, evidence, code)
                known = replace(known, elsewhere=same)
                if same is None and await self._first_sentences.kind_of(text) == "model":
                    request = Request("model")
            tells_why = part in asked[-1:] and not self._introduced
            why = self._why if tells_why else None
            said.append(
                answer(part.text, known, meaning=request.meaning, asker=part.speaker, why=why, language=language)
            )
        yield " ".join(dict.fromkeys(said))

    async def _fulfil(
        self, request: Request, moment: MomentAhead | None, part: TurnPart, context: ModelContext
    ) -> Text | None:
        """Do what somebody asks for, as far as the tool for reminders does it. `moment`: when. Return what to tell
        them; None: they ask for something else, or are not who is answered.
        """
        action = _ACTIONS.get(request.meaning or "")
        if part.speaker_id != context.tools.asker_id:
            return None
        if request.meaning == "missed":
            return await context.tools.do(MISSED, {}) or None
        if action is None:
            return None
        arguments = {"action": action, "what": request.what}
        if action == "set":
            whom = _person(request.whom, context.present)
            if moment is None:
                return NO_TIME
            if whom is None:
                return NOBODY.fill(whom=request.whom)
            at = datetime.fromtimestamp(moment.at, self._zone).isoformat(timespec="seconds")
            arguments |= {"at": at, "whom": "" if whom == part.speaker else whom}
        return await context.tools.do(REMIND, arguments) or NOT_HERE


def _person(said: str, present: Sequence[str]) -> str | None:
    """Return the person here whom words name: empty if they are no name, None if nobody here has it."""
    named = words(said)
    if not named or named[0] in _NO_NAMES:
        return ""
    return next((each for each in present if name_stems(each).issuperset(named)), None)


@dataclass(frozen=True, slots=True)
class Known:
    """What an answer may say. `evidence`: the sentences of the payload, oldest first, without the question itself.
    `names`: the bot's, which are ignored in a question. `present`: whom the bot hears. `begun_at`: when the talk began;
    it and `now` are UTC epoch seconds.
    """

    evidence: Sequence[Evidence]
    now: float
    names: tuple[str, ...] = ()
    zone: tzinfo | None = None
    present: tuple[str, ...] = ()
    begun_at: float = 0.0
    # What was said in another language about what is asked.
    elsewhere: Evidence | None = None


def answer(
    question: str,
    known: Known,
    *,
    asker: str,
    meaning: str | None = None,
    why: Text | None = None,
    language: str = "",
) -> str:
    """Return the answer to `question`, in its language. `meaning`: what it means if it is a first sentence.
    `why`: what it adds about the missing model. `language`: the code of the question's language; empty: its words tell
    it.
    """
    said = _reply(question, known, asker=asker, meaning=meaning)
    language = language or language_of(spoken_words(question).texts).code
    if why is not None:
        said += [why, ADD_MODEL] if (meaning, why) == ("model", NO_MODEL) else [why]
    written = [in_language(each, language) for each in said]
    return " ".join(f"{each[0].upper()}{each[1:]}" for each in written)


def _reply(question: str, known: Known, *, asker: str, meaning: str | None) -> list[Text]:
    asked = frozenset(words(question))
    match meaning:
        case "recap" | "missed":
            # A few sentences of the summary and of the newest turns, word for word.
            talk = (each for each in known.evidence if not (each.to_bot or is_question(each.text)))
            quotable = [each for each in talk if len(content_stems(each.text)) >= 3]
            earlier = [each for each in quotable if each.origin is PartKind.SUMMARY][:RECAP_SENTENCES]
            latest = [each for each in quotable if each.origin is PartKind.TURN][-RECAP_SENTENCES:]
            quotes = [quote(each, known) for each in (*earlier, *latest)]
            return quotes or [Text("Nobody has said much yet, {asker}.", asker=asker)]
        case "said_by" if latest := [each for each in known.evidence if asked & name_stems(each.speaker)]:
            told = [each for each in latest if not each.to_bot] or latest
            return [quote(each, known) for each in told[-RECAP_SENTENCES:]]
        case "date":
            return [format_today(known.now, zone=known.zone)]
        case "time":
            return [Text("It is {time}.", time=f"{datetime.fromtimestamp(known.now, known.zone):%H:%M}")]
        case "who_is_here" if known.present:
            named, more = ", ".join(known.present[:MOST_NAMED]), len(known.present) - MOST_NAMED
            everybody = Text("I hear these people here: {people}.", people=named)
            some = Text("I hear these people here: {people} and {count} more.", people=named, count=more)
            return [some if more > 0 else everybody]
        case "how_long":
            return [Text("This conversation began {when}.", when=format_ago(known.now - known.begun_at))]
        case fixed if fixed in _ANSWERS:
            return [_ANSWERS[fixed].fill(asker=asker, name=next(iter(known.names), "Roomtone"))]
    if not asks_about_something(question, ignore=known.names):
        return [Text("I am here, {asker}. Ask me about what was said.", asker=asker)]
    found = _quoted(question, known, asker) or known.elsewhere
    if found is not None:
        return [quote(found, known)]
    if is_question(question) or meaning == "ask":
        return [NOT_HEARD.fill(asker=asker)]
    return [NOT_UNDERSTOOD]


def _quoted(question: str, known: Known, asker: str) -> Evidence | None:
    """Return what was said about a question, which may begin with a call."""
    asked = (question, *(each.rest for each in vocatives(question)))
    found = (best_match(said, known.evidence, ignore=known.names, asker=asker) for said in asked)
    return next(filter(None, found), None)


def quote(found: Evidence, known: Known) -> Text:
    """Return one sentence of the payload with its speaker, and with its time if it is old."""
    said = cut_at_word(" ".join(found.text.split()), QUOTE_CHARS)
    said = said if said[-1:] in ".!?…" else said + "."
    if found.origin is PartKind.NOTE:
        return Text("on a screen: {words}", words=said)
    is_summary = found.origin is PartKind.SUMMARY
    speaker = found.speaker or (None if is_summary else Text("somebody"))
    quoted = verbatim(said) if speaker is None else Text("{speaker} said: {words}", speaker=speaker, words=said)
    if found.since is None or found.until is None or known.now - found.until < OLD_S:
        return quoted
    ago, span = known.now - found.until, (found.since, found.until)
    when = format_time_range(*span, now=known.now, zone=known.zone) if is_summary else format_ago(ago)
    return joined((quoted, Text("That was {when}.", when=when)))
