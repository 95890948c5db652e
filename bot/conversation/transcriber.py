"""Turns one utterance into text: what the recogniser is told, a second hearing of doubtful text, and the guards.

It remembers each speaker's language and last words. `RoomSpeech` says what may be said in a room, as it is now: names,
words, languages, and the bot's own words, which may be an echo. `hearing` decides which utterance is transcribed when.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from bot import events
from bot.brain.wakeword import use_of_name
from bot.conversation.misheard_names import correct_names
from bot.dropped_sounds import OPTED_OUT, OVERLOADED, RECOGNISER_FAILED
from bot.server_settings import language_to_assume
from bot.texts.text import sentence_of
from bot.words import SESSION, Leased, Words
from voice.asr.glossary import choose_glossary, repeats_alone, spoken_form
from voice.asr.guards import GuardReason, PreviousUtterance, judge
from voice.asr.languages import FOUND_PROBABILITY, SpeakerLanguages
from voice.asr.port import LanguageHint, Recogniser, Recognition, RecognitionRequest, expected_language
from voice.asr.second_hearing import SURE_LOGPROB, Hearings, hear
from voice.errors import RecogniserError, RecogniserOverloadedError

if TYPE_CHECKING:
    from bot.channel.participants import Participants
    from bot.clock import Clock
    from bot.conversation.services import RoomContext
    from bot.conversation.speaking import Speaking
    from bot.events import SpokenText
    from bot.participation.participation import Participation
    from voice.listening.utterance import Utterance

log = structlog.get_logger()


class RoomSpeech:
    """The speech of a session's room. Who opted out is in none of it."""

    def __init__(
        self, session: RoomContext, participants: Participants, participation: Participation, speaking: Speaking
    ) -> None:
        self._session, self._channel, self._services = session, session.channel, session.services
        self._participants, self._participation, self._speaking = participants, participation, speaking

    @property
    def own_names(self) -> tuple[str, ...]:
        """Return the bot's names."""
        return self._participation.wake_names

    def glossary(self) -> tuple[str, ...]:
        """Return the names and words to expect, the bot's names among them."""
        channel, words = self._channel, self._session.words
        return choose_glossary(
            wake_names=self.own_names,
            display_names=[person.name for person in channel.members() if not words.excludes(person.id)],
            words=(*self._services.asr.glossary_words, channel.guild_name, channel.name),
            occasions=channel.occasions,
        )

    def names(self) -> tuple[str, ...]:
        """Return the names of the people who are or were there, which a text gets as they write them."""
        return tuple(map(spoken_form, self._participants.names().values()))

    def languages(self) -> tuple[str, ...]:
        """Return the codes of those that may be spoken; one alone is everybody's, none: any."""
        return self._services.languages(self._channel.guild_id)

    def assumed_language(self) -> str:
        """Return the code of the language to assume while detection is unsure and nothing is known of the person;
        empty: the recogniser's own fallback.
        """
        settings = self._services.servers.of(self._channel.guild_id)
        spoken, assumed = self.languages(), language_to_assume(settings, self._channel.language)
        return assumed if not spoken or assumed in spoken else spoken[0]

    def own_words(self, since: float, until: float) -> str:
        """Return the words that the bot spoke between two times."""
        return self._speaking.playback.words_between(since, until)

    def is_present(self, user_id: int) -> bool:
        """Return whether a person is in the channel."""
        return self._participants.find(user_id) is not None

    @property
    def is_heard_again(self) -> bool:
        """Return whether finished speech is recognised anew, by a speech-to-speech model."""
        return self._speaking.replier.answers_in_speech


@dataclass(frozen=True, slots=True)
class TranscribedUtterance:
    """What came of one utterance. `recognition`: None if there is no text; `failure` says why. `hint`: the language
    that the recogniser was told, `glossary`: the names and words. `asked_at`: when it was asked, `known_at`: when its
    last answer came, monotonic seconds.
    `gave_way`: a hearing failed or was refused because the utterance was not finished; finished, it is heard again.
    """

    recognition: Recognition | None
    hint: LanguageHint
    asked_at: float
    failure: str = ""
    gave_way: bool = False
    glossary: tuple[str, ...] = ()
    known_at: float = 0.0


class Transcriber:
    """The transcriber of one room. `expected`: what may be said there. `pending`: the ids of utterances that are
    complete and have no text yet. Not thread-safe.
    """

    def __init__(
        self,
        recogniser: Recogniser,
        expected: RoomSpeech,
        *,
        words: Words,
        clock: Clock,
        observe: events.Observer,
    ) -> None:
        self._recogniser = recogniser
        self._expected = expected
        # What is known of the language that each person speaks.
        self.languages = SpeakerLanguages(expected.languages)
        # Each person's last text and its end time. The same text again at once comes from a recogniser in a loop.
        self._last_texts: dict[int, Leased[tuple[str, float]]] = {}
        self.pending: set[str] = set()
        self._clock = clock
        self._observe = observe
        self.words = words

    async def transcribe(self, utterance: Utterance) -> TranscribedUtterance:
        """Recognise `utterance`, and again if its text is doubtful. Until it is finished (`on_finished`), also
        meanwhile, it gives way to others, and its failure is not reported.
        """
        hearings = await hear(
            lambda careful: self._recognise(utterance, careful=careful),
            lambda heard: self.guard(utterance, heard),
            speech_s=utterance.ended_at - utterance.started_at,
        )
        if hearings.was_doubtful:
            outcome = _outcome(hearings)
            self._observe(events.SecondHearingEnded(utterance.user_id, outcome, self._clock.monotonic()))
        return replace(hearings.used, known_at=self._clock.monotonic())

    def guard(self, utterance: Utterance, transcription: TranscribedUtterance) -> GuardReason | None:
        """Return the reason why the text cannot match the speech, or None if it can."""
        if transcription.recognition is None:
            return None
        # Who calls the bot often says nothing else.
        is_call = repeats_alone(transcription.recognition.text, self._expected.own_names)
        before = None
        # Who was misheard asks again.
        is_addressed = self.names_bot(transcription.recognition.text)
        last = self._last_texts.get(utterance.user_id)
        if last is not None and (said := last.take()) is not None and not is_addressed:
            text, ended_at = said
            before = PreviousUtterance(text, max(0.0, utterance.started_at - ended_at))
        return judge(
            transcription.recognition,
            speech_s=utterance.ended_at - utterance.started_at,
            before=before,
            own_words=self._expected.own_words(utterance.started_at, utterance.ended_at),
            glossary=() if is_call else transcription.glossary,
        )

    def names_bot(self, text: str) -> bool:
        """Return whether a text has the bot's name, so that it need not wait for others to finish."""
        return use_of_name(text, self._expected.own_names).mentioned

    def on_finished(self, utterance: Utterance) -> None:
        """Treat an utterance, and what the recogniser still has of its speaker's pauses, as finished speech from now
        on.
        """
        self.pending.add(utterance.id)
        self._recogniser.confirm(utterance.user_id)

    def on_accepted(self, utterance: Utterance, transcription: TranscribedUtterance) -> None:
        """Remember the words and the language of an utterance whose text is believed."""
        recognition = transcription.recognition
        assert recognition is not None, "what has no text is not accepted"
        if not self._expected.is_present(utterance.user_id):
            # They left while it was recognised, and may have been forgotten already.
            return
        lease = self.words.lease({utterance.user_id, SESSION}, since=utterance.started_at)
        self._last_texts[utterance.user_id] = Leased((recognition.text, utterance.ended_at), lease)
        self.languages.observed(
            utterance.user_id,
            recognition.language,
            probability=recognition.language_probability,
            speech_s=utterance.ended_at - utterance.started_at,
            detected=recognition.language != expected_language(transcription.hint),
            mean_logprob=recognition.mean_logprob,
        )

    def reply_language(self, spoken: SpokenText) -> str:
        """Return the code of the language to answer these words in; empty if nobody here speaks another than English.

        A model that is sent an English prompt answers English people in English without being told.
        """
        heard = spoken.recognition
        language = self.languages.of_words(
            spoken.user_id,
            heard.language,
            probability=heard.language_probability,
            speech_s=spoken.ended_at - spoken.started_at,
        )
        return "" if self.languages.spoken() | {language or "en"} <= {"en"} else language or ""

    def forget(self, user_id: int) -> None:
        """Forget the language and the last text of a person who left."""
        self.languages.forget(user_id)
        self._last_texts.pop(user_id, None)

    async def _recognise(self, utterance: Utterance, *, careful: bool) -> TranscribedUtterance:
        """Recognise `utterance` in the person's language. If it is not known and its detection unsure, in the language
        to assume of them.
        """
        hint = self.languages.hint(utterance.user_id, speech_s=utterance.ended_at - utterance.started_at)
        transcription = await self._ask(utterance, hint, careful=careful)
        heard = transcription.recognition
        is_known = expected_language(hint) is not None
        if is_known or heard is None or heard.language_probability >= FOUND_PROBABILITY:
            return transcription
        assumed = self.languages.of(utterance.user_id) or self._expected.assumed_language()
        if assumed in {"", heard.language}:
            return transcription
        second = await self._ask(utterance, assumed, careful=careful)
        if second.recognition is None:
            return replace(transcription, gave_way=second.gave_way)
        # Nothing was detected, so nothing is learnt about the person's language.
        return replace(transcription, recognition=replace(second.recognition, language_probability=0.0))

    async def _ask(self, utterance: Utterance, hint: LanguageHint, *, careful: bool) -> TranscribedUtterance:
        asked_at = self._clock.monotonic()
        if not self.words.may_use(utterance.user_id, since=utterance.started_at):
            return TranscribedUtterance(None, None, asked_at, OPTED_OUT)
        interim = utterance.id not in self.pending
        # A second hearing is for quiet moments, also when the utterance is finished.
        gave_way = interim and not careful
        glossary = self._expected.glossary()
        try:
            recognition = await self._recogniser.recognise(
                RecognitionRequest(
                    utterance.pcm,
                    language=hint,
                    glossary=glossary,
                    speaker_id=utterance.user_id,
                    interim=interim,
                    careful=careful,
                )
            )
        except RecogniserOverloadedError:
            return TranscribedUtterance(None, hint, asked_at, OVERLOADED, gave_way)
        except RecogniserError as error:
            if not interim:  # an interim one is repeated as finished speech
                log.error(RECOGNISER_FAILED, utterance_id=utterance.id, error=error)  # noqa: TRY400 - a plain sentence says it all
                self._observe(events.Problem("recogniser", sentence_of(error), self._clock.monotonic()))
            return TranscribedUtterance(None, hint, asked_at, RECOGNISER_FAILED, gave_way)
        unsure = recognition.mean_logprob < SURE_LOGPROB
        recognition = replace(recognition, text=correct_names(recognition.text, self._expected.names(), unsure=unsure))
        again = interim and self._expected.is_heard_again
        return TranscribedUtterance(recognition, hint, asked_at, gave_way=again, glossary=glossary)


def _outcome(hearings: Hearings[TranscribedUtterance]) -> events.SecondHearing:
    if hearings.mended:
        return events.SecondHearing.MENDED
    is_heard = hearings.second is not None and hearings.second.recognition is not None
    return events.SecondHearing.KEPT if is_heard else events.SecondHearing.REFUSED
