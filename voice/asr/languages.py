"""Tracks each person's language: detects it once, keeps it, and confirms it when in doubt and now and then.

Detection on one short word is a guess, a wrong guess ruins the whole utterance, and people rarely change their
language. So a language is settled after one sure detection or two equal ones, and changed only after two contradicting
ones in a row. Our own recogniser hears what is surely in another language in that one at once. An endpoint is told the
settled language and obeys, so there it is confirmed now and then, and after a text that makes little sense. A fallback
language does not count as detected.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from voice.asr.port import LanguageHint, UsualLanguage

if TYPE_CHECKING:
    from collections.abc import Callable


# Among 89 English utterances, none was taken for another language with a higher probability.
SURE_PROBABILITY = 0.8
# With less sound, even a sure detection may be chance.
SURE_AFTER_S = 1.5
# A detected language has at least half of the probability. A fallback had 0.0-0.2 when another language was spoken.
FOUND_PROBABILITY = 0.5
AGREEING_DETECTIONS = 2
# Below this mean log probability a text may be of another language: Whisper base gave German and Spanish that it had to
# hear as English -0.99 to -1.46, and what it heard in the right language -0.10 to -0.75.
DOUBTFUL_LOGPROB = -0.9
# A change of language is noticed after at most twice this many utterances; each confirmation costs a decoder step.
CONFIRM_EVERY = 20


@dataclass(slots=True)
class _Person:
    settled: str | None = None
    candidate: str | None = None
    agreeing: int = 0
    since_confirmed: int = 0


class SpeakerLanguages:
    """Remembers the languages of a room's speakers. Owned by the room; not thread-safe."""

    def __init__(self, among: Callable[[], tuple[str, ...]] = tuple) -> None:
        """`among`: returns the languages that may be spoken here now; one alone is everybody's, none: any."""
        self._among = among
        self._people: dict[int, _Person] = {}

    def hint(self, user_id: int, *, speech_s: float) -> LanguageHint:
        """Return what a recogniser is told of the language of the person's next utterance of `speech_s` seconds."""
        known, among = self.of(user_id), self._among()
        if len(among) == 1:
            return known
        # Detection on a short word is a guess, so the confirmation waits for a longer utterance.
        is_due = known is None or (self._people[user_id].since_confirmed >= CONFIRM_EVERY and speech_s >= SURE_AFTER_S)
        return among or None if known is None or is_due else UsualLanguage(known, among)

    def of(self, user_id: int) -> str | None:
        """Return the person's language as far as it is known."""
        among, person = self._among(), self._people.get(user_id)
        if len(among) == 1:
            return among[0]
        settled = None if person is None else person.settled
        return settled if not among or settled in among else None

    def of_words(self, user_id: int, language: str, *, probability: float, speech_s: float) -> str | None:
        """Return the language of what a person says: that of these words if it is sure, else the person's."""
        known, among = self.of(user_id), self._among()
        is_sure = bool(language) and probability >= SURE_PROBABILITY and speech_s >= SURE_AFTER_S
        return language if is_sure and (not among or language in among) else known

    def spoken(self) -> frozenset[str]:
        """Return the languages that are spoken here, as far as they are known."""
        return frozenset(filter(None, map(self.of, self._people)))

    def doubt(self, user_id: int) -> None:
        """Confirm the person's language with the next utterance that is long enough: the last made little sense."""
        if (person := self._people.get(user_id)) is not None:
            person.since_confirmed = CONFIRM_EVERY

    def observed(
        self,
        user_id: int,
        language: str,
        *,
        probability: float,
        speech_s: float,
        detected: bool,
        mean_logprob: float = 0.0,
    ) -> None:
        """Record the language of an utterance. `detected`: by the model; otherwise it was the expected one.
        `probability`: of the language, 0-1. `mean_logprob`: of the text's tokens, 0 at most.

        An empty `language` (the recogniser does not report it) changes nothing.
        """
        if not language:
            return
        person = self._people.setdefault(user_id, _Person())
        if not detected:
            person.since_confirmed += 1
            if mean_logprob < DOUBTFUL_LOGPROB:
                self.doubt(user_id)
            return
        if probability < FOUND_PROBABILITY:
            # This detection neither confirms nor contradicts the settled language.
            if person.candidate is None:
                person.since_confirmed = 0
            return
        person.agreeing = person.agreeing + 1 if language == person.candidate else 1
        person.candidate = language
        is_sure = probability >= SURE_PROBABILITY and speech_s >= SURE_AFTER_S
        is_settled = person.agreeing >= AGREEING_DETECTIONS or (is_sure and person.settled is None)
        if is_settled or language == person.settled:
            self._people[user_id] = _Person(language)

    def forget(self, user_id: int) -> None:
        """Remove the entry of a person who left."""
        self._people.pop(user_id, None)
